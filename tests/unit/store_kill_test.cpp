//===- store_kill_test.cpp - SIGKILL while rows are written -----------------===//
// After it the file opens and verifies, what was finished is there, and the work goes on where it stopped. Kills are at
// calls drawn from those that change a file in the whole run: 10 of each kind, 200 with HEDDLE_TEST_ALL=1. Numbers in
// brackets are the promises of runtime/Store/Store.h.
#include "kill_fixture.h"
#include "store_contents.h"

#include <set>

using namespace heddle;
using namespace heddle::test;

namespace {

const int kKills = std::getenv("HEDDLE_TEST_ALL") ? 200 : 10;

std::string numbered(int i) { return "block_m=" + std::to_string(i); }

// A tune: measures the configurations that the file does not have yet, publishes a new winner now and then. Counts in
// `finished` how often each was recorded.
int tuneOn(const std::string &path, int trials, SharedNumbers &finished) {
  Result<Store> store = Store::open(path, writing());
  if (!store)
    return 1;
  Result<std::vector<Trial>> known = store->trials(Trial::sessionKey(someTrial("")));
  if (!known)
    return 2;
  std::set<std::string> done;
  for (const Trial &trial : *known)
    done.insert(trial.config);
  for (int i = 0; i < trials; ++i) {
    if (done.count(numbered(i)))
      continue;
    if (!store->recordTrial(someTrial(numbered(i), 1000 - i)).isOk())
      return 3;
    finished[size_t(i)] = finished[size_t(i)] + 1;
    if (i % 3)
      continue;
    KernelRecord record = someKernel(numbered(i), "pattern-a", 20000);
    if (!store->publish(record, someWinner(record, {i, 1, 1})).isOk())
      return 4;
  }
  return 0;
}

// Every winner has its kernel, and everything is as it was published.
void checkSound(const std::string &path) {
  Result<Store> store = Store::open(path, writing());
  REQUIRE_MESSAGE(store.isOk(), store.status().str());
  VerifyReport report = require(store->verify());
  CHECK_MESSAGE(report.problems.empty(), report.problems.front());
  CHECK(report.counts.kernels == report.counts.winners);
}

// Shards of different keys; merging them is all or nothing for each.
class Shards {
public:
  static constexpr int kShards = 6, kRows = 25;
  explicit Shards(const ScratchFolder &folder) {
    for (int shard = 0; shard < kShards; ++shard) {
      paths.push_back(folder / ("shard" + std::to_string(shard)));
      Store store = openStore(paths.back(), writing());
      for (int row = 0; row < kRows; ++row) {
        KernelRecord record = someKernel("k" + std::to_string(shard) + "-" + std::to_string(row), "pattern-a", 8000);
        require(store.publish(record, someWinner(record, {shard, row, 1})));
        Trial trial = someTrial(numbered(row));
        trial.workPerSm = shard;
        require(store.recordTrial(trial));
      }
      require(store.finalise());
    }
  }
  int mergeInto(const std::string &path, SharedNumbers &finished) const {
    for (size_t shard = 0; shard < paths.size(); ++shard) {
      Result<Store> store = Store::open(path, writing());
      if (!store || !store->merge({paths[shard]}).isOk())
        return 1;
      finished[shard] = 1;
    }
    return 0;
  }
  // Whole shards only, among them all that were finished.
  void check(const std::string &path, const SharedNumbers &finished) const {
    std::vector<int> winners(kShards), trials(kShards);
    Store store = openStore(path, {});
    for (const Winner &winner : require(store.winners()))
      ++winners[size_t(winner.workPerSm)];
    for (const Trial &trial : require(store.allTrials()))
      ++trials[size_t(trial.workPerSm)];
    for (int shard = 0; shard < kShards; ++shard) {
      CHECK((winners[size_t(shard)] == 0 || winners[size_t(shard)] == kRows));
      CHECK(winners[size_t(shard)] == trials[size_t(shard)]);
      if (finished[size_t(shard)])
        CHECK(winners[size_t(shard)] == kRows);
    }
  }
  std::vector<std::string> paths;
};

} // namespace

TEST_CASE("[1] killed while tuning: the file is sound and no finished trial is done again") {
  std::mt19937 random(1);
  constexpr int kTrials = 120, kOfEach = 5;
  for (int kills = 0; kills < kKills;) {
    ScratchFolder folder;
    std::string path = folder / "a.db";
    SharedNumbers dry(kTrials), finished(kTrials);
    const int64_t calls = callsOf([&] { return tuneOn(folder / "dry.db", kTrials, dry); });
    for (int i = 0; i < kOfEach && kills < kKills; ++i, ++kills) {
      CAPTURE(kills);
      killAtCall(random, calls / (kOfEach + 1), [&] { return tuneOn(path, kTrials, finished); });
      if (!std::filesystem::exists(path))
        continue;
      checkSound(path);
      std::string contents = contentsOf(path);
      for (int trial = 0; trial < kTrials; ++trial)
        if (finished[size_t(trial)])
          CHECK_MESSAGE(contents.find("config=" + numbered(trial) + " ") != std::string::npos, "lost trial " << trial);
    }
    CHECK(waitFor(startChild([&] { return tuneOn(path, kTrials, finished); })) == 0);
    checkSound(path);
    for (int trial = 0; trial < kTrials; ++trial)
      CHECK_MESSAGE(finished[size_t(trial)] <= 1, "trial " << trial << " was done again");
    CHECK(require(openStore(path, {}).counts()).trials == kTrials);
  }
}

TEST_CASE("[1] killed while merging: each file is in whole or not at all, and merging again completes it") {
  ScratchFolder folder;
  Shards shards(folder);
  std::mt19937 random(2);
  SharedNumbers dry(Shards::kShards);
  const int64_t calls = callsOf([&] { return shards.mergeInto(folder / "whole.db", dry); });
  std::string expected = contentsOf(folder / "whole.db");
  for (int kills = 0; kills < kKills; ++kills) {
    CAPTURE(kills);
    std::string path = folder / ("into" + std::to_string(kills));
    SharedNumbers finished(Shards::kShards);
    killAtCall(random, calls, [&] { return shards.mergeInto(path, finished); });
    if (std::filesystem::exists(path)) {
      checkSound(path);
      shards.check(path, finished);
    }
    CHECK(shards.mergeInto(path, finished) == 0);
    CHECK(contentsOf(path) == expected);
    for (const std::string &shard : shards.paths)
      CHECK(openStore(shard, {}).verify()->problems.empty());
    for (const char *suffix : {"", "-wal", "-shm"})
      std::filesystem::remove(path + suffix);
  }
}

TEST_CASE("[1] killed while exporting: the file is there whole or not at all") {
  ScratchFolder folder;
  Shards shards(folder);
  std::string all = folder / "all.db", out = folder / "out.db";
  SharedNumbers finished(Shards::kShards);
  REQUIRE(shards.mergeInto(all, finished) == 0);
  std::string expected = contentsOf(all);
  auto work = [&] { return openStore(all, {}).exportTo(out, {}).isOk() ? 0 : 1; };
  const int64_t calls = callsOf(work);
  std::mt19937 random(3);
  for (int kills = 0; kills < kKills; ++kills) {
    CAPTURE(kills);
    std::filesystem::remove(out);
    killAtCall(random, calls, work);
    if (std::filesystem::exists(out))
      CHECK(contentsOf(out) == expected);
    CHECK(contentsOf(all) == expected);
  }
  std::filesystem::remove(out);
  CHECK(work() == 0);
  CHECK(contentsOf(out) == expected);
}
