//===- store_process_test.cpp - many threads, many processes, kill -9 -------===//
// Numbers in brackets are the promises of runtime/Store/Store.h.
#include "kill_fixture.h"
#include "store_fixture.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <optional>
#include <random>
#include <thread>

using namespace heddle;
using namespace heddle::test;

namespace {

// The content of a kernel follows from its key, so that a reader can tell a half-written one.
KernelRecord numbered(int process, int i) {
  return someKernel("k" + std::to_string(process) + "-" + std::to_string(i), "pattern-a",
                    size_t(3000 + 1000 * (i % 7)));
}

Status publishNumbered(Store &store, int process, int i) {
  KernelRecord record = numbered(process, i);
  return store.publish(record, someWinner(record, {process, i, 1}));
}

// Empty if every winner has its kernel, whole and as it was published.
std::string findDamage(const Store &store) {
  Result<std::vector<Winner>> winners = store.winners();
  if (!winners)
    return winners.status().str();
  for (const Winner &winner : *winners) {
    Result<KernelRecord> record = store.kernel(winner.contentKey);
    if (!record)
      return record.status().str();
    if (record->cubin != numbered(int(winner.workPerSm), int(winner.tilesPerRow)).cubin)
      return "kernel " + winner.contentKey + " has other bytes";
  }
  return "";
}

// Writes a byte to `report` after each kernel, unless that is -1.
int publishMany(const std::string &path, int process, int count, int report = -1) {
  Result<Store> store = Store::open(path, writing());
  if (!store) {
    std::fprintf(stderr, "%s\n", store.status().str().c_str());
    return 1;
  }
  for (int i = 0; i < count; ++i)
    if (!publishNumbered(*store, process, i).isOk() || (report >= 0 && write(report, "", 1) != 1))
      return 2;
  return 0;
}

int readUntil(const std::string &path, int kernels) {
  StoreOptions reading;
  reading.busyTimeoutMs = writing().busyTimeoutMs;
  for (;;) {
    Result<Store> store = Store::open(path, reading);
    if (!store && store.status().code() == StatusCode::notFound)
      continue;
    if (!store)
      return 1;
    if (!findDamage(*store).empty())
      return 2;
    if (store->counts()->kernels == kernels)
      return 0;
  }
}

} // namespace

TEST_CASE("[2] processes create, write and read one file at once") {
  ScratchFolder folder;
  std::string path = folder / "a.db";
  constexpr int kWriters = 4, kEach = 25;
  std::vector<pid_t> children;
  for (int process = 0; process < kWriters; ++process)
    children.push_back(startChild([&, process] { return publishMany(path, process, kEach); }));
  for (int reader = 0; reader < 2; ++reader)
    children.push_back(startChild([&] { return readUntil(path, kWriters * kEach); }));
  for (pid_t child : children)
    CHECK(waitFor(child) == 0);
  Store store = openStore(path, {});
  CHECK(store.counts()->kernels == kWriters * kEach);
  CHECK(store.counts()->winners == kWriters * kEach);
  CHECK(findDamage(store) == "");
}

TEST_CASE("[2] processes that open a new file at once all get it") {
  constexpr int kRounds = 40, kProcesses = 8;
  ScratchFolder folder;
  int failed = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::string path = folder / (std::to_string(round) + ".db");
    std::vector<pid_t> children;
    for (int process = 0; process < kProcesses; ++process)
      children.push_back(startChild([&] { return publishMany(path, 0, 0); }));
    for (pid_t child : children)
      failed += waitFor(child) != 0;
  }
  CHECK(failed == 0);
}

TEST_CASE("[2] threads share one handle and hold their own") {
  ScratchFolder folder;
  std::string path = folder / "a.db";
  Store shared = openStore(path, writing());
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Result<Store> own = Store::open(path, writing());
      for (int i = 0; i < 20; ++i) {
        bool isPublished = publishNumbered(t % 2 ? shared : *own, t, i).isOk();
        Result<StoreLookup> found = shared.lookup(WinnerKey(someFamily(), {t, i, 1}, someDevice()));
        if (!isPublished || !found || found->match != MatchKind::exact)
          ++failures;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(failures == 0);
  CHECK(shared.counts()->winners == 80);
  CHECK(findDamage(shared) == "");
}

// Whether another process would find `path` locked as a connection locks it for as long as it lives.
static bool isHeldOpen(const std::string &path) {
  constexpr off_t kSharedBytes = 0x40000002, kSharedSize = 510; // SQLite's file format, of its locks
  const pid_t child = fork();
  if (child == 0) {
    const int file = ::open(path.c_str(), O_RDWR);
    struct flock asked = {};
    asked.l_type = F_WRLCK, asked.l_whence = SEEK_SET, asked.l_start = kSharedBytes, asked.l_len = kSharedSize;
    _exit(fcntl(file, F_GETLK, &asked) == 0 && asked.l_type != F_UNLCK);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

TEST_CASE("[2] opening a store again takes no lock of the process away") {
  ScratchFolder folder;
  const std::string path = folder / "a.db";
  std::optional<Store> first = openStore(path, writing());
  REQUIRE(publishNumbered(*first, 0, 0).isOk());
  CHECK(isHeldOpen(path));
  {
    const Result<Store> second = Store::open(path);
    REQUIRE(second.isOk());
    CHECK(isHeldOpen(path));
    CHECK(Store::open(path, writing()).isOk());
    CHECK_FALSE(Store::open(folder / "none.db").isOk());
  }
  CHECK(isHeldOpen(path));
  first.reset();
  CHECK_FALSE(isHeldOpen(path));
}

// A child publishes until it is killed at a call and reports every kernel that is in. Every third round starts from no
// file and ends within the calls that make one and publish once.
TEST_CASE("[1] kill -9 at any point leaves whole winners, and everything that was reported") {
  ScratchFolder folder;
  std::string path = folder / "a.db";
  const int64_t first = callsOf([&] { return publishMany(folder / "one.db", 0, 1); });
  const int64_t both = callsOf([&] { return publishMany(folder / "many.db", 0, 9); });
  std::mt19937 random(4);
  int reportedInAll = 0;
  for (int round = 0; round < 45; ++round) {
    CAPTURE(round);
    bool isCreating = round % 3 == 0;
    if (isCreating)
      for (const char *suffix : {"", "-wal", "-shm", "-journal"})
        std::filesystem::remove(path + suffix);
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    killAtCall(random, isCreating ? first : both, [&] { return publishMany(path, round, 1000000, ends[1]); });
    close(ends[1]);
    int reported = 0;
    char byte = 0;
    while (read(ends[0], &byte, 1) == 1)
      ++reported;
    close(ends[0]);
    reportedInAll += reported;
    Store store = openStore(path, writing());
    CHECK(findDamage(store) == "");
    for (int i = 0; i < reported; ++i)
      CHECK_MESSAGE(store.kernel(numbered(round, i).contentKey).isOk(), "lost kernel " << i);
    CHECK(store.counts()->kernels == store.counts()->winners);
    CHECK(store.verify()->problems.empty());
  }
  CHECK(reportedInAll > 45); // which calls are drawn is the same in every run
}

TEST_CASE("[2] a writer that holds the file too long is an io error, not a wait for ever") {
  ScratchFolder folder;
  std::string path = folder / "a.db";
  StoreOptions impatient = writing();
  impatient.busyTimeoutMs = 50;
  Store store = openStore(path, impatient);
  REQUIRE(publishNumbered(store, 1, 1).isOk());
  sqlite3 *holder = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &holder) == SQLITE_OK);
  REQUIRE(sqlite3_exec(holder, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK);
  Status refused = publishNumbered(store, 1, 2);
  CHECK(refused.code() == StatusCode::io);
  CHECK(refused.message().find("another process holds the file") != std::string::npos);
  CHECK(findDamage(store) == ""); // readers go on
  CHECK(openStore(path, impatient).counts()->winners == 1);
  REQUIRE(sqlite3_exec(holder, "COMMIT", nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(holder);
  CHECK(publishNumbered(store, 1, 2).isOk());
}
