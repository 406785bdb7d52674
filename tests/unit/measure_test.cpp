// Promises of tuner/Measure: statistics, how samples are taken, recorded tables and their playback.
#include "support/Places.h"
#include "tests/unit/tuner_tables.h"
#include "tuner/Measure/Timing.h"

#include <cstdio>
#include <fstream>
#include <limits>
#include <stdexcept>

using namespace heddle;
using namespace heddle::tuner;

namespace {

constexpr double kNothingKnown = std::numeric_limits<double>::infinity();

// A candidate whose launches take the given times, the last one for ever after.
struct Scripted : Candidate {
  Scripted(int id, std::vector<double> launchesUs) : id(id), launchesUs(std::move(launchesUs)) {}
  int id;
  std::vector<double> launchesUs;
  size_t launched = 0;
};

// Plays scripted candidates on a manual clock and notes the order of launches. A time of 0 fails to
// launch, -1 throws.
class ScriptedEvaluator : public Evaluator {
public:
  Preparation prepare(const Point &, const std::atomic<bool> &) override { return {}; }
  Verification verify(Candidate &) override { return {}; }
  Sample sample(Candidate &candidate) override {
    auto &scripted = static_cast<Scripted &>(candidate);
    order.push_back(scripted.id);
    const size_t last = scripted.launchesUs.size() - 1;
    const double us = scripted.launchesUs[std::min(scripted.launched++, last)];
    if (us < 0)
      throw std::runtime_error("device lost");
    Sample result;
    result.us = us;
    if (us == 0)
      result.failure = Failure{Outcome::launchFailed, "refused"};
    clock.advance(us * 1e-6);
    return result;
  }

  ManualClock clock;
  std::vector<int> order;
};

std::vector<Timing> timeAll(
    ScriptedEvaluator &evaluator, std::vector<Scripted> &candidates, const TimingOptions &options,
    double bestUs = kNothingKnown, const std::function<bool()> &isInterrupted = [] { return false; }) {
  std::vector<Candidate *> pointers;
  for (Scripted &candidate : candidates)
    pointers.push_back(&candidate);
  return timeInterleaved(evaluator, pointers, {options, bestUs, evaluator.clock, isInterrupted});
}

Timing timeOne(std::vector<double> launchesUs, const TimingOptions &options, double bestUs = kNothingKnown) {
  ScriptedEvaluator evaluator;
  std::vector<Scripted> candidates = {Scripted(0, std::move(launchesUs))};
  return timeAll(evaluator, candidates, options, bestUs).front();
}

} // namespace

TEST_CASE("statistics: median, minimum and relative interquartile range") {
  CHECK(statisticsOf({}).medianUs == 0);
  CHECK(statisticsOf({7}).medianUs == 7);
  CHECK(statisticsOf({7}).spread == 0);
  CHECK(statisticsOf({4, 1}).medianUs == 2.5);
  const Statistics five = statisticsOf({50, 10, 40, 20, 30});
  CHECK(five.medianUs == 30);
  CHECK(five.minUs == 10);
  CHECK(five.spread == doctest::Approx((40.0 - 20.0) / 30.0));
  CHECK(statisticsOf({10, 10, 10, 10, 1000}).medianUs == 10);
}

TEST_CASE("warm-up launches are not samples") {
  TimingOptions options;
  options.warmups = 3;
  const Timing timing = timeOne({900, 800, 700, 100}, options);
  CHECK(timing.outcome == Outcome::measured);
  CHECK(timing.statistics.medianUs == 100);
  CHECK(timing.samples == options.minSamples);
  CHECK(timing.seconds == doctest::Approx((900 + 800 + 700 + 5 * 100) * 1e-6));
}

TEST_CASE("the GPU rests in proportion to its launches") {
  TimingOptions options;
  options.warmups = 0;
  options.busyShare = 0.25;
  CHECK(timeOne({100}, options).seconds == doctest::Approx(options.minSamples * 400e-6));
  CHECK(timeOne({20000}, options).seconds == doctest::Approx(options.minSamples * (20e-3 + kLongestRest)));
  for (double share : {0.0, 1.5}) {
    options.busyShare = share;
    CHECK(checkTimingOptions(options).message().find("expected a busy share above 0 and at most 1") !=
          std::string::npos);
  }
}

TEST_CASE("sampling goes on until the spread is small, and at most to the last sample") {
  TimingOptions options;
  options.warmups = 0;
  options.minSamples = 5;
  options.maxSamples = 12;
  CHECK(timeOne({100}, options).samples == 5);
  const Timing settled = timeOne({120, 80, 100, 100, 100, 100, 100, 100, 100, 100}, options);
  CHECK(settled.samples == 5);
  const Timing settling = timeOne({130, 70, 115, 85, 100}, options);
  CHECK(settling.samples > 5);
  CHECK(settling.samples < 12);
  CHECK(settling.statistics.spread <= options.targetSpread);
  std::vector<double> restless;
  for (int i = 0; i < 40; ++i)
    restless.push_back(i % 2 ? 80 : 120);
  const Timing timing = timeOne(restless, options);
  CHECK(timing.samples == 12);
  CHECK(timing.outcome == Outcome::measured);
}

TEST_CASE("a candidate is given up when its fastest sample is far beyond the best") {
  TimingOptions options;
  options.warmups = 1;
  options.hopelessAfter = 2;
  options.hopelessMargin = 1.2;
  const Timing hopeless = timeOne({500, 125, 121}, options, 100);
  CHECK(hopeless.outcome == Outcome::stopped);
  CHECK(hopeless.samples == 2);
  CHECK(hopeless.message == "hopeless: fastest sample 121.00 us, best median 100.00 us");
  CHECK_FALSE(hopeless.isInterrupted);
  CHECK(timeOne({500, 125, 119}, options, 100).outcome == Outcome::measured);
  CHECK(timeOne({500, 125, 121}, options).outcome == Outcome::measured);
}

TEST_CASE("the time limit accepts three samples and refuses fewer") {
  TimingOptions options;
  options.warmups = 1;
  options.limitSeconds = 4;
  const Timing enough = timeOne({1e6}, options);
  CHECK(enough.outcome == Outcome::measured);
  CHECK(enough.samples == 3);
  options.limitSeconds = 3;
  const Timing tooFew = timeOne({1e6}, options);
  CHECK(tooFew.outcome == Outcome::timedOut);
  CHECK(tooFew.message == "time limit: 2 samples in 3.00 s");
  options.limitSeconds = 0.5;
  CHECK(timeOne({1e6}, options).samples == 0);
}

TEST_CASE("failed launches and exceptions are failures with a reason") {
  const Timing refused = timeOne({100, 100, 0}, TimingOptions());
  CHECK(refused.outcome == Outcome::launchFailed);
  CHECK(refused.message == "refused");
  const Timing thrown = timeOne({100, 100, 100, -1}, TimingOptions());
  CHECK(thrown.outcome == Outcome::launchFailed);
  CHECK(thrown.message == "exception: device lost");
}

TEST_CASE("candidates are sampled in turn, the first place rotating") {
  TimingOptions options;
  options.warmups = 1;
  options.minSamples = options.maxSamples = 2;
  ScriptedEvaluator evaluator;
  std::vector<Scripted> candidates = {Scripted(0, {100}), Scripted(1, {101}), Scripted(2, {102})};
  const std::vector<Timing> timings = timeAll(evaluator, candidates, options);
  CHECK(evaluator.order == std::vector<int>{0, 1, 2, 1, 2, 0, 2, 0, 1});
  REQUIRE(timings.size() == 3);
  for (size_t i = 0; i < 3; ++i)
    CHECK(timings[i].statistics.medianUs == 100 + double(i));
}

TEST_CASE("interleaving cancels a drift of the clock that would reverse the order") {
  // Every launch is 1% slower than the one before it; candidate 1 is 3% faster than candidate 0.
  TimingOptions options;
  options.warmups = 0;
  options.targetSpread = 0;
  options.minSamples = options.maxSamples = 10;
  auto drifting = [](int launches, double us, int stride, int first) {
    std::vector<double> result;
    for (int i = 0; i < launches; ++i)
      result.push_back(us * std::pow(1.01, first + stride * i));
    return result;
  };
  std::vector<Scripted> sideBySide = {Scripted(0, drifting(10, 100, 2, 0)), Scripted(1, drifting(10, 97, 2, 1))};
  ScriptedEvaluator evaluator;
  const std::vector<Timing> together = timeAll(evaluator, sideBySide, options);
  CHECK(together[1].statistics.medianUs < together[0].statistics.medianUs);
  const Timing first = timeOne(drifting(10, 100, 1, 0), options);
  const Timing second = timeOne(drifting(10, 97, 1, 10), options);
  CHECK(second.statistics.medianUs > first.statistics.medianUs);
}

TEST_CASE("one candidate that fails or is hopeless does not disturb the others") {
  TimingOptions options;
  options.warmups = 0;
  ScriptedEvaluator evaluator;
  std::vector<Scripted> candidates = {Scripted(0, {100}), Scripted(1, {100, 0}), Scripted(2, {100, 101, 103, 300})};
  candidates.push_back(Scripted(3, {400}));
  options.targetSpread = 0;
  options.minSamples = 3;
  options.maxSamples = 8;
  const std::vector<Timing> timings = timeAll(evaluator, candidates, options);
  CHECK(timings[0].outcome == Outcome::measured);
  CHECK(timings[1].outcome == Outcome::launchFailed);
  CHECK(timings[1].samples == 1);
  CHECK(timings[2].outcome == Outcome::measured);
  CHECK(timings[2].samples == 8);
  CHECK(timings[3].outcome == Outcome::stopped);
  CHECK(timings[3].samples == 3);
}

TEST_CASE("an interruption keeps complete medians and marks the others") {
  TimingOptions options;
  options.warmups = 0;
  options.targetSpread = 0;
  options.minSamples = 3;
  options.maxSamples = 100;
  ScriptedEvaluator evaluator;
  std::vector<Scripted> candidates = {Scripted(0, {100, 101}), Scripted(1, {100, 101})};
  auto after = [&](size_t launches) { return [&evaluator, launches] { return evaluator.order.size() >= launches; }; };
  std::vector<Timing> timings = timeAll(evaluator, candidates, options, kNothingKnown, after(10));
  for (const Timing &timing : timings) {
    CHECK(timing.outcome == Outcome::measured);
    CHECK(timing.samples == 5);
    CHECK_FALSE(timing.isInterrupted);
  }
  evaluator.order.clear();
  timings = timeAll(evaluator, candidates, options, kNothingKnown, after(4));
  CHECK(evaluator.order.size() == 4);
  for (const Timing &timing : timings) {
    CHECK(timing.outcome == Outcome::stopped);
    CHECK(timing.isInterrupted);
  }
}

TEST_CASE("contradictory timing options are refused") {
  auto refuses = [](auto change) {
    TimingOptions options;
    change(options);
    return checkTimingOptions(options).code() == StatusCode::invalidArgument;
  };
  CHECK(checkTimingOptions(TimingOptions()).isOk());
  CHECK(refuses([](TimingOptions &o) { o.warmups = -1; }));
  CHECK(refuses([](TimingOptions &o) { o.minSamples = 0; }));
  CHECK(refuses([](TimingOptions &o) { o.maxSamples = o.minSamples - 1; }));
  CHECK(refuses([](TimingOptions &o) { o.hopelessMargin = 0.9; }));
  CHECK(refuses([](TimingOptions &o) { o.targetSpread = NAN; }));
  CHECK(refuses([](TimingOptions &o) { o.limitSeconds = 0; }));
}

TEST_CASE("a recorded table survives being written and read") {
  const RecordedTable table = modelTable(6);
  Result<RecordedTable> back = RecordedTable::parse("model 6", table.text());
  REQUIRE_MESSAGE(back.isOk(), back.status().message());
  CHECK(back->text() == table.text());
  CHECK(back->space().name() == table.space().name());
  REQUIRE(back->space().knobs().size() == table.space().knobs().size());
  for (size_t i = 0; i < table.space().knobs().size(); ++i)
    CHECK(back->space().knobs()[i].name == table.space().knobs()[i].name);
  REQUIRE(back->trials().size() == table.trials().size());
  for (size_t i = 0; i < table.trials().size(); ++i) {
    CHECK(back->trials()[i].outcome == table.trials()[i].outcome);
    CHECK(back->trials()[i].medianUs == table.trials()[i].medianUs);
    CHECK(back->trials()[i].message == table.trials()[i].message);
  }
}

TEST_CASE("the committed table loads: 48 points of five knobs, one best") {
  Result<RecordedTable> table = RecordedTable::load(test::places().data + "/tuner/model_small.csv");
  REQUIRE_MESSAGE(table.isOk(), table.status().message());
  CHECK(table->trials().size() == 48);
  CHECK(table->space().rawSize() == 2 * 3 * 2 * 3 * 2);
  CHECK(table->space().enumerate()->points.size() == 48);
  REQUIRE(table->best());
  CHECK(table->best()->config == "block_m=128 block_n=64 warps=4 stages=2 order=longest");
  CHECK(table->best()->medianUs == 1164.69);
  CHECK(table->find("block_m=128 block_n=64") == nullptr);
  CHECK_FALSE(RecordedTable::load("no such file").isOk());
}

TEST_CASE("a malformed table is refused with file and line") {
  const std::string header = "config,outcome,median_us,spread,max_error,registers,spill_bytes,"
                             "compile_seconds,message\n";
  auto message = [&](const std::string &rows) {
    return RecordedTable::parse("t.csv", header + rows).status().message();
  };
  CHECK(RecordedTable::parse("t.csv", "config\n")
            .status()
            .message()
            .find("t.csv:1: expected the "
                  "header") == 0);
  CHECK(message("") == "t.csv: no trials");
  CHECK(message("a=1,measured,5\n") == "t.csv:2: expected 9 columns, got 3");
  CHECK(message("a=1,great,5,0,0,1,0,1,\n") == "t.csv:2: trial: unknown outcome 'great'");
  CHECK(message("# note\na=1,measured,x,0,0,1,0,1,\n") == "t.csv:3: expected numbers of at least 0 in columns 3 to 8");
  CHECK(message("a=1,measured,-1,0,0,1,0,1,\n").find("at least 0") != std::string::npos);
  CHECK(message("a=1,measured,0,0,0,1,0,1,\n") ==
        "t.csv:2: median_us: expected a time of 0.1 us to a day, got 0 (measured)");
  for (const char *row :
       {"measured,inf,0,0", "measured,1e-300,0,0", "measured,1e300,0,0", "stopped,inf,0,0", "measured,5,0,1e9",
        "measured,5,0,inf", "stopped,5,0,1e9", "measured,5,inf,0", "measured,5,1,0", "wrong,inf,0,0"})
    CHECK_MESSAGE(message("# note\na=1," + std::string(row) + ",1,0,1,\n").find("t.csv:3: ") == 0, row);
  CHECK(message("a=1,measured,5,0,0,1,0,inf,\n") ==
        "t.csv:2: compile_seconds: expected 0 to 86400 seconds, got inf (measured)");
  CHECK(message("a=1,wrong,0,0,inf,1,0,1,off by far\n").empty());
  CHECK(message("a=1,wrong,0,0,0,1,0,1,off, by far\na=1,wrong,0,0,0,1,0,1,\n") == "t.csv: two rows for 'a=1'");
  CHECK(message("a=1,wrong,0,0,0,1,0,1,\nb=1,wrong,0,0,0,1,0,1,\n") == "t.csv: 'b=1' does not have the knobs of 'a=1'");
}

TEST_CASE("playback ends every stage as recorded, on the manual clock") {
  const RecordedTable table = modelTable(9);
  ManualClock clock;
  RecordedEvaluator evaluator(table, table.space(), {&clock, 0.001, 1});
  const std::atomic<bool> stop{false};
  std::array<int, kOutcomeCount> seen{};
  for (const PointTrial &row : table.trials()) {
    CAPTURE(row.config);
    const double start = clock.now();
    Preparation prepared = guardedPrepare(evaluator, row.point, stop);
    CHECK(clock.now() - start == doctest::Approx(row.compileSeconds));
    Outcome outcome = Outcome::measured;
    if (prepared.failure) {
      outcome = prepared.failure->outcome;
    } else if (Verification verified = guardedVerify(evaluator, *prepared.candidate); verified.failure) {
      outcome = verified.failure->outcome;
    } else if (Sample sample = guardedSample(evaluator, *prepared.candidate); sample.failure) {
      outcome = sample.failure->outcome;
    } else {
      CHECK(std::abs(sample.us / row.medianUs - 1) <= row.spread);
    }
    CHECK(outcome == row.outcome);
    ++seen[size_t(outcome)];
  }
  for (Outcome outcome : {Outcome::measured, Outcome::compileFailed, Outcome::spilled, Outcome::wrong,
                          Outcome::launchFailed, Outcome::timedOut})
    CHECK(seen[size_t(outcome)] > 0);
  CHECK(evaluator.prepareCounts().size() == table.trials().size());
}

TEST_CASE("with a pace the stages take real time, and a preparation that is told to stop takes no more") {
  const RecordedTable table = modelTable(9);
  const PointTrial &row = *table.best();
  RecordedEvaluator::Options options;
  options.pace = 0.05 / row.compileSeconds;
  RecordedEvaluator evaluator(table, table.space(), options);
  const SteadyClock clock;
  auto secondsOf = [&](const std::atomic<bool> &stop) {
    const double start = clock.now();
    CHECK_FALSE(evaluator.prepare(row.point, stop).failure);
    return clock.now() - start;
  };
  const std::atomic<bool> stop{true}, goOn{false};
  CHECK(secondsOf(goOn) >= 0.05);
  CHECK(secondsOf(stop) < 0.05);
}
