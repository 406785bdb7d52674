//===- store_recovery_test.cpp - what a killed writer leaves, and folders that cannot be written ---===//
// Numbers in brackets are the promises of runtime/Store/Store.h.
#include "process_fixture.h"
#include "store_contents.h"

#include <sqlite3.h>
#include <sys/stat.h>

using namespace heddle;
using namespace heddle::test;

namespace {

void makeStore(const std::string &path) {
  Store store = openStore(path, writing());
  const KernelRecord record = someKernel("k1");
  require(store.publish(record, someWinner(record)));
}

std::string schemaOf(const std::string &path) {
  sqlite3 *handle = nullptr;
  sqlite3_stmt *statement = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &handle) == SQLITE_OK);
  REQUIRE(sqlite3_prepare_v2(handle, "SELECT group_concat(sql, ';') FROM sqlite_schema", -1, &statement, nullptr) ==
          SQLITE_OK);
  REQUIRE(sqlite3_step(statement) == SQLITE_ROW);
  const std::string sql = reinterpret_cast<const char *>(sqlite3_column_text(statement, 0));
  sqlite3_finalize(statement);
  sqlite3_close(handle);
  return sql;
}

// A process that is killed when the file has its pages and the transaction has not ended: the journal is hot.
void killWithin(const std::string &path, const std::string &sql) {
  CHECK(waitFor(startChild([&] {
          sqlite3 *handle = nullptr;
          const bool isWritten =
              sqlite3_open(path.c_str(), &handle) == SQLITE_OK &&
              sqlite3_exec(handle, ("BEGIN IMMEDIATE;" + sql).c_str(), nullptr, nullptr, nullptr) == SQLITE_OK &&
              sqlite3_db_cacheflush(handle) == SQLITE_OK;
          if (isWritten)
            raise(SIGKILL);
          return 1;
        })) == 200 + SIGKILL);
  REQUIRE(std::filesystem::file_size(path + "-journal") > 0);
}

// As another user, who may read only, where this process can become one.
int asReader(const std::function<int()> &work) {
  return waitFor(startChild([&] { return geteuid() == 0 && setuid(65534) != 0 ? 99 : work(); }));
}

StoreOptions reading() {
  StoreOptions options;
  options.allowForeignWriters = geteuid() == 0 || geteuid() == 65534; // the files are then another user's
  return options;
}

void removeStore(const std::string &path) {
  for (const char *suffix : {"", "-wal", "-shm", "-journal"})
    std::filesystem::remove(path + suffix);
}

} // namespace

TEST_CASE("[1] killed within a write without a log: reading undoes it") {
  ScratchFolder folder;
  const std::string path = folder / "a.db", other = folder / "b.db";
  makeStore(other);
  auto reads = [&]() -> Status {
    HEDDLE_ASSIGN(Store store, Store::open(path));
    return store.kernel("k1").status();
  };
  auto previews = [&] { return Store::previewMerge(path, {other}).status(); };
  auto isSource = [&] { return Store::previewMerge(folder / "none.db", {path}).status(); };
  for (const std::function<Status()> &use : {std::function<Status()>(reads), {previews}, {isSource}}) {
    removeStore(path);
    makeStore(path);
    require(openStore(path, writing()).finalise());
    killWithin(path, "DELETE FROM winners; DELETE FROM kernels");
    require(use());
    CHECK(openStore(path, {}).verify()->problems.empty());
    CHECK(openStore(path, {}).counts()->winners == 1);
  }
}

TEST_CASE("[1] killed while a store is made: reading finds nothing, and whoever writes makes it") {
  ScratchFolder folder;
  const std::string path = folder / "a.db", other = folder / "b.db";
  makeStore(other);
  const std::string sql = schemaOf(other) + "; PRAGMA application_id = 1751475300; PRAGMA user_version = 5";
  killWithin(path, sql);
  REQUIRE(std::filesystem::file_size(path) > 0);
  const Status empty = Store::open(path).status();
  CHECK(empty.code() == StatusCode::notFound);
  CHECK_MESSAGE(empty.message().find("the file is empty; publishing or tuning fills it") != std::string::npos,
                empty.message());
  removeStore(path);
  killWithin(path, sql);
  require(Store::previewMerge(path, {other}).status());
  require(openStore(path, writing()).merge({other}).status());
  CHECK(contentsOf(path) == contentsOf(other));
}

TEST_CASE("[1] who may not undo what was killed is told who can") {
  ScratchFolder folder;
  const std::string path = folder / "a.db";
  makeStore(path);
  require(openStore(path, writing()).finalise());
  killWithin(path, "DELETE FROM winners; DELETE FROM kernels");
  chmod(folder.path().c_str(), 0555);
  if (geteuid() != 0) {
    MESSAGE("skipped: this process may not become another user");
    return;
  }
  CHECK(asReader([&] {
          const Status refused = Store::open(path, reading()).status();
          const bool isSaid = refused.message().find("run `heddle cache verify --db=" + path +
                                                     "` as a user who may write") != std::string::npos;
          if (!isSaid)
            std::fprintf(stderr, "%s\n", refused.str().c_str());
          return isSaid ? 0 : 1;
        }) == 0);
  chmod(folder.path().c_str(), 0755);
  CHECK(openStore(path, {}).counts()->winners == 1);
}

TEST_CASE("a store with a log is read in a folder that cannot be written") {
  ScratchFolder folder;
  const std::string path = folder / "a.db";
  makeStore(path); // closed, with the mode of a log and no log
  REQUIRE(!std::filesystem::exists(path + "-wal"));
  chmod(folder.path().c_str(), 0555);
  auto read = [&] {
    Result<Store> store = Store::open(path, reading());
    if (!store || !store->kernel("k1") || !store->verify()->problems.empty()) {
      std::fprintf(stderr, "%s\n", store.status().str().c_str());
      return 1;
    }
    return Store::previewMerge(folder.path() + "/none.db", {path}, reading()).isOk() ? 0 : 2;
  };
  CHECK(asReader(read) == 0);
  chmod(folder.path().c_str(), 0755);
  // What a killed writer left in its log is read as well, as long as its index is there.
  CHECK(waitFor(startChild([&] {
          Result<Store> store = Store::open(path, writing());
          const KernelRecord record = someKernel("k2");
          if (store && store->publish(record, someWinner(record, {9, 9, 1})).isOk())
            raise(SIGKILL);
          return 1;
        })) == 200 + SIGKILL);
  chmod(folder.path().c_str(), 0555);
  CHECK(asReader([&] { return Store::open(path, reading())->kernel("k2").isOk() ? 0 : 1; }) == 0);
  chmod(folder.path().c_str(), 0755);
  std::filesystem::remove(path + "-shm");
  chmod(folder.path().c_str(), 0555);
  if (geteuid() == 0)
    CHECK(asReader([&] {
            const Status refused = Store::open(path, reading()).status();
            return refused.message().find("copy both files to a folder of your own") != std::string::npos ? 0 : 1;
          }) == 0);
  chmod(folder.path().c_str(), 0755);
  CHECK(openStore(path, {}).kernel("k2").isOk());
}
