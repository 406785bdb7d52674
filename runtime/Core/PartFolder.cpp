#include "runtime/Core/PartFolder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace heddle {
namespace {

constexpr const char *kPrefix = ".heddle-part-";

constexpr int kTaken = -1, kNoLocks = -2;

// A descriptor of the folder that holds its lock. kTaken: another process holds it, or it is gone or another user's.
// kNoLocks: a file system that cannot say who lives.
int lockFolder(const std::string &path) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0)
    return kTaken;
  struct stat opened, named;
  int failure = kTaken;
  if (::fstat(folder, &opened) == 0 && opened.st_uid == ::geteuid()) {
    const bool isLocked = ::flock(folder, LOCK_EX | LOCK_NB) == 0;
    failure = isLocked || errno == EWOULDBLOCK ? kTaken : kNoLocks;
    if (isLocked && ::lstat(path.c_str(), &named) == 0 && named.st_ino == opened.st_ino)
      return folder;
  }
  ::close(folder);
  return failure;
}

void removeWith(const std::string &path, int lock) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
  if (lock >= 0)
    ::close(lock);
}

void removeLeftBehind(const fs::path &parent) {
  std::error_code failed;
  for (fs::directory_iterator entry(parent, failed), end; !failed && entry != end; entry.increment(failed)) {
    const std::string path = entry->path().string();
    if (entry->path().filename().string().rfind(kPrefix, 0) != 0)
      continue;
    if (const int lock = lockFolder(path); lock >= 0)
      removeWith(path, lock);
  }
}

} // namespace

Result<PartFolder> PartFolder::beside(const std::string &target) {
  fs::path parent = fs::path(target).parent_path();
  if (parent.empty())
    parent = ".";
  removeLeftBehind(parent);
  constexpr int kTries = 100; // another process may take a folder for left behind before it is locked
  for (int i = 0; i < kTries; ++i) {
    std::string path = (parent / (std::string(kPrefix) + "XXXXXX")).string();
    if (!::mkdtemp(path.data()))
      return Status(errno == EACCES || errno == EPERM || errno == EROFS ? StatusCode::denied : StatusCode::io,
                    "'" + target + "': cannot write in its folder: " + std::strerror(errno));
    if (const int lock = lockFolder(path); lock != kTaken)
      return PartFolder(std::move(path), lock);
  }
  return Status::io("'" + target + "': other processes remove what is made in its folder");
}

PartFolder::PartFolder(PartFolder &&other) noexcept : path(std::move(other.path)), lock(other.lock) {
  other.path.clear();
}

PartFolder::~PartFolder() {
  if (!path.empty())
    removeWith(path, lock);
}

} // namespace heddle
