//===- report_test.cpp - what a report says of databases ------------------------===//
// The recorded tables as databases: which call rows are of, rates and roofs, the default, estimates, comparisons; and
// that no string of a database becomes markup.
#include "compiler/Report/Report.h"
#include "compiler/Report/ReportPage.h"
#include "recorded_database.h"
#include "store_fixture.h"

#include <doctest/doctest.h>

using namespace heddle;
using namespace heddle::test;
using report::Json;

namespace {

template <class T> T taken(Result<T> result) {
  REQUIRE_MESSAGE(result.isOk(), result.status().message());
  return result.take();
}

report::KnownProblem knownProblem(const RecordedWorkload &workload) {
  LoadedWorkload loaded = load(workload);
  report::KnownProblem problem;
  problem.label =
      std::to_string(workload.batch) + "x" + std::to_string(workload.heads) + "x" + std::to_string(workload.seqlen);
  problem.file = std::move(loaded.file);
  problem.shape = loaded.shape;
  problem.kernel.headDim = problem.kernel.valueDim = workload.headDim;
  return problem;
}

std::vector<report::KnownProblem> knownProblems(size_t count = 6) {
  std::vector<report::KnownProblem> problems;
  for (size_t i = 0; i < count; ++i)
    problems.push_back(knownProblem(recordedWorkloads()[i]));
  return problems;
}

report::Report reportOf(const Store &store, std::vector<report::KnownProblem> problems = {},
                        const Store *against = nullptr) {
  report::ReportRequest request;
  request.store = &store;
  request.against = against;
  request.databases = {store.path()};
  request.problems = std::move(problems);
  return taken(report::makeReport(request));
}

const report::Workload &find(const report::Report &report, const std::string &pattern, int64_t headDim,
                             const std::string &device = "NVIDIA H200", int64_t gqaRatio = 1) {
  for (const report::Workload &workload : report.workloads)
    if (workload.pattern == pattern && workload.key.headDim == headDim && workload.key.deviceName == device &&
        workload.key.gqaRatio == gqaRatio)
      return workload;
  FAIL("no workload of " << pattern);
  return report.workloads.front();
}

struct Recorded {
  ScratchFolder scratch;
  Store make(const RecordedDatabase &what, const std::string &name = "here.db") {
    makeRecordedDatabase(scratch / name, what);
    return openStore(scratch / name, {});
  }
};

RecordedDatabase firstOnly() {
  RecordedDatabase what;
  what.workloads = 1;
  return what;
}

} // namespace

TEST_CASE("a call that is given makes rates, roof, default and estimates of what the rows alone do not say") {
  Recorded recorded;
  RecordedDatabase what;
  Store store = recorded.make(what);
  const report::Report bare = reportOf(store);
  REQUIRE(bare.workloads.size() == 6);
  for (const report::Workload &workload : bare.workloads) {
    CHECK_FALSE(workload.tflops());
    CHECK_FALSE(workload.percentOfRoof());
    CHECK_FALSE(workload.gain());
    CHECK(workload.us() > 0);
    CHECK(workload.rates.note.find("--plan") != std::string::npos);
    CHECK(workload.problem == workload.key.str());
  }

  const report::Report full = reportOf(store, knownProblems());
  REQUIRE(full.workloads.size() == 6);
  CHECK(full.unserved.empty());
  for (const report::Workload &workload : full.workloads) {
    CAPTURE(workload.pattern);
    CHECK(workload.problemNote.empty());
    CHECK(workload.rates.note.empty());
    CHECK(workload.match == MatchKind::exact);
    REQUIRE(workload.percentOfRoof());
    CHECK(*workload.percentOfRoof() > 1);
    CHECK(*workload.percentOfRoof() < 100);
    REQUIRE(workload.estimates.spearman);
    CHECK(*workload.estimates.spearman > 0.6); // docs/tuning.md: the least is longformer's
  }
  // full, 2 x 32 heads x 8192^2 pairs x 4 x 64 operations.
  const report::Workload &dense = find(full, "full", 64);
  const double flops = 2.0 * 32 * 8192 * 8192 * 4 * 64;
  CHECK(*dense.rates.flops == doctest::Approx(flops));
  CHECK(*dense.tflops() == doctest::Approx(flops / dense.us() * 1e-6));
  CHECK(dense.rates.isComputeBound);
  CHECK(*dense.percentOfRoof() == doctest::Approx(100 * *dense.tflops() / 989.4));
}

TEST_CASE("of two calls of one bucket rows are of the one that was measured") {
  Recorded recorded;
  Store store = recorded.make(firstOnly());
  RecordedWorkload longer = recordedWorkloads()[0];
  longer.seqlen += 64;
  std::vector<report::KnownProblem> problems = {knownProblem(longer), knownProblem(recordedWorkloads()[0])};
  const report::Report report = reportOf(store, std::move(problems));
  REQUIRE(report.workloads.size() == 1);
  CHECK(report.workloads[0].rates.flops);
  CHECK(report.workloads[0].problem == "2x16x8192");
  REQUIRE(report.unserved.size() == 1);
  CHECK(report.unserved[0].problem == "2x16x8256");
}

TEST_CASE("the same call given twice is one") {
  Recorded recorded;
  Store store = recorded.make(firstOnly());
  std::vector<report::KnownProblem> problems = knownProblems(1);
  problems.push_back(knownProblem(recordedWorkloads()[0]));
  CHECK(reportOf(store, std::move(problems)).workloads[0].rates.flops);
}

TEST_CASE("the gain is over the trial of the untuned default, and says why there is none") {
  Recorded recorded;
  const std::string path = recorded.scratch / "here.db";
  recorded.make(firstOnly());
  const report::Report before = reportOf(openStore(path, {}), knownProblems(1));
  REQUIRE(before.workloads.size() == 1);
  const report::Workload &workload = before.workloads[0];
  REQUIRE_FALSE(workload.estimates.defaultConfig.empty());
  Trial trial = workload.trials.front();
  trial.config = workload.estimates.defaultConfig;
  trial.configDigest = sha256Hex(trial.config);
  trial.outcome = "measured";
  trial.medianUs = 2 * workload.us();
  REQUIRE(openStore(path, writing()).recordTrial(trial).isOk());
  const report::Report after = reportOf(openStore(path, {}), knownProblems(1));
  REQUIRE(after.workloads[0].gain());
  CHECK(*after.workloads[0].gain() == doctest::Approx(2));

  trial.outcome = "spilled";
  trial.medianUs = trial.minUs = 0;
  REQUIRE(openStore(path, writing()).recordTrial(trial).isOk());
  const report::Report failed = reportOf(openStore(path, {}), knownProblems(1));
  CHECK_FALSE(failed.workloads[0].gain());
  CHECK(failed.workloads[0].defaultNote == "the untuned default was not timed: spilled");
}

TEST_CASE("a call without rows is listed with what a launch of it would get") {
  Recorded recorded;
  Store store = recorded.make(firstOnly());
  std::vector<report::KnownProblem> problems = knownProblems(2); // the second is of another pattern
  RecordedWorkload longer = recordedWorkloads()[0];
  longer.seqlen *= 8;
  problems.push_back(knownProblem(longer));
  const report::Report report = reportOf(store, std::move(problems));
  REQUIRE(report.unserved.size() == 2);
  CHECK(report.unserved[0].match == MatchKind::none);
  CHECK(report.unserved[0].us == 0);
  CHECK(report.unserved[1].match == MatchKind::nearestBucket);
  CHECK(report.unserved[1].us == report.workloads[0].us());
}

TEST_CASE("a call that was asked for on another GPU is not missing here") {
  Recorded recorded;
  Store store = recorded.make(firstOnly());
  std::vector<report::KnownProblem> problems = knownProblems(2);
  problems[1].gpus = {"Some other GPU"};
  CHECK(reportOf(store, problems).unserved.empty());
  problems[1].gpus.push_back("NVIDIA H200");
  CHECK(reportOf(store, problems).unserved.size() == 1);
}

TEST_CASE("a workload on two GPUs is one group, each with its own roof") {
  Recorded recorded;
  RecordedDatabase what;
  what.hasSecondGpu = true;
  Store store = recorded.make(what);
  const report::Report report = reportOf(store, knownProblems());
  CHECK(report.workloads.size() == 12);
  CHECK(report.devices.size() == 2);
  const report::Workload &first = find(report, "causal", 128),
                         &second = find(report, "causal", 128, "NVIDIA H100 80GB HBM3");
  CHECK(first.group == second.group);
  CHECK(first.group != find(report, "causal", 128, "NVIDIA H200", 4).group);
  CHECK(first.us() < second.us());
}

TEST_CASE("two databases: faster, slower, alike, only here, only there, equal") {
  Recorded recorded;
  RecordedDatabase here, there;
  here.workloads = 3;
  there.workloads = 2;
  there.slowdown = 1.25;
  Store ours = recorded.make(here), theirs = recorded.make(there, "there.db");
  const report::Report faster = reportOf(ours, knownProblems(), &theirs), slower = reportOf(theirs, {}, &ours);
  REQUIRE(faster.comparisons.rows.size() == 2);
  CHECK(faster.comparisons.equal == 1);
  const report::Comparison &first = faster.comparisons.rows[0];
  CHECK(first.kind == report::Comparison::Kind::faster);
  CHECK(first.ratio == doctest::Approx(1.25));
  CHECK(first.problem == "2x16x8192");
  CHECK(faster.comparisons.rows[1].kind == report::Comparison::Kind::onlyHere);
  REQUIRE(slower.comparisons.rows.size() == 2);
  CHECK(slower.comparisons.rows[0].kind == report::Comparison::Kind::slower);
  CHECK(slower.comparisons.rows[1].kind == report::Comparison::Kind::onlyThere);
  there.slowdown = 1.005;
  Store close = recorded.make(there, "close.db");
  CHECK(reportOf(ours, {}, &close).comparisons.rows[0].kind == report::Comparison::Kind::alike);
}

TEST_CASE("winners of two generators are compared with each other") {
  Recorded recorded;
  RecordedDatabase older = firstOnly();
  older.generator = "heddle 0.1.0";
  older.slowdown = 2;
  Store ours = recorded.make(firstOnly()), theirs = recorded.make(older, "there.db");
  const report::Report report = reportOf(ours, {}, &theirs);
  REQUIRE(report.comparisons.rows.size() == 1);
  CHECK(report.comparisons.rows[0].kind == report::Comparison::Kind::faster);
  CHECK(report.comparisons.rows[0].ratio == doctest::Approx(2));
}

TEST_CASE("an empty database has nothing to report") {
  ScratchFolder scratch;
  Store store = openStore(scratch / "empty.db", writing());
  report::ReportRequest request;
  request.store = &store;
  Result<report::Report> report = report::makeReport(request);
  REQUIRE_FALSE(report.isOk());
  CHECK(report.status().message().find("holds neither winners nor trials: there is nothing to report") !=
        std::string::npos);
}

TEST_CASE("failures are counted by reason, without the numbers that differ") {
  Recorded recorded;
  const std::string path = recorded.scratch / "here.db";
  recorded.make(firstOnly());
  Trial trial = taken(openStore(path, {}).allTrials()).front();
  trial.outcome = "spilled";
  trial.medianUs = trial.minUs = 0;
  for (const char *message : {"spills 16 bytes", "spills 240 bytes", "another reason"}) {
    trial.config = trial.message = message;
    trial.configDigest = sha256Hex(trial.config);
    REQUIRE(openStore(path, writing()).recordTrial(trial).isOk());
  }
  const Json data = report::reportJson(reportOf(openStore(path, {})));
  int64_t spills = 0, others = 0;
  for (const Json &row : data["workloads"][0]["failures"]) {
    spills +=
        row["example"] == "spills 16 bytes" || row["example"] == "spills 240 bytes" ? row["count"].get<int64_t>() : 0;
    others += row["example"] == "another reason" ? row["count"].get<int64_t>() : 0;
  }
  CHECK(spills == 2);
  CHECK(others == 1);
}

TEST_CASE("a trial says under which clock and power it was timed, where that is known") {
  Recorded recorded;
  const std::string path = recorded.scratch / "here.db";
  recorded.make(firstOnly());
  Trial trial = taken(openStore(path, {}).allTrials()).front();
  trial.config = "another";
  trial.configDigest = sha256Hex(trial.config);
  trial.smClockMhz = 1755;
  trial.powerWatts = 612.5;
  REQUIRE(openStore(path, writing()).recordTrial(trial).isOk());
  const Json data = report::reportJson(reportOf(openStore(path, {})));
  int64_t noted = 0;
  for (const Json &row : data["workloads"][0]["trials"]["rows"])
    if (row.contains("sm_clock_mhz")) {
      ++noted;
      CHECK(row["sm_clock_mhz"] == 1755);
      CHECK(row["power_watts"] == 612.5);
    }
  CHECK(noted == 1);
}

TEST_CASE("every trial is in the data, one of them is the winner's") {
  Recorded recorded;
  Store store = recorded.make(firstOnly());
  const Json data = report::reportJson(reportOf(store, knownProblems(1)));
  const Json &trials = data["workloads"][0]["trials"];
  CHECK(trials["rows"].size() == taken(store.allTrials()).size());
  size_t winners = 0;
  for (const Json &row : trials["rows"]) {
    CHECK(row["values"].size() == trials["knobs"].size());
    if (row.contains("is_winner")) {
      ++winners;
      CHECK(row["us"] == data["workloads"][0]["us"]);
    }
  }
  CHECK(winners == 1);
}

TEST_CASE("no string of a database is markup in the page, and the same data is the same page") {
  const Json hostile{{"name", kHostile}, {"and", "&amp;<!--\xe2\x80\xa8"}, {"no UTF-8", "\xff"}};
  const std::string text = report::scriptJson(hostile);
  CHECK(text.find_first_of("<>&") == std::string::npos);
  CHECK(Json::parse(text)["name"] == kHostile);
  const std::string page = report::reportPage(hostile);
  CHECK(page.find("<img") == std::string::npos);
  CHECK(page.find(text) != std::string::npos);
  CHECK(page.find("@{") == std::string::npos);
  CHECK(page.find("Chart.js v3") != std::string::npos);
  CHECK(page == report::reportPage(hostile));
}

TEST_CASE("the page names no address to load from") {
  const std::string page = report::reportPage(Json::object());
  for (const char *loader : {"src=", "@import", "fetch(", "XMLHttpRequest", "url(", "href=\"http"})
    CHECK_MESSAGE(page.find(loader) == std::string::npos, loader);
  CHECK(page.find("default-src 'none'") != std::string::npos);
}
