// Promises of tuner/Search/TuningSession.h, by number, on recorded tables and scripted evaluators. Threads
// are in tuning_threads_test.cpp, the final and the store in tuning_final_test.cpp.
#include "tests/unit/tuner_fixture.h"

#include <stdexcept>

using namespace heddle;
using namespace heddle::tuner;

TEST_CASE("a budget of 0, below 0 or not a number is refused, with what would work") {
  const RecordedTable table = countedTable(3);
  Fixture fixture(table);
  for (double budget : {0.0, -5.0, double(NAN)}) {
    fixture.options.budgetSeconds = budget;
    const Status status = fixture.failure();
    CHECK(status.code() == StatusCode::invalidArgument);
    CHECK(status.message().find("tuning budget: expected more than 0 seconds, got") == 0);
    CHECK(status.message().find("60 is a good start") != std::string::npos);
  }
  CHECK(fixture.sink.trials().empty());
  CHECK(fixture.evaluator->prepareCounts().empty());
}

TEST_CASE("other invalid input is refused before anything is prepared") {
  const RecordedTable table = countedTable(3);
  auto refused = [&](auto change) {
    Fixture fixture(table);
    change(fixture);
    const Status status = fixture.failure();
    CHECK(fixture.evaluator->prepareCounts().empty());
    return status.code() == StatusCode::invalidArgument;
  };
  CHECK(refused([](Fixture &f) { f.options.workers = -1; }));
  CHECK(refused([](Fixture &f) { f.options.ahead = 0; }));
  CHECK(refused([](Fixture &f) { f.options.prepareLimitSeconds = 0; }));
  CHECK(refused([](Fixture &f) { f.options.finalShare = 1; }));
  CHECK(refused([](Fixture &f) { f.options.timing.maxSamples = 0; }));
  CHECK(refused([](Fixture &f) { f.task.strategy = "no_such"; }));
  CHECK(refused([](Fixture &f) { f.task.sink = nullptr; }));
}

TEST_CASE("a space without feasible points says which constraint refused how many") {
  const RecordedTable table = countedTable(3);
  Constraint never{"smem", [](const PointValues &) { return std::optional<std::string>("no"); }};
  const SearchSpace space = spaceOf("s", {numbersKnob("a", {0, 1, 2}, "")}, {never}).take();
  Fixture fixture(table);
  fixture.task.space = &space;
  const Status status = fixture.failure();
  CHECK(status.code() == StatusCode::unsupported);
  CHECK(status.message() == "search space 's': none of 3 points is feasible: smem refuses 3");
}

TEST_CASE("[1] [3] the best correct point of a table with every kind of failure wins") {
  for (uint64_t seed : {3, 9}) {
    const RecordedTable table = modelTable(seed);
    Fixture fixture(table);
    fixture.task.prior = modelPrior(table.space());
    const TuningResult result = fixture.run();
    CHECK(result.end == EndReason::exhausted);
    REQUIRE(result.winner);
    CHECK(result.winner->config == table.best()->config);
    CHECK(bool(result.candidate));
    CHECK(result.measuredNow == table.trials().size());
    std::array<size_t, kOutcomeCount> recorded{};
    for (const PointTrial &trial : table.trials())
      ++recorded[size_t(trial.outcome)];
    for (Outcome outcome :
         {Outcome::compileFailed, Outcome::spilled, Outcome::wrong, Outcome::launchFailed, Outcome::timedOut}) {
      CHECK(recorded[size_t(outcome)] > 0);
      CHECK(count(result, outcome) == recorded[size_t(outcome)]);
    }
    CHECK(count(result, Outcome::measured) + count(result, Outcome::stopped) == recorded[size_t(Outcome::measured)]);
    CHECK(count(result, Outcome::stopped) > 0);
    for (const PointTrial &trial : fixture.sink.trials())
      CHECK((trial.outcome == Outcome::measured) == trial.message.empty());
    REQUIRE(result.firstUsableSeconds);
    CHECK(*result.firstUsableSeconds < 5);
    CHECK(result.compileSeconds + result.measureSeconds == doctest::Approx(result.elapsedSeconds).epsilon(0.001));
  }
}

TEST_CASE("[1] a wrong point does not win however fast, and is never timed") {
  const RecordedTable table = tableOf({row("a=1", 100), row("a=2", 90), row("a=3", 95), row("a=4", 1, Outcome::wrong),
                                       row("a=5", 2, Outcome::launchFailed)});
  Fixture fixture(table);
  const TuningResult result = fixture.run();
  REQUIRE(result.winner);
  CHECK(result.winner->config == "a=2");
  CHECK(fixture.evaluator->sampleCounts().count("a=4") == 0);
  CHECK(fixture.evaluator->sampleCounts().count("a=5") == 0);
}

TEST_CASE("[1] equal times are decided by the text of the point, in any order of trials") {
  const RecordedTable table = tableOf({row("a=3", 50), row("a=1", 50), row("a=2", 50)});
  for (const char *strategy : {"exhaustive", "random:seed=1", "random:seed=2", "random:seed=5"}) {
    Fixture fixture(table);
    fixture.task.strategy = strategy;
    CHECK(fixture.run().winner->config == "a=1");
  }
}

TEST_CASE("[3] a session in which every point fails has no winner and all the reasons") {
  const RecordedTable table = tableOf({row("a=1", 1, Outcome::wrong), row("a=2", 1, Outcome::compileFailed)});
  Fixture fixture(table);
  const TuningResult result = fixture.run();
  CHECK_FALSE(result.winner);
  CHECK_FALSE(bool(result.candidate));
  CHECK_FALSE(result.firstUsableSeconds);
  REQUIRE(fixture.sink.trials().size() == 2);
  for (const PointTrial &trial : fixture.sink.trials())
    CHECK(trial.message == "recorded");
}

TEST_CASE("[3] an exception in any stage is a failed trial") {
  const RecordedTable table = countedTable(4);
  Fixture fixture(table);
  auto evaluator = wrap(fixture);
  evaluator->onPrepare = [&](const Point &point, const std::atomic<bool> &stop) {
    if (point.index[0] == 0)
      throw std::runtime_error("out of memory");
    return fixture.evaluator->prepare(point, stop);
  };
  int verified = 0;
  evaluator->onVerify = [&](Candidate &candidate) {
    if (++verified == 1)
      throw 42;
    return fixture.evaluator->verify(candidate);
  };
  const TuningResult result = fixture.run();
  CHECK(result.winner->config == "a=2");
  CHECK(fixture.sink.trials()[0].outcome == Outcome::compileFailed);
  CHECK(fixture.sink.trials()[0].message == "exception: out of memory");
  CHECK(fixture.sink.trials()[1].outcome == Outcome::launchFailed);
  CHECK(fixture.sink.trials()[1].message == "exception of unknown type");
}

TEST_CASE("[2] [5] [6] cancelled and resumed again and again, nothing is measured twice") {
  const RecordedTable table = modelTable(4);
  Fixture whole(table);
  const std::string winner = whole.run().winner->config;
  for (const char *strategy : {"exhaustive", "random:seed=3"})
    for (int workers : {0, 2}) {
      CAPTURE(std::string(strategy));
      Fixture fixture(table);
      fixture.task.strategy = strategy;
      fixture.options.workers = workers;
      std::atomic<bool> cancel{false};
      fixture.options.cancel = &cancel;
      size_t limit = 0;
      fixture.options.progress = [&](const Progress &) { cancel = fixture.sink.trials().size() >= limit; };
      int sessions = 0;
      TuningResult result;
      do {
        limit = fixture.sink.trials().size() + 60;
        cancel = false;
        const size_t before = fixture.sink.trials().size();
        result = fixture.run();
        CHECK(result.known == before);
        CHECK(result.known + result.measuredNow == fixture.sink.trials().size());
        REQUIRE(result.winner);
        ++sessions;
      } while (result.end == EndReason::cancelled && sessions < 20);
      CHECK(sessions >= 4);
      CHECK(result.winner->config == winner);
      CHECK(fixture.sink.trials().size() == table.trials().size());
      for (const auto &sampled : fixture.evaluator->sampleCounts()) {
        CAPTURE(sampled.first);
        CHECK(sampled.second <= fixture.options.timing.warmups + fixture.options.timing.maxSamples);
      }
      size_t prepared = 0;
      for (const auto &[config, times] : fixture.evaluator->prepareCounts())
        prepared += size_t(times);
      // What was in preparation when a session was cancelled is prepared again by the next one.
      const size_t ahead = size_t(fixture.options.ahead);
      CHECK(prepared <= table.trials().size() + size_t(sessions) * ahead);
    }
}

TEST_CASE("[2] a session over a complete sink prepares nothing and names the same winner") {
  const RecordedTable table = modelTable(5);
  Fixture fixture(table);
  const std::string winner = fixture.run().winner->config;
  const auto before = fixture.evaluator->prepareCounts();
  fixture.options.finalists = 3;
  const TuningResult again = fixture.run();
  CHECK(fixture.evaluator->prepareCounts() == before);
  CHECK(again.measuredNow == 0);
  CHECK(again.known == table.trials().size());
  CHECK(again.winner->config == winner);
  CHECK_FALSE(bool(again.candidate));
}

TEST_CASE("[2] every trial is in the sink before the next point is verified") {
  const RecordedTable table = countedTable(6);
  Fixture fixture(table);
  auto evaluator = wrap(fixture);
  size_t verified = 0;
  evaluator->onVerify = [&](Candidate &candidate) {
    CHECK(fixture.sink.trials().size() == verified++);
    return fixture.evaluator->verify(candidate);
  };
  fixture.run();
  CHECK(verified == 6);
}

TEST_CASE("[4] no launch begins after the budget") {
  const RecordedTable table = modelTable(3);
  for (int finalists : {0, 3}) {
    Fixture fixture(table);
    fixture.options.budgetSeconds = 30;
    fixture.options.finalists = finalists;
    auto evaluator = wrap(fixture);
    double lastLaunch = 0;
    evaluator->onSample = [&](Candidate &candidate) {
      lastLaunch = fixture.clock->now();
      return fixture.evaluator->sample(candidate);
    };
    evaluator->onVerify = [&](Candidate &candidate) {
      lastLaunch = fixture.clock->now();
      return fixture.evaluator->verify(candidate);
    };
    const TuningResult result = fixture.run();
    CHECK(result.end == EndReason::budget);
    CHECK(lastLaunch > 20);
    CHECK(lastLaunch < 30);
    CHECK(result.measuredNow == fixture.sink.trials().size());
    REQUIRE(result.winner);
    CHECK((result.finalists.size() > 1) == (finalists > 1));
  }
}

TEST_CASE("[4] the wait for an evaluator to get ready is not the search's time") {
  const RecordedTable table = countedTable(6);
  Fixture fixture(table);
  auto evaluator = wrap(fixture);
  bool isReady = false;
  evaluator->onReady = [&] {
    fixture.clock->advance(isReady ? 0 : 1000);
    isReady = true;
    return Status();
  };
  fixture.options.budgetSeconds = 900;
  const TuningResult result = fixture.run();
  CHECK(result.end == EndReason::exhausted);
  CHECK(result.measuredNow == 6);
  CHECK(result.elapsedSeconds > 1000);

  evaluator->onReady = [] { return Status::unavailable("no GPU"); };
  Fixture refused(table);
  wrap(refused)->onReady = evaluator->onReady;
  CHECK(refused.failure().message() == "no GPU");
  CHECK(refused.sink.trials().empty());
}

TEST_CASE("[4] a budget shorter than one compilation gives no winner and no trial") {
  const RecordedTable table = countedTable(3);
  Fixture fixture(table);
  fixture.options.budgetSeconds = 0.1;
  const TuningResult result = fixture.run();
  CHECK(result.end == EndReason::budget);
  CHECK_FALSE(result.winner);
  CHECK(fixture.sink.trials().empty());
}

TEST_CASE("[5] a point that is being measured when the session is cancelled leaves no trial") {
  const RecordedTable table = countedTable(5);
  Fixture fixture(table);
  std::atomic<bool> cancel{false};
  fixture.options.cancel = &cancel;
  auto evaluator = wrap(fixture);
  int launches = 0;
  evaluator->onSample = [&](Candidate &candidate) {
    cancel = ++launches == 24; // the third of the seven launches of the fourth point
    return fixture.evaluator->sample(candidate);
  };
  const TuningResult result = fixture.run();
  CHECK(result.end == EndReason::cancelled);
  CHECK(launches == 24);
  CHECK(fixture.sink.trials().size() == 3);
  CHECK(result.winner->config == "a=0");
}

TEST_CASE("the device is put right after a failed launch; if it cannot be, the session ends") {
  const RecordedTable table =
      tableOf({row("a=1", 100), row("a=2", 1, Outcome::launchFailed), row("a=3", 1, Outcome::wrong), row("a=4", 90)});
  Fixture fixture(table);
  auto evaluator = wrap(fixture);
  CHECK(fixture.run().winner->config == "a=4");
  CHECK(evaluator->recoveries == 1);

  Fixture broken(table);
  wrap(broken)->recovery = Status::unavailable("the context is lost");
  const Status status = broken.failure();
  CHECK(status.code() == StatusCode::unavailable);
  CHECK(status.message() == "tuning: after 'a=2' (recorded): the context is lost");
  REQUIRE(broken.sink.trials().size() == 2);
  CHECK(broken.sink.trials()[1].outcome == Outcome::launchFailed);
}

TEST_CASE("a sink that cannot record ends the session with its status") {
  struct FullSink : MemoryTrialSink {
    Status record(const SearchSpace &space, const PointTrial &trial) override {
      if (trials().size() == 2)
        return Status::io("disk full");
      return MemoryTrialSink::record(space, trial);
    }
  } full;
  const RecordedTable table = countedTable(5);
  Fixture fixture(table);
  fixture.task.sink = &full;
  const Status status = fixture.failure();
  CHECK(status.code() == StatusCode::io);
  CHECK(status.message() == "disk full");
  CHECK(full.trials().size() == 2);
}

TEST_CASE("known trials outside the space or no longer feasible neither win nor count") {
  const RecordedTable table = countedTable(3);
  Fixture fixture(table);
  PointTrial foreign = row("b=1", 1);
  PointTrial unknownValue = row("a=77", 1);
  REQUIRE(fixture.sink.record(table.space(), foreign).isOk());
  REQUIRE(fixture.sink.record(table.space(), unknownValue).isOk());
  Constraint notZero{"not_zero", [](const PointValues &values) -> std::optional<std::string> {
                       return values["a"] ? std::nullopt : std::optional<std::string>("zero");
                     }};
  const SearchSpace space = spaceOf("s", table.space().knobs(), {notZero}).take();
  PointTrial infeasible = row("a=0", 1);
  REQUIRE(fixture.sink.record(space, infeasible).isOk());
  fixture.task.space = &space;
  fixture.evaluator =
      std::make_shared<RecordedEvaluator>(table, space, RecordedEvaluator::Options{fixture.clock.get(), 0.001, 1});
  fixture.task.evaluator = fixture.evaluator;
  const TuningResult result = fixture.run();
  CHECK(result.known == 0);
  CHECK(result.measuredNow == 2);
  CHECK(result.winner->config == "a=1");
}

TEST_CASE("progress counts up to all feasible points, and its best only improves") {
  const RecordedTable table = modelTable(9);
  Fixture fixture(table);
  fixture.options.finalists = 3;
  std::vector<Progress> reports;
  fixture.options.progress = [&](const Progress &progress) { reports.push_back(progress); };
  const TuningResult result = fixture.run();
  REQUIRE(reports.size() == table.trials().size() + 1);
  for (size_t i = 0; i + 1 < table.trials().size(); ++i) {
    CHECK(reports[i].done == i + 1);
    CHECK(reports[i].total == table.trials().size());
    if (reports[i].bestUs > 0)
      CHECK(reports[i + 1].bestUs <= reports[i].bestUs);
    CHECK(reports[i].elapsedSeconds <= reports[i + 1].elapsedSeconds);
    CHECK_FALSE(reports[i].isFinal);
  }
  CHECK(reports.back().isFinal);
  size_t failures = 0;
  for (const PointTrial &trial : table.trials())
    failures += isFailure(trial.outcome);
  CHECK(reports.back().failed == failures);
  CHECK(reports.back().bestConfig == table.best()->config);
}

TEST_CASE("points that are given are tried first, once, and the strategy goes on from them") {
  const RecordedTable table = countedTable(40);
  Fixture fixture(table);
  fixture.task.first = {"a=17", "a=no number", "a=3", "a=17", "a=4000"};
  fixture.task.strategy = "exhaustive";
  const TuningResult result = fixture.run();
  CHECK(result.feasible == 40);
  CHECK(result.measuredNow == 40);
  REQUIRE(fixture.sink.trials().size() == 40);
  CHECK(fixture.sink.trials()[0].config == "a=17");
  CHECK(fixture.sink.trials()[1].config == "a=3");
  CHECK(fixture.sink.trials()[2].config == "a=0");
  CHECK(fixture.evaluator->prepareCounts().at("a=17") == 1);
  CHECK(fixture.evaluator->prepareCounts().at("a=3") == 1);
}

TEST_CASE("[2] a point that is given and known is not prepared again") {
  const RecordedTable table = countedTable(5);
  Fixture fixture(table);
  REQUIRE(fixture.sink.record(table.space(), table.trials()[2]).isOk());
  fixture.task.first = {table.trials()[2].config};
  size_t done = 0;
  fixture.options.progress = [&](const Progress &progress) { done = progress.done; };
  const TuningResult result = fixture.run();
  CHECK(result.known == 1);
  CHECK(result.measuredNow == 4);
  CHECK(done == 5);
  CHECK(fixture.evaluator->prepareCounts().count(table.trials()[2].config) == 0);
}
