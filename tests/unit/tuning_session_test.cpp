//===- tuning_session_test.cpp ----------------------------------------------===//
// Promises of tuner/Search/TuningSession.h, by number, on recorded tables and scripted evaluators.
#include "tests/unit/tuner_tables.h"
#include "tuner/Search/StoreSink.h"
#include "tuner/Search/TuningSession.h"

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <limits>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

using namespace heddle;
using namespace heddle::tuner;

namespace {

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
  Sample sample(Candidate &candidate) override { return onSample ? onSample(candidate) : inner->sample(candidate); }
  Status recover() override {
    ++recoveries;
    return recovery;
  }

  std::shared_ptr<Evaluator> inner;
  std::function<Preparation(const Point &, const std::atomic<bool> &)> onPrepare;
  std::function<Verification(Candidate &)> onVerify;
  std::function<Sample(Candidate &)> onSample;
  int recoveries = 0;
  Status recovery;
};

std::shared_ptr<Wrapped> wrap(Fixture &fixture) {
  auto wrapped = std::make_shared<Wrapped>(fixture.evaluator);
  fixture.task.evaluator = wrapped;
  return wrapped;
}

PointTrial row(const std::string &config, double medianUs, Outcome outcome = Outcome::measured) {
  PointTrial trial;
  trial.config = config;
  trial.outcome = outcome;
  trial.medianUs = trial.minUs = medianUs;
  trial.message = outcome == Outcome::measured ? "" : "recorded";
  trial.compileSeconds = 0.5;
  return trial;
}

RecordedTable tableOf(std::vector<PointTrial> rows) { return RecordedTable::create("rows", std::move(rows)).take(); }

RecordedTable countedTable(int count) {
  std::vector<PointTrial> rows;
  for (int i = 0; i < count; ++i)
    rows.push_back(row("a=" + std::to_string(i), 100 + double(i)));
  return tableOf(std::move(rows));
}

size_t count(const TuningResult &result, Outcome outcome) { return result.outcomes[size_t(outcome)]; }

double secondsOf(const std::function<void()> &action) {
  const SteadyClock clock;
  const double start = clock.now();
  action();
  return clock.now() - start;
}

} // namespace

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
  const SearchSpace space = SearchSpace::create("s", {Knob::integers("a", {0, 1, 2}, "")}, {never}).take();
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
  for (const char *strategy : {"exhaustive", "random:seed=3", "climb:seed=3"})
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

TEST_CASE("a compilation that hangs is a timed-out trial and costs only its thread") {
  const RecordedTable table = countedTable(8);
  Fixture fixture(table);
  fixture.task.clock = nullptr;
  fixture.options.workers = 2;
  fixture.options.prepareLimitSeconds = 0.2;
  auto evaluator = wrap(fixture);
  auto released = std::make_shared<std::atomic<bool>>(false);
  auto recorded = fixture.evaluator;
  evaluator->onPrepare = [released, recorded](const Point &point, const std::atomic<bool> &stop) {
    const bool obeys = point.index[0] == 2, ignores = point.index[0] == 5;
    while ((obeys && !stop) || (ignores && !*released))
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return obeys || ignores ? Preparation() : recorded->prepare(point, stop);
  };
  TuningResult result;
  CHECK(secondsOf([&] { result = fixture.run(); }) < 5);
  *released = true;
  CHECK(count(result, Outcome::timedOut) == 2);
  CHECK(result.measuredNow == 8);
  CHECK(result.winner->config == "a=0");
  for (const PointTrial &trial : fixture.sink.trials())
    if (trial.outcome == Outcome::timedOut)
      CHECK(trial.message.find("the limit is 0.20 s") != std::string::npos);
}

TEST_CASE("too many compilations that hang end the session") {
  const RecordedTable table = countedTable(8);
  Fixture fixture(table);
  fixture.task.clock = nullptr;
  fixture.options.workers = 2;
  fixture.options.prepareLimitSeconds = 0.05;
  fixture.options.maxAbandoned = 3;
  auto evaluator = wrap(fixture);
  evaluator->onPrepare = [](const Point &, const std::atomic<bool> &stop) {
    while (!stop)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return Preparation();
  };
  const Status status = fixture.failure();
  CHECK(status.code() == StatusCode::unavailable);
  CHECK(status.message().find("4 compilations") != std::string::npos);
}

TEST_CASE("a compilation on the session's own thread that took too long is refused afterwards") {
  const RecordedTable table = countedTable(2);
  Fixture fixture(table);
  fixture.options.prepareLimitSeconds = 0.4;
  const TuningResult result = fixture.run();
  CHECK(count(result, Outcome::timedOut) == 2);
  CHECK(fixture.sink.trials()[0].message == "compilation took 0.50 s, the limit is 0.40 s");
}

TEST_CASE("compilations overlap, as many as there are workers and never more") {
  const RecordedTable table = countedTable(12);
  for (int workers : {1, 3}) {
    Fixture fixture(table);
    fixture.options.workers = workers;
    fixture.options.ahead = 6;
    auto evaluator = wrap(fixture);
    std::mutex mutex;
    std::condition_variable changed;
    int inside = 0, most = 0;
    std::set<std::thread::id> threads;
    evaluator->onPrepare = [&](const Point &point, const std::atomic<bool> &stop) {
      std::unique_lock<std::mutex> lock(mutex);
      threads.insert(std::this_thread::get_id());
      most = std::max(most, ++inside);
      changed.notify_all();
      // Waits for company the first time round; gives up so that a failure fails instead of hanging.
      changed.wait_for(lock, std::chrono::seconds(5), [&] { return most >= workers; });
      --inside;
      lock.unlock();
      return fixture.evaluator->prepare(point, stop);
    };
    const TuningResult result = fixture.run();
    CHECK(result.measuredNow == 12);
    CHECK(most == workers);
    CHECK(threads.size() <= size_t(workers));
    CHECK(threads.count(std::this_thread::get_id()) == 0);
  }
}

TEST_CASE("compilation runs ahead while a point is measured") {
  const RecordedTable table = countedTable(4);
  Fixture fixture(table);
  fixture.options.workers = 1;
  auto evaluator = wrap(fixture);
  std::mutex mutex;
  std::condition_variable changed;
  size_t prepared = 0;
  bool hasRunAhead = false;
  evaluator->onPrepare = [&](const Point &point, const std::atomic<bool> &stop) {
    Preparation result = fixture.evaluator->prepare(point, stop);
    std::lock_guard<std::mutex> lock(mutex);
    ++prepared;
    changed.notify_all();
    return result;
  };
  evaluator->onVerify = [&](Candidate &candidate) {
    std::unique_lock<std::mutex> lock(mutex);
    const size_t recorded = fixture.sink.trials().size();
    hasRunAhead |= recorded == 0 && changed.wait_for(lock, std::chrono::seconds(5), [&] { return prepared >= 3; });
    return fixture.evaluator->verify(candidate);
  };
  fixture.run();
  CHECK(hasRunAhead);
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
  const SearchSpace space = SearchSpace::create("s", table.space().knobs(), {notZero}).take();
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

TEST_CASE("the final undoes a drift that misled the search") {
  // The device slows down by 0.5% per launch during the search, and then stays slow.
  const RecordedTable table = tableOf({row("a=1", 100), row("a=2", 98), row("a=3", 96), row("a=4", 120)});
  Fixture fixture(table);
  auto evaluator = wrap(fixture);
  int launches = 0;
  evaluator->onSample = [&](Candidate &candidate) {
    Sample sample = fixture.evaluator->sample(candidate);
    sample.us *= std::pow(1.005, std::min(++launches, 30));
    return sample;
  };
  CHECK(fixture.run().winner->config == "a=1");

  Fixture withFinal(table);
  launches = 0;
  auto second = wrap(withFinal);
  second->onSample = [&](Candidate &candidate) {
    Sample sample = withFinal.evaluator->sample(candidate);
    sample.us *= std::pow(1.005, std::min(++launches, 30));
    return sample;
  };
  withFinal.options.finalists = 3;
  const TuningResult result = withFinal.run();
  REQUIRE(result.finalists.size() == 3);
  CHECK(result.finalists[0].config == "a=3");
  CHECK(result.winner->config == "a=3");
  CHECK(result.winner->medianUs == result.finalists[0].medianUs);
  CHECK(bool(result.candidate));
  CHECK(withFinal.sink.trials().size() == 4);
}

TEST_CASE("the published winner stays unless something new is measured, and enters the final") {
  const RecordedTable table = countedTable(6);
  Fixture fixture(table);
  fixture.task.strategy = "exhaustive:limit=4";
  fixture.options.finalists = 2;
  fixture.run();
  fixture.task.incumbent = "a=3";
  CHECK(fixture.run().winner->config == "a=3");

  fixture.task.strategy = "exhaustive";
  const TuningResult resumed = fixture.run();
  CHECK(resumed.measuredNow == 2);
  REQUIRE(resumed.finalists.size() == 3);
  CHECK(resumed.finalists[0].config == "a=0");
  CHECK(resumed.finalists[2].config == "a=3");
  CHECK(bool(resumed.candidate));
}

TEST_CASE("[1] a known point whose new binary is wrong leaves the final and the records") {
  const RecordedTable before = tableOf({row("a=1", 50), row("a=2", 52), row("a=3", 54)});
  Fixture fixture(before);
  fixture.task.strategy = "exhaustive:limit=2";
  CHECK(fixture.run().winner->config == "a=1");

  const RecordedTable now = tableOf({row("a=1", 50, Outcome::wrong), row("a=2", 52), row("a=3", 54)});
  fixture.evaluator = std::make_shared<RecordedEvaluator>(now, before.space(),
                                                          RecordedEvaluator::Options{fixture.clock.get(), 0.001, 1});
  fixture.task.evaluator = fixture.evaluator;
  fixture.task.strategy = "exhaustive";
  fixture.options.finalists = 3;
  const TuningResult result = fixture.run();
  CHECK(result.winner->config == "a=2");
  CHECK(count(result, Outcome::wrong) == 1);
  CHECK(count(result, Outcome::measured) == 2);
  REQUIRE(fixture.sink.trials().size() == 3);
  CHECK(fixture.sink.trials()[0].outcome == Outcome::wrong);
  CHECK(fixture.sink.trials()[0].message == "in the final: recorded");
}

TEST_CASE("[6] the winner does not depend on the number of workers") {
  const RecordedTable table = modelTable(5);
  for (int workers : {0, 1, 2, 4}) {
    Fixture fixture(table);
    fixture.options.workers = workers;
    CHECK(fixture.run().winner->config == table.best()->config);
  }
}

TEST_CASE("[2] a session resumes from a database that another process could have left") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() /
      ("heddle_sink_" + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()));
  std::filesystem::create_directory(folder);
  const std::string path = (folder / "trials.db").string();
  const RecordedTable table = modelTable(9);
  WinnerKey key;
  key.pattern = "0123";
  key.arch = "sm_90";
  WinnerKey otherKey = key;
  otherKey.headDim = 128;
  size_t recorded = 0;
  for (int session = 0; session < 3; ++session) {
    StoreOptions writing;
    writing.mode = StoreMode::readWrite;
    Result<Store> store = Store::open(path, writing);
    REQUIRE_MESSAGE(store.isOk(), store.status().message());
    StoreTrialSink sink(*store, key);
    Fixture fixture(table);
    fixture.task.sink = &sink;
    fixture.options.budgetSeconds = session < 2 ? 30 : 1e6;
    const TuningResult result = fixture.run();
    CHECK(result.known == recorded);
    CHECK(result.measuredNow > 0);
    CHECK(fixture.evaluator->prepareCounts().size() <= result.measuredNow + size_t(fixture.options.ahead));
    recorded += result.measuredNow;
    CHECK(sink.known(table.space())->size() == recorded);
    CHECK(StoreTrialSink(*store, otherKey).known(table.space())->empty());
    if (session == 2)
      CHECK(result.winner->config == table.best()->config);
  }
  CHECK(recorded == table.trials().size());
  std::filesystem::remove_all(folder);
}

TEST_CASE("a trial survives the form in which it is stored") {
  const RecordedTable table = modelTable(9);
  WinnerKey key;
  key.pattern = "0123";
  key.deviceName = "some device";
  for (const PointTrial &trial : table.trials()) {
    const heddle::Trial record = toRecord(table.space(), trial, key);
    CHECK(record.pattern == "0123");
    CHECK(record.deviceName == "some device");
    CHECK(record.configDigest == table.space().digest(trial.point));
    Result<PointTrial> back = fromRecord(table.space(), record);
    REQUIRE(back.isOk());
    CHECK(back->point == trial.point);
    CHECK(back->config == trial.config);
    CHECK(back->outcome == trial.outcome);
    CHECK(back->message == trial.message);
    CHECK(back->medianUs == trial.medianUs);
    CHECK(back->maxError == trial.maxError);
    CHECK(back->spillBytes == trial.spillBytes);
  }
  heddle::Trial damaged = toRecord(table.space(), *table.best(), key);
  damaged.medianUs = 0;
  CHECK(fromRecord(table.space(), damaged).status().code() == StatusCode::corrupt);
  damaged = toRecord(table.space(), *table.best(), key);
  damaged.outcome = "splendid";
  CHECK(fromRecord(table.space(), damaged).status().code() == StatusCode::corrupt);
}
