//===- store_strangers_test.cpp - folders that others may write -------------===//
// Another user puts a log with code of their own beside the store, again and again, while it is opened: 500 times, 5000
// with HEDDLE_TEST_ALL=1. Numbers in brackets are the promises of runtime/Store/Store.h.
#include "process_fixture.h"
#include "runtime/Core/FieldText.h"
#include "store_contents.h"
#include "store_sql.h"

#include <sys/stat.h>

using namespace heddle;
using namespace heddle::test;

namespace {

constexpr uid_t kStranger = 65534;

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

// Until it is killed: a log of its own under the name of the store's.
int plant(const std::string &path, const std::string &log) {
  umask(0);
  if (setgid(kStranger) != 0 || setuid(kStranger) != 0)
    return 1;
  for (int i = 0;; ++i) {
    const std::string draft = path + "-draft" + std::to_string(i % 2);
    writeFile(draft, log);
    if (std::rename(draft.c_str(), (path + "-wal").c_str()) != 0)
      std::remove(draft.c_str());
    usleep(200);
    std::remove((path + "-wal").c_str());
  }
}

struct Tally {
  int read = 0, refused = 0, evil = 0;
};

Tally openOften(const std::string &path, const KernelRecord &own, const StoreOptions &options) {
  Tally tally;
  const int rounds = std::getenv("HEDDLE_TEST_ALL") ? 5000 : 500;
  for (int i = 0; i < rounds; ++i) {
    const Result<Store> store = Store::open(path, options);
    const Result<KernelRecord> record = store ? store->kernel("k1") : Result<KernelRecord>(store.status());
    ++(record ? record->cubin == own.cubin ? tally.read : tally.evil : tally.refused);
  }
  return tally;
}

// A folder of its own below `folder`, with a store whose rows come from a log, and somebody who plants another.
Tally race(const ScratchFolder &folder, mode_t mode, gid_t group, StoreMode storeMode, bool isAllowed = false) {
  const std::string place = folder / ("place" + std::to_string(mode)), path = place + "/a.db";
  std::filesystem::create_directory(place);
  KernelRecord own = someKernel("k1"), evil = own;
  own.cubin = std::string(500, 'a'), evil.cubin = std::string(500, 'e');
  {
    Store store = openStore(path, writing());
    require(store.publish(own, someWinner(own)));
  }
  const std::string log = evilLog(folder, path, evil);
  REQUIRE(chown(place.c_str(), 0, group) == 0);
  chmod(place.c_str(), mode);
  chmod(folder.path().c_str(), 0755);
  const pid_t stranger = startChild([&] { return plant(path, log); });
  StoreOptions options;
  options.mode = storeMode;
  options.allowForeignWriters = isAllowed;
  const Tally tally = openOften(path, own, options);
  kill(stranger, SIGKILL);
  waitFor(stranger);
  return tally;
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
      ScratchFolder folder;
      const Tally tally = race(folder, place.mode, place.group, mode);
      CAPTURE(place.mode);
      CAPTURE(int(mode));
      CHECK(tally.evil == 0);
      const bool isToBeWritten = mode == StoreMode::readWrite && place.mode != 0700;
      CHECK((tally.read > 0) == (place.isRead && !isToBeWritten));
      CHECK((place.mode != 0700 || tally.refused == 0));
    }
}

TEST_CASE("[6] where foreign writers are allowed, that log is read: the race above is one") {
  if (geteuid() != 0) {
    MESSAGE("skipped: this process may not become another user");
    return;
  }
  ScratchFolder folder;
  const Tally tally = race(folder, 0777, 0, StoreMode::readOnly, /*isAllowed=*/true);
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
