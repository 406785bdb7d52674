//===- tuner_fixture.h - sessions under test --------------------------------===//
// A session on a recorded table with simulated time, and an evaluator whose stages a test can replace.
#ifndef HEDDLE_TESTS_UNIT_TUNER_FIXTURE_H
#define HEDDLE_TESTS_UNIT_TUNER_FIXTURE_H

#include "tests/unit/tuner_tables.h"
#include "tuner/Search/TuningSession.h"

#include <functional>
#include <memory>
#include <string>

namespace heddle::tuner {

// A session on a recorded table with simulated time. By default it prepares on its own thread, holds no
// final and has time for everything.
struct Fixture {
  explicit Fixture(const RecordedTable &table) : table(table) {
    task.space = &table.space();
    task.sink = &sink;
    task.clock = clock;
    task.strategy = "exhaustive";
    task.evaluator = evaluator;
    options.budgetSeconds = 1e6;
    options.workers = 0;
    options.finalists = 0;
  }

  TuningResult run() {
    Result<TuningResult> result = runTuningSession(task, options);
    REQUIRE_MESSAGE(result.isOk(), result.status().message());
    return result.take();
  }

  Status failure() {
    Result<TuningResult> result = runTuningSession(task, options);
    REQUIRE_FALSE(result.isOk());
    return result.status();
  }

  const RecordedTable &table;
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<RecordedEvaluator> evaluator =
      std::make_shared<RecordedEvaluator>(table, table.space(), RecordedEvaluator::Options{clock.get(), 0.001, 1});
  MemoryTrialSink sink;
  TuningTask task;
  TuningOptions options;
};

// Passes everything on to a recorded table; tests replace single stages.
class Wrapped : public Evaluator {
public:
  explicit Wrapped(std::shared_ptr<Evaluator> inner) : inner(std::move(inner)) {}
  Preparation prepare(const Point &point, const std::atomic<bool> &stop) override {
    return onPrepare ? onPrepare(point, stop) : inner->prepare(point, stop);
  }
  Verification verify(Candidate &candidate) override {
    return onVerify ? onVerify(candidate) : inner->verify(candidate);
  }
  Verification confirm(Candidate &candidate) override {
    return onConfirm ? onConfirm(candidate) : inner->confirm(candidate);
  }
  Sample sample(Candidate &candidate) override { return onSample ? onSample(candidate) : inner->sample(candidate); }
  Status ready() override { return onReady ? onReady() : inner->ready(); }
  Status recover() override {
    ++recoveries;
    return recovery;
  }

  std::shared_ptr<Evaluator> inner;
  std::function<Preparation(const Point &, const std::atomic<bool> &)> onPrepare;
  std::function<Verification(Candidate &)> onVerify;
  std::function<Verification(Candidate &)> onConfirm;
  std::function<Sample(Candidate &)> onSample;
  std::function<Status()> onReady;
  int recoveries = 0;
  Status recovery;
};

inline std::shared_ptr<Wrapped> wrap(Fixture &fixture) {
  auto wrapped = std::make_shared<Wrapped>(fixture.evaluator);
  fixture.task.evaluator = wrapped;
  return wrapped;
}

inline PointTrial row(const std::string &config, double medianUs, Outcome outcome = Outcome::measured) {
  PointTrial trial;
  trial.config = config;
  trial.outcome = outcome;
  trial.medianUs = trial.minUs = medianUs;
  trial.message = outcome == Outcome::measured ? "" : "recorded";
  trial.compileSeconds = 0.5;
  return trial;
}

inline RecordedTable tableOf(std::vector<PointTrial> rows) {
  return RecordedTable::create("rows", std::move(rows)).take();
}

inline RecordedTable countedTable(int count) {
  std::vector<PointTrial> rows;
  for (int i = 0; i < count; ++i)
    rows.push_back(row("a=" + std::to_string(i), 100 + double(i)));
  return tableOf(std::move(rows));
}

inline size_t count(const TuningResult &result, Outcome outcome) { return result.outcomes[size_t(outcome)]; }

} // namespace heddle::tuner

#endif
