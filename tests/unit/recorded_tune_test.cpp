//===- recorded_tune_test.cpp - searches that a table answers ------------------===//
// Whole sessions with a database, without a GPU: what they find, what they keep, and that none is begun again. Kills
// are at calls drawn from those by which a session changes files: 5, or 200 with HEDDLE_TEST_ALL=1.
#include "support/Places.h"
#include "tests/recorded/RecordedTune.h"
#include "compiler/Session/PreparedPattern.h"
#include "kill_fixture.h"
#include "runtime/Core/FieldText.h"
#include "tests/unit/recorded_workloads.h"
#include "tests/unit/store_fixture.h"

#include <map>
#include <random>

using namespace heddle;
using namespace heddle::test;

namespace {

const RecordedWorkload &first() { return recordedWorkloads().front(); }

tuner::RecordedTable tableAt(const std::string &path) {
  auto table = tuner::RecordedTable::load(path);
  REQUIRE_MESSAGE(table.isOk(), table.status().message());
  return table.take();
}

tuner::RecordedTable table(const RecordedWorkload &workload = first()) {
  return tableAt(std::string(test::places().data + "/tuner/") + workload.table + ".csv");
}

TuneRequest requestFor(const RecordedWorkload &workload, const LoadedWorkload &loaded) {
  TuneRequest request;
  request.shape = loaded.shape;
  request.headDim = request.valueDim = workload.headDim;
  request.options.budgetSeconds = 600;
  return request;
}

/// The whole session, or its first trials.
Result<TuneOutcome> tuneInto(const std::string &path, double pace = 0, std::optional<size_t> trials = {},
                             const RecordedWorkload &workload = first()) {
  const LoadedWorkload loaded = load(workload);
  HEDDLE_ASSIGN(Store store, Store::open(path, writing()));
  TuneRequest request = requestFor(workload, loaded);
  std::atomic<bool> cancel{false};
  request.options.cancel = &cancel;
  request.options.progress = [&](const tuner::Progress &now) { cancel = trials && now.done >= *trials; };
  return tuneRecorded(*loaded.file, request, table(workload), pace, store);
}

TuneOutcome tuned(const std::string &path) {
  Result<TuneOutcome> outcome = tuneInto(path);
  REQUIRE_MESSAGE(outcome.isOk(), outcome.status().message());
  return outcome.take();
}

/// When each configuration was tried, by session and configuration.
std::map<std::string, int64_t> trialsIn(const std::string &path) {
  std::map<std::string, int64_t> trials;
  Result<Store> store = Store::open(path, writing());
  REQUIRE_MESSAGE(store.isOk(), store.status().message());
  const std::vector<Trial> rows = *store->allTrials();
  for (const Trial &trial : rows)
    trials[Trial::sessionKey(trial) + " " + trial.config] = trial.createdUnix;
  CHECK(trials.size() == rows.size());
  return trials;
}

} // namespace

TEST_CASE("a session over all rows finds the best of the table and files it for the GPU that the table names") {
  ScratchFolder folder;
  const std::string path = folder / "a.db";
  const TuneOutcome outcome = tuned(path);
  const size_t rows = table().trials().size();
  CHECK(outcome.search.end == tuner::EndReason::exhausted);
  CHECK(outcome.search.feasible == rows);
  CHECK(outcome.search.measuredNow == rows);
  REQUIRE(outcome.search.winner);
  CHECK(outcome.medianUs == table().best()->medianUs);
  CHECK(outcome.key.deviceName == "NVIDIA H200");
  CHECK(outcome.key.arch == deviceOf(table())->arch);
  CHECK(outcome.key.smCount == 132);
  CHECK(outcome.key.memoryGib == 140);
  CHECK(trialsIn(path).size() == rows);

  Store store = openStore(path, writing());
  if (outcome.record) {
    const StoreLookup found = *store.lookup(LookupQuery(outcome.key));
    CHECK(found.match == MatchKind::exact);
    CHECK(found.winner.isTuned == 1);
    CHECK(found.winner.medianUs == outcome.medianUs);
    CHECK(found.winner.driverVersion == 0);
    CHECK(found.record.contentKey == outcome.record->contentKey);
  } else { // no compiler here
    CHECK(store.winners()->empty());
  }
}

TEST_CASE("another length of the same bucket is tuned afresh and has a winner of its own") {
  ScratchFolder folder;
  const std::string path = folder / "a.db";
  RecordedWorkload longer = first();
  longer.seqlen += 64;
  const TuneOutcome one = tuned(path);
  Result<TuneOutcome> other = tuneInto(path, 0, {}, longer);
  REQUIRE_MESSAGE(other.isOk(), other.status().message());
  CHECK(fieldsEqual(static_cast<const ProblemBucket &>(one.key), static_cast<const ProblemBucket &>(other->key)));
  CHECK(other->search.known == 0);
  CHECK(other->search.measuredNow == table().trials().size());
  Store store = openStore(path, writing());
  CHECK(store.allTrials()->size() == 2 * table().trials().size());
  CHECK(store.winners()->size() == (one.record ? 2 : 0));
}

TEST_CASE("a session that was cut short goes on behind its trials, and a finished one has nothing to do") {
  ScratchFolder folder;
  const std::string path = folder / "a.db";
  Result<TuneOutcome> cut = tuneInto(path, 0, 40);
  REQUIRE_MESSAGE(cut.isOk(), cut.status().message());
  const auto before = trialsIn(path);
  const TuneOutcome second = tuned(path);
  CHECK(second.search.known == before.size());
  CHECK(second.search.known + second.search.measuredNow == table().trials().size());
  const auto after = trialsIn(path);
  CHECK(cut->search.end == tuner::EndReason::cancelled);
  CHECK(before.size() == 40);
  for (const auto &trial : before)
    CHECK_MESSAGE(after.at(trial.first) == trial.second, trial.first);
  CHECK(tuned(path).search.measuredNow == 0);
}

TEST_CASE("killed at any call, a session loses no trial and repeats none") {
  std::mt19937 random(11);
  constexpr int kOfEach = 5;
  const int kills = std::getenv("HEDDLE_TEST_ALL") ? 200 : kOfEach;
  const size_t rows = table().trials().size();
  for (int begun = 0; begun < kills; begun += kOfEach) {
    ScratchFolder folder;
    const std::string path = folder / "a.db";
    const int64_t calls = callsOf([&] { return tuneInto(folder / "undisturbed.db").isOk() ? 0 : 1; });
    std::map<std::string, int64_t> before;
    for (int i = 0; i < kOfEach; ++i) {
      killAtCall(random, calls / (kOfEach + 1), [&] { return tuneInto(path).isOk() ? 0 : 1; });
      auto now = trialsIn(path);
      CHECK(now.size() >= before.size());
      for (const auto &trial : before)
        CHECK_MESSAGE((now.count(trial.first) && now.at(trial.first) == trial.second), trial.first);
      before = std::move(now);
    }
    CHECK(!before.empty());
    CHECK(before.size() < rows);
    {
      Store store = openStore(path, writing());
      CHECK(store.verify()->problems.empty());
    }
    const TuneOutcome last = tuned(path);
    CHECK(last.search.known == before.size());
    CHECK(last.search.known + last.search.measuredNow == rows);
    CHECK(trialsIn(path).size() == rows);
  }
}

TEST_CASE("processes that tune into one file at once lose no trial and double none") {
  ScratchFolder folder;
  const std::string path = folder / "a.db";
  const std::vector<RecordedWorkload> &all = recordedWorkloads();
  const size_t processes = std::getenv("HEDDLE_TEST_ALL") ? 16 : 4;
  std::vector<pid_t> children;
  size_t rows = 0;
  for (size_t i = 0; i < processes; ++i) {
    const RecordedWorkload &workload = all[i % all.size()];
    children.push_back(startChild([&] { return tuneInto(path, 0.001, {}, workload).isOk() ? 0 : 1; }));
    rows += i < all.size() ? table(workload).trials().size() : 0;
  }
  for (const pid_t child : children)
    CHECK(waitFor(child) == 0);
  CHECK(trialsIn(path).size() == rows);
  CHECK(openStore(path, writing()).verify()->problems.empty());
}

TEST_CASE("a table says which GPU it is of") {
  const std::string header = "config,outcome,median_us,spread,max_error,registers,spill_bytes,compile_seconds,"
                             "message\na=1,measured,5,0,0,1,0,1,\n";
  auto device = [&](const std::string &facts) {
    return deviceOf(*tuner::RecordedTable::parse("t.csv", facts + header));
  };
  CHECK(device("").status().message() == "t.csv: expected a line '# gpu: ...'");
  CHECK(device("# gpu: Voodoo 2\n").status().code() == StatusCode::notFound);
  CHECK(device("# gpu: NVIDIA H200\n# sm_count: many\n").status().message() ==
        "t.csv: expected a number above 0 after '# sm_count:', got 'many'");
  CHECK(device("# gpu: NVIDIA H200\n# memory_gib: 0\n").status().message() ==
        "t.csv: expected a number above 0 after '# memory_gib:', got '0'");
  const Result<DeviceIdentity> sheet = device("# gpu: NVIDIA H200\n");
  REQUIRE(sheet.isOk());
  CHECK(sheet->smCount == 132);
  CHECK(sheet->memoryGib == 0);
  tuner::RecordedTable part = *tuner::RecordedTable::parse("t.csv", header);
  setDevice(part, {"NVIDIA H200", sheet->arch, 66, 70});
  const Result<DeviceIdentity> own = deviceOf(*tuner::RecordedTable::parse("t.csv", part.text()));
  REQUIRE(own.isOk());
  CHECK(own->deviceName == "NVIDIA H200");
  CHECK(own->smCount == 66);
  CHECK(own->memoryGib == 70);
}

TEST_CASE("an error that no call of the kind can have is refused with file and line before anything is tried") {
  ScratchFolder folder;
  const LoadedWorkload loaded = load(first());
  Store store = openStore(folder / "a.db", writing());
  std::string text = table().text();
  const size_t row = text.find(",measured,"), error = text.find(",0,", row + 10) + 3; // behind median and spread
  text.replace(error, text.find(',', error) - error, "1e6");
  const auto lines = std::count(text.begin(), text.begin() + row, '\n') + 1;
  const Result<tuner::RecordedTable> bad = tuner::RecordedTable::parse("bad.csv", text);
  REQUIRE_MESSAGE(bad.isOk(), bad.status().message());
  const Result<TuneOutcome> outcome = tuneRecorded(*loaded.file, requestFor(first(), loaded), *bad, 0, store);
  CHECK(outcome.status().code() == StatusCode::invalidArgument);
  CHECK(outcome.status().message() == "bad.csv:" + std::to_string(lines) +
                                          ": max_error: expected an error of 0 to 100 of a right result, got 1e+06 "
                                          "(forward)");
  CHECK(store.allTrials()->empty());
}

TEST_CASE("rows of other kernels are refused before anything is tried") {
  ScratchFolder folder;
  const LoadedWorkload loaded = load(first());
  Store store = openStore(folder / "a.db", writing());
  tuner::RecordedTable other = tableAt(test::places().data + "/tuner/model_small.csv");
  other.setFact(kGpuFact, "NVIDIA H200");
  const Result<TuneOutcome> outcome = tuneRecorded(*loaded.file, requestFor(first(), loaded), other, 0, store);
  CHECK(outcome.status().code() == StatusCode::invalidArgument);
  CHECK(outcome.status().message().find("model_small.csv: no configuration of sm90_forward: ") != std::string::npos);
  CHECK(store.allTrials()->empty());
}
