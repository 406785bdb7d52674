//===- report_test.cpp - what a report says of databases ------------------------===//
// The recorded tables as databases: which call rows are of, rates and roofs, the default, estimates, another database;
// and that no string of a database becomes markup.
#include "compiler/Report/Report.h"
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

Json reportOf(const Store &store, std::vector<report::KnownProblem> problems = {}, const Store *against = nullptr) {
  return taken(report::makeReport({&store, against, std::move(problems)}));
}

const Json &find(const Json &report, const std::string &pattern, int64_t headDim,
                 const std::string &device = "NVIDIA H200") {
  for (const Json &workload : report["workloads"])
    if (workload["pattern"] == pattern && workload["head_dim"] == headDim && workload["device"] == device)
      return workload;
  FAIL("no workload of " << pattern);
  return report["workloads"].front();
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
  const Json bare = reportOf(store);
  REQUIRE(bare["workloads"].size() == 6);
  for (const Json &workload : bare["workloads"]) {
    for (const char *name : {"tflops", "percent_of_roof", "gain", "spearman"})
      CHECK_MESSAGE(workload[name].is_null(), name);
    CHECK(workload["us"] > 0);
    CHECK(workload["rate_note"].get<std::string>().find("--plan") != std::string::npos);
    CHECK(workload["default_note"] == workload["rate_note"]);
  }

  const Json full = reportOf(store, knownProblems());
  REQUIRE(full["workloads"].size() == 6);
  for (const Json &workload : full["workloads"]) {
    CAPTURE(workload["pattern"].get<std::string>());
    CHECK(workload["rate_note"].is_null());
    CHECK(workload["match"] == "exact");
    REQUIRE(workload["percent_of_roof"].is_number());
    CHECK(workload["percent_of_roof"] > 1);
    CHECK(workload["percent_of_roof"] < 100);
    REQUIRE(workload["spearman"].is_number());
    CHECK(workload["spearman"] > 0.6); // docs/tuning.md: the least is longformer's
  }
  // full, 2 x 32 heads x 8192^2 pairs x 4 x 64 operations.
  const Json &dense = find(full, "full", 64);
  const double flops = 2.0 * 32 * 8192 * 8192 * 4 * 64, tflops = dense["tflops"];
  CHECK(dense["flops"].get<double>() == doctest::Approx(flops));
  CHECK(tflops == doctest::Approx(flops / dense["us"].get<double>() * 1e-6));
  CHECK(dense["roof_is"] == "compute");
  CHECK(dense["percent_of_roof"].get<double>() == doctest::Approx(100 * tflops / 989.4));
}

TEST_CASE("of two calls of one bucket rows are of the one that was measured, and patterns have the names of calls") {
  Recorded recorded;
  RecordedDatabase what = firstOnly();
  what.hasNames = false;
  Store store = recorded.make(what);
  RecordedWorkload longer = recordedWorkloads()[0];
  longer.seqlen += 64;
  const Json other = reportOf(store, {knownProblem(longer)}),
             both = reportOf(store, {knownProblem(longer), knownProblem(recordedWorkloads()[0])});
  CHECK(other["workloads"][0]["flops"].is_null());
  CHECK(other["workloads"][0]["pattern"] != "causal");
  CHECK(both["workloads"][0]["flops"].is_number());
  CHECK(both["workloads"][0]["pattern"] == "causal");
}

TEST_CASE("the gain is over the trial of the untuned default, and says why there is none") {
  Recorded recorded;
  const std::string path = recorded.scratch / "here.db";
  recorded.make(firstOnly());
  const LoadedWorkload loaded = load(recordedWorkloads()[0]);
  Trial trial = taken(openStore(path, {}).allTrials()).front();
  trial.config = loaded.space->defaultPoint();
  trial.configDigest = sha256Hex(trial.config);
  trial.outcome = "measured";
  auto record = [&] {
    REQUIRE(openStore(path, writing()).recordTrial(trial).isOk());
    return reportOf(openStore(path, {}), knownProblems(1))["workloads"][0];
  };
  trial.medianUs = 2 * reportOf(openStore(path, {}))["workloads"][0]["us"].get<double>();
  CHECK(record()["gain"].get<double>() == doctest::Approx(2));
  trial.outcome = "spilled";
  trial.medianUs = trial.minUs = 0;
  const Json failed = record();
  CHECK(failed["gain"].is_null());
  CHECK(failed["default_note"] == "the untuned default was not timed: spilled");
}

TEST_CASE("a workload on two GPUs is one group, each with its own roof") {
  Recorded recorded;
  RecordedDatabase what;
  what.hasSecondGpu = true;
  Store store = recorded.make(what);
  const Json report = reportOf(store, knownProblems());
  CHECK(report["workloads"].size() == 12);
  CHECK(report["devices"].size() == 2);
  const Json &first = find(report, "full", 64), &second = find(report, "full", 64, "NVIDIA H100 80GB HBM3");
  CHECK(first["group"] == second["group"]);
  CHECK(first["key"] != second["key"]);
  CHECK(first["group"] != find(report, "causal", 128)["group"]);
  CHECK(first["us"] < second["us"]);
}

TEST_CASE("winners of another database are beside the workloads, by keys that generators share") {
  Recorded recorded;
  RecordedDatabase older = firstOnly();
  older.generator = "heddle 0.1.0";
  older.slowdown = 2;
  Store ours = recorded.make(firstOnly()), theirs = recorded.make(older, "there.db");
  const Json report = reportOf(ours, {}, &theirs);
  const Json &here = report["workloads"][0], &there = report["against"]["winners"];
  REQUIRE(there.size() == 1);
  CHECK(here["key"] == there[0]["key"]);
  CHECK(here["generator"] != there[0]["generator"]);
  CHECK(there[0]["us"].get<double>() == doctest::Approx(2 * here["us"].get<double>()));
  CHECK(reportOf(ours)["against"].is_null());
}

TEST_CASE("an empty database has nothing to report") {
  ScratchFolder scratch;
  Store store = openStore(scratch / "empty.db", writing());
  const Result<Json> report = report::makeReport({&store, nullptr, {}});
  REQUIRE_FALSE(report.isOk());
  CHECK(report.status().message().find("holds neither winners nor trials: there is nothing to report") !=
        std::string::npos);
}

TEST_CASE("every trial is in the data, one of them is the winner's, and one says its clock and power") {
  Recorded recorded;
  const std::string path = recorded.scratch / "here.db";
  recorded.make(firstOnly());
  Trial trial = taken(openStore(path, {}).allTrials()).front();
  trial.config = "another";
  trial.configDigest = sha256Hex(trial.config);
  trial.smClockMhz = 1755;
  trial.powerWatts = 612.5;
  REQUIRE(openStore(path, writing()).recordTrial(trial).isOk());
  Store store = openStore(path, {});
  const Json data = reportOf(store, knownProblems(1));
  const Json &trials = data["workloads"][0]["trials"];
  CHECK(trials["rows"].size() == taken(store.allTrials()).size());
  size_t winners = 0, noted = 0;
  for (const Json &row : trials["rows"]) {
    CHECK(row["values"].size() == trials["knobs"].size());
    noted += row["sm_clock_mhz"] == 1755 && row["power_watts"] == 612.5;
    if (row.contains("is_winner")) {
      ++winners;
      CHECK(row["us"] == data["workloads"][0]["us"]);
    }
  }
  CHECK(winners == 1);
  CHECK(noted == 1);
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
