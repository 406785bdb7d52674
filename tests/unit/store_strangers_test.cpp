//===- store_strangers_test.cpp - folders that others may write -------------===//
// Another user puts a log with code of their own beside the store while it is opened: before each of the calls by which
// this process looks at files and reads them, which go through here, and takes it away before each of them. Numbers in
// brackets are the promises of runtime/Store/Store.h.
#include "runtime/Core/FieldText.h"
#include "store_contents.h"
#include "store_sql.h"

#include <cstdarg>
#include <dlfcn.h>
#include <fcntl.h>
#include <functional>
#include <sys/stat.h>
#include <unistd.h>

using namespace heddle;
using namespace heddle::test;

namespace {

constexpr uid_t kStranger = 65534;

// What happens before the call that is numbered so, from 1 on; 0: nothing.
struct Interruption {
  int64_t made = 0, at = 0;
  std::function<void()> what;
} interruption;

void beforeCall() {
  if (++interruption.made != interruption.at)
    return;
  Interruption due; // whose own calls are not counted
  std::swap(due, interruption);
  due.what();
  std::swap(due, interruption);
}

template <class F> F *next(const char *symbol) { return reinterpret_cast<F *>(dlsym(RTLD_NEXT, symbol)); }

} // namespace

extern "C" {
#define HEDDLE_COUNTED(result, name, parameters, arguments, ...)                                                       \
  result name parameters __VA_ARGS__ {                                                                                 \
    static auto *real = next<result parameters>(#name);                                                                \
    beforeCall();                                                                                                      \
    return real arguments;                                                                                             \
  }
HEDDLE_COUNTED(int, stat, (const char *path, struct stat *facts), (path, facts), noexcept)
HEDDLE_COUNTED(int, stat64, (const char *path, struct stat64 *facts), (path, facts), noexcept)
HEDDLE_COUNTED(int, lstat, (const char *path, struct stat *facts), (path, facts), noexcept)
HEDDLE_COUNTED(int, lstat64, (const char *path, struct stat64 *facts), (path, facts), noexcept)
HEDDLE_COUNTED(int, fstat64, (int file, struct stat64 *facts), (file, facts), noexcept)
HEDDLE_COUNTED(int, access, (const char *path, int how), (path, how), noexcept)
HEDDLE_COUNTED(int, unlink, (const char *path), (path), noexcept)
HEDDLE_COUNTED(ssize_t, read, (int file, void *bytes, size_t count), (file, bytes, count))
HEDDLE_COUNTED(ssize_t, pread64, (int file, void *bytes, size_t count, off64_t place), (file, bytes, count, place))
#undef HEDDLE_COUNTED

int open64(const char *path, int flags, ...) { // SQLite's
  static auto *real = next<int(const char *, int, ...)>("open64");
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  beforeCall();
  return real(path, flags, mode);
}
}

namespace {

// The rows of a log in which k1 has other code, every checksum right.
std::string evilLog(const ScratchFolder &folder, const std::string &path, const KernelRecord &evil) {
  const std::string copy = folder / "copy.db";
  std::filesystem::copy_file(path, copy);
  sqlite3 *handle = nullptr;
  REQUIRE(sqlite3_open(copy.c_str(), &handle) == SQLITE_OK);
  const std::string sql =
      "UPDATE kernels SET cubin = CAST('" + evil.cubin + "' AS BLOB), checksum = '" + fieldDigest(evil) + "'";
  REQUIRE_MESSAGE(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK, sqlite3_errmsg(handle));
  const std::string log = readFile(copy + "-wal");
  REQUIRE(!log.empty());
  sqlite3_close(handle);
  return log;
}

// This process as the other user, for as long as this lives.
class AsStranger {
public:
  AsStranger() : mask(umask(0)) { REQUIRE((setegid(kStranger) == 0 && seteuid(kStranger) == 0)); }
  ~AsStranger() {
    REQUIRE((seteuid(0) == 0 && setegid(0) == 0));
    umask(mask);
  }

private:
  mode_t mask;
};

// Puts a log under the name of the store's, if the folder lets them.
void plant(const std::string &path, const std::string &log) {
  const AsStranger stranger;
  const std::string draft = path + "-draft";
  writeFile(draft, log);
  if (std::rename(draft.c_str(), (path + "-wal").c_str()) != 0)
    std::remove(draft.c_str());
}

void takeAway(const std::string &path) {
  const AsStranger stranger;
  std::remove((path + "-wal").c_str());
}

struct Tally {
  int read = 0, refused = 0, evil = 0;
};

// A folder of its own below `folder`, with a store whose rows come from a log, and somebody who plants another.
class Scene {
public:
  Scene(mode_t mode, gid_t group) : path(folder / "place/a.db") {
    const std::string place = folder / "place";
    std::filesystem::create_directory(place);
    KernelRecord evil = own;
    own.cubin = std::string(500, 'a'), evil.cubin = std::string(500, 'e');
    {
      Store store = openStore(path, writing());
      require(store.publish(own, someWinner(own)));
    }
    log = evilLog(folder, path, evil);
    REQUIRE(chown(place.c_str(), 0, group) == 0);
    chmod(place.c_str(), mode);
    chmod(folder.path().c_str(), 0755);
  }

  // A log that is planted, or was and is taken away, before each call of an open; and one that is there throughout.
  Tally openOften(const StoreOptions &options) {
    Tally tally;
    const int64_t calls = openOnce(options, 0, {}, tally);
    for (int64_t at = 1; at <= calls; ++at) {
      openOnce(options, at, [&] { plant(path, log); }, tally);
      takeAway(path);
      plant(path, log);
      openOnce(options, at, [&] { takeAway(path); }, tally);
    }
    plant(path, log);
    openOnce(options, 0, {}, tally);
    return tally;
  }

private:
  int64_t openOnce(const StoreOptions &options, int64_t at, std::function<void()> what, Tally &tally) {
    interruption = {0, at, std::move(what)};
    const Result<Store> store = Store::open(path, options);
    const Result<KernelRecord> record = store ? store->kernel("k1") : Result<KernelRecord>(store.status());
    const int64_t calls = std::exchange(interruption, {}).made;
    ++(record ? record->cubin == own.cubin ? tally.read : tally.evil : tally.refused);
    return calls;
  }

  ScratchFolder folder;
  std::string path, log;
  KernelRecord own = someKernel("k1");
};

Tally race(mode_t mode, gid_t group, StoreMode storeMode, bool isAllowed = false) {
  Scene scene(mode, group);
  StoreOptions options;
  options.mode = storeMode;
  options.allowForeignWriters = isAllowed;
  return scene.openOften(options);
}

} // namespace

TEST_CASE("[6] a log that another user puts beside the store while it is opened is never read") {
  if (geteuid() != 0) {
    MESSAGE("skipped: this process may not become another user");
    return;
  }
  struct Place {
    mode_t mode;
    gid_t group;
    bool isRead; // as one that never changes, or never
  };
  for (const Place &place :
       {Place{0777, 0, false}, Place{01777, 0, true}, Place{0775, kStranger, false}, Place{0700, 0, true}})
    for (StoreMode mode : {StoreMode::readOnly, StoreMode::immutable, StoreMode::readWrite}) {
      const Tally tally = race(place.mode, place.group, mode);
      CAPTURE(place.mode);
      CAPTURE(int(mode));
      CHECK(tally.evil == 0);
      const bool isToBeWritten = mode == StoreMode::readWrite && place.mode != 0700;
      CHECK((tally.read > 0) == (place.isRead && !isToBeWritten));
      CHECK((place.mode != 0700 || tally.refused == 0));
    }
}

TEST_CASE("[6] where foreign writers are allowed, that log is read: what is tried above would be found") {
  if (geteuid() != 0) {
    MESSAGE("skipped: this process may not become another user");
    return;
  }
  const Tally tally = race(0777, 0, StoreMode::readOnly, /*isAllowed=*/true);
  MESSAGE(tally.evil << " of " << tally.evil + tally.read + tally.refused << " times");
  CHECK(tally.evil > 0);
}

TEST_CASE("[6] folders: whose writers are trusted, and what is said otherwise") {
  ScratchFolder folder;
  const std::string place = folder / "place", path = place + "/a.db";
  std::filesystem::create_directory(place);
  {
    openStore(path, writing());
  }
  auto codeOf = [&](StoreMode mode) {
    StoreOptions options;
    options.mode = mode;
    return Store::open(path, options).status().code();
  };
  chmod(place.c_str(), 0777);
  for (StoreMode mode : {StoreMode::readOnly, StoreMode::readWrite, StoreMode::immutable})
    CHECK(codeOf(mode) == StatusCode::denied);
  const std::string said = Store::open(path).status().message();
  CHECK_MESSAGE(said.find("other users may write the folder '" + place + "', who could put code in its place") !=
                    std::string::npos,
                said);
  StoreOptions allowed;
  allowed.allowForeignWriters = true;
  CHECK(Store::open(path, allowed).isOk());
  chmod(place.c_str(), 01777);
  CHECK(codeOf(StoreMode::readOnly) == StatusCode::ok);
  CHECK(codeOf(StoreMode::immutable) == StatusCode::ok);
  CHECK(codeOf(StoreMode::readWrite) == StatusCode::denied);
  CHECK(Store::open(place + "/new.db", writing()).status().message().find("choose a folder that is yours alone") !=
        std::string::npos);
  chmod(place.c_str(), 0755);
  chmod(folder.path().c_str(), 0777); // who may write above may put another folder in the place of this one
  CHECK(codeOf(StoreMode::readOnly) == StatusCode::denied);
  chmod(folder.path().c_str(), 01777);
  CHECK(codeOf(StoreMode::readWrite) == StatusCode::ok);
  chmod(folder.path().c_str(), 0700);
  if (getegid() == geteuid()) { // a group of its own, as most systems give every user
    chmod(place.c_str(), 0775);
    CHECK(codeOf(StoreMode::readWrite) == StatusCode::ok);
  }
  chmod(place.c_str(), 0755);
  std::filesystem::create_symlink("nowhere.db", place + "/link.db");
  CHECK(Store::open(place + "/link.db", writing()).status().code() == StatusCode::invalidArgument);
}
