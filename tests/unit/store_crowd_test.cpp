//===- store_crowd_test.cpp - many processes tune into one file -------------===//
// No row is lost or doubled and nobody is told that the database is locked. Numbers in brackets are the promises of
// runtime/Store/Store.h.
#include "process_fixture.h"
#include "store_contents.h"

using namespace heddle;
using namespace heddle::test;

namespace {

constexpr int kProcesses = 16, kRounds = 10;

// What one process writes: a winner and a trial of its own, a winner and a trial that all write, a name, a device.
Status writeRound(Store &store, int process, int round) {
  std::string name = std::to_string(process) + "-" + std::to_string(round);
  KernelRecord own = someKernel("own-" + name), shared = someKernel("shared-" + std::to_string(round));
  HEDDLE_TRY(store.publish(own, someWinner(own, {100 + process, round, 1})));
  HEDDLE_TRY(store.publish(shared, someWinner(shared, {1, round, 1})));
  HEDDLE_TRY(store.recordTrial(someTrial("own=" + name)));
  HEDDLE_TRY(store.recordTrial(someTrial("shared=" + std::to_string(round))));
  HEDDLE_TRY(store.setName({"name-" + std::to_string(process), "pattern-a", "", 0}));
  DeviceRecord device;
  static_cast<DeviceIdentity &>(device) = someDevice();
  HEDDLE_TRY(store.recordDevice(device));
  Result<StoreLookup> found = store.lookup(WinnerKey(someFamily(), {100 + process, round, 1}, someDevice()));
  HEDDLE_TRY(found.status());
  return found->record.contentKey == own.contentKey
             ? Status()
             : Status::internal("another process's kernel: " + found->record.contentKey);
}

int tellAndFail(const Status &status) {
  std::fprintf(stderr, "%s\n", status.str().c_str());
  return 1;
}

int writeRows(const std::string &path, int process) {
  Result<Store> store = Store::open(path, writing());
  if (!store)
    return tellAndFail(store.status());
  for (int round = 0; round < kRounds; ++round)
    if (Status status = writeRound(*store, process, round); !status.isOk())
      return tellAndFail(status);
  return 0;
}

int mergeShard(const std::string &path, const std::string &shard) {
  Result<Store> store = Store::open(path, writing());
  Status status = store ? store->merge({shard}).status() : store.status();
  return status.isOk() ? 0 : tellAndFail(status);
}

} // namespace

TEST_CASE("[2] sixteen processes tune into one file while shards are merged into it") {
  ScratchFolder folder;
  std::string path = folder / "a.db";
  constexpr int kShards = 4;
  auto shard = [&](int i) { return folder / ("shard" + std::to_string(i)); };
  for (int i = 0; i < kShards; ++i) {
    REQUIRE(writeRows(shard(i), 100 + i) == 0);
    require(openStore(shard(i), writing()).finalise());
  }
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process)
    children.push_back(startChild([&, process] { return writeRows(path, process); }));
  for (int i = 0; i < kShards; ++i)
    children.push_back(startChild([&, i] { return mergeShard(path, shard(i)); }));
  for (pid_t child : children)
    CHECK(waitFor(child) == 0);
  Store store = openStore(path, {});
  StoreCounts counts = require(store.counts());
  constexpr int64_t kRows = (kProcesses + kShards) * kRounds + kRounds;
  CHECK(counts.kernels == kRows);
  CHECK(counts.winners == kRows);
  CHECK(counts.trials == kRows);
  CHECK(counts.names == kProcesses + kShards);
  CHECK(counts.devices == 1);
  CHECK(store.verify()->problems.empty());
  std::string contents = contentsOf(store);
  for (int process = 0; process < kProcesses + kShards; ++process)
    for (int round = 0; round < kRounds; ++round) {
      std::string name =
          std::to_string(process < kProcesses ? process : 100 + process - kProcesses) + "-" + std::to_string(round);
      CHECK_MESSAGE(contents.find("config=own=" + name + " ") != std::string::npos, name);
      CHECK_MESSAGE(store.kernel("own-" + name).isOk(), name);
    }
}
