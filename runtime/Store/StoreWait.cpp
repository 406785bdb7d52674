#include "runtime/Store/StoreWait.h"

#include <cstdint>
#include <fstream>
#include <set>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace heddle {
namespace {

// A line of /proc/locks (proc_locks(5)): "1: POSIX  ADVISORY  WRITE 4711 08:01:131 120 120".
struct Lock {
  std::string kind, mode;
  long process = 0;
  uint64_t file = 0, first = 0;
};

bool parse(const std::string &line, Lock &lock) {
  std::istringstream words(line);
  std::string number, advisory, place;
  if (!(words >> number >> lock.kind >> advisory >> lock.mode >> lock.process >> place >> lock.first))
    return false;
  std::istringstream(place.substr(place.rfind(':') + 1)) >> lock.file;
  return true;
}

// SQLite's file formats: where locks of the file lie, and of the index of its log.
bool isOfSqlite(uint64_t first, bool isIndex) {
  return isIndex ? first >= 120 && first < 128 : first >> 12 == 0x40000000 >> 12;
}

uint64_t inodeOf(const std::string &path) {
  struct stat facts;
  return ::stat(path.c_str(), &facts) == 0 ? uint64_t(facts.st_ino) : 0;
}

std::string described(long process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/comm");
  std::string name;
  std::getline(file, name);
  return "process " + std::to_string(process) + (name.empty() ? "" : " (" + name + ")");
}

} // namespace

std::string lockHolder(const std::string &path) {
  const uint64_t file = inodeOf(path), index = inodeOf(path + "-shm");
  std::set<long> writers, readers;
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    Lock lock;
    const bool isOurs =
        parse(line, lock) && lock.kind == "POSIX" && lock.file != 0 &&
        ((lock.file == file && isOfSqlite(lock.first, false)) || (lock.file == index && isOfSqlite(lock.first, true)));
    if (isOurs && lock.process > 0 && lock.process != ::getpid())
      (lock.mode == "WRITE" ? writers : readers).insert(lock.process);
  }
  const std::set<long> &holders = writers.empty() ? readers : writers;
  return holders.empty() ? "another process" : described(*holders.begin());
}

} // namespace heddle
