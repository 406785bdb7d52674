//===- strategies_test.cpp --------------------------------------------------===//
// The conformance test of search strategies: every registered one is run on recorded tables.
#include "tests/unit/tuner_tables.h"
#include "tuner/Search/TuningSession.h"
#include "tuner/Strategies/Shuffle.h"

#include <deque>
#include <set>

using namespace heddle;
using namespace heddle::tuner;

namespace {

StrategyInput inputOf(const RecordedTable &table, bool hasPrior) {
  StrategyInput input{&table.space(), table.space().enumerate().take().points, hasPrior};
  if (hasPrior) {
    input.cost = modelPrior(table.space());
    sortByPrior(input.feasible, input.cost);
  }
  return input;
}

std::unique_ptr<Strategy> create(const std::string &specification, const RecordedTable &table, bool hasPrior) {
  Result<std::unique_ptr<Strategy>> strategy = createStrategy(specification, inputOf(table, hasPrior));
  REQUIRE_MESSAGE(strategy.isOk(), strategy.status().message());
  return strategy.take();
}

// Runs ask and tell until the strategy ends or `most` points were proposed; each trial is told `delay`
// proposals late, as when compilation runs ahead.
std::vector<std::string> play(Strategy &strategy, const RecordedTable &table, size_t most, size_t delay) {
  std::vector<std::string> proposed;
  std::deque<const PointTrial *> untold;
  while (proposed.size() < most) {
    std::optional<Point> point = strategy.propose();
    if (point) {
      proposed.push_back(table.space().text(*point));
      const PointTrial *trial = table.find(proposed.back());
      REQUIRE_MESSAGE(trial, proposed.back());
      untold.push_back(trial);
    }
    if (!point && untold.empty())
      break;
    if (!point || untold.size() > delay) {
      strategy.observe(*untold.front());
      untold.pop_front();
    }
  }
  return proposed;
}

double bestOf(const std::vector<std::string> &configs, const RecordedTable &table) {
  double best = 1e9;
  for (const std::string &config : configs)
    if (const PointTrial *trial = table.find(config); trial->isUsable())
      best = std::min(best, trial->medianUs);
  return best;
}

// Mean over seeds of best found / best there is, after `most` trials.
template <class Propose> double meanRatio(const RecordedTable &table, size_t most, Propose &&propose) {
  double sum = 0;
  constexpr int seeds = 150;
  for (int seed = 1; seed <= seeds; ++seed)
    sum += bestOf(propose(seed, most), table) / table.best()->medianUs;
  return sum / seeds;
}

double uniformRatio(const RecordedTable &table, size_t most) {
  return meanRatio(table, most, [&](int seed, size_t count) {
    std::vector<std::string> configs;
    for (const PointTrial &trial : table.trials())
      configs.push_back(trial.config);
    std::mt19937_64 random{uint64_t(1000 + seed)};
    shuffleFrom(configs, 0, random);
    configs.resize(std::min(count, configs.size()));
    return configs;
  });
}

bool hasOption(const StrategyInfo &info, const std::string &name) {
  return std::any_of(info.options.begin(), info.options.end(),
                     [&](const OptionInfo &option) { return option.name == name; });
}

std::string seeded(const StrategyInfo &info, int seed) {
  return hasOption(info, "seed") ? info.name + std::string(":seed=") + std::to_string(seed) : std::string(info.name);
}

RecordedTable committedTable() {
  Result<RecordedTable> table = RecordedTable::load(HEDDLE_TEST_DATA "/tuner/model_small.csv");
  REQUIRE_MESSAGE(table.isOk(), table.status().message());
  return table.take();
}

std::vector<RecordedTable> allTables() {
  std::vector<RecordedTable> tables;
  tables.push_back(committedTable());
  for (uint64_t seed : {3, 4, 5})
    tables.push_back(modelTable(seed));
  return tables;
}

} // namespace

TEST_CASE("every strategy proposes every feasible point exactly once") {
  for (const RecordedTable &table : allTables())
    for (const StrategyInfo &info : strategyRegistry())
      for (bool hasPrior : {false, true})
        for (size_t delay : {size_t(0), size_t(4)}) {
          CAPTURE(std::string(info.name));
          CAPTURE(table.space().name());
          auto strategy = create(info.name, table, hasPrior);
          const auto proposed = play(*strategy, table, 100000, delay);
          CHECK(proposed.size() == table.trials().size());
          CHECK(std::set<std::string>(proposed.begin(), proposed.end()).size() == proposed.size());
          CHECK_FALSE(strategy->propose().has_value());
        }
}

TEST_CASE("every strategy proposes only points that it was given") {
  const RecordedTable table = modelTable(3);
  for (const StrategyInfo &info : strategyRegistry()) {
    CAPTURE(std::string(info.name));
    StrategyInput input = inputOf(table, true);
    input.feasible.resize(input.feasible.size() / 3);
    const std::set<Point> given(input.feasible.begin(), input.feasible.end());
    auto strategy = createStrategy(info.name, input).take();
    const auto proposed = play(*strategy, table, 100000, 2);
    CHECK(proposed.size() == given.size());
    for (const std::string &config : proposed)
      CHECK(given.count(table.space().parse(config).take()) == 1);
  }
}

TEST_CASE("every strategy is deterministic under a seed, and the seed matters") {
  const RecordedTable table = modelTable(4);
  for (const StrategyInfo &info : strategyRegistry()) {
    CAPTURE(std::string(info.name));
    auto run = [&](int seed) { return play(*create(seeded(info, seed), table, true), table, 100000, 3); };
    CHECK(run(7) == run(7));
    if (hasOption(info, "seed"))
      CHECK(run(7) != run(8));
  }
}

TEST_CASE("every strategy begins in prior order when there is a prior, unless it learns from the first trial") {
  const RecordedTable table = modelTable(5);
  const StrategyInput input = inputOf(table, true);
  for (const StrategyInfo &info : strategyRegistry()) {
    CAPTURE(std::string(info.name));
    auto strategy = create(info.name, table, true);
    const auto proposed = play(*strategy, table, 8, 0);
    REQUIRE(proposed.size() == 8);
    const std::set<std::string> distinct(proposed.begin(), proposed.end());
    CHECK(distinct.size() == 8);
    for (size_t i = 0; i < (info.name == std::string("halving") ? 1 : proposed.size()); ++i)
      CHECK(proposed[i] == table.space().text(input.feasible[i]));
  }
}

TEST_CASE("halving learns from trials that the estimate is wrong about a knob") {
  const RecordedTable table = modelTable(3);
  // The estimate prefers what is slowest: one stage.
  const auto cost = [&](const Point &point) { return table.space().values(point)["stages"] == 1 ? 1.0 : 1.3; };
  StrategyInput input{&table.space(), table.space().enumerate().take().points, true, cost};
  sortByPrior(input.feasible, cost);
  auto learning = createStrategy("halving", input).take(), stubborn = createStrategy("exhaustive", input).take();
  const size_t most = table.trials().size() / 8;
  const auto learned = play(*learning, table, most, 4);
  CHECK(bestOf(learned, table) < bestOf(play(*stubborn, table, most, 4), table));
  const auto isOneStage = [](const std::string &config) { return config.find("stages=1") != std::string::npos; };
  CHECK(std::count_if(learned.end() - 20, learned.end(), isOneStage) < 10);
}

TEST_CASE("no strategy is worse than uniform random at the same number of trials") {
  for (const RecordedTable &table : allTables())
    for (size_t share : {20, 8, 4}) {
      const size_t most = std::max<size_t>(table.trials().size() / share, 5);
      const double uniform = uniformRatio(table, most);
      for (const StrategyInfo &info : strategyRegistry()) {
        CAPTURE(std::string(info.name));
        CAPTURE(table.space().name());
        CAPTURE(most);
        const double ratio = meanRatio(table, most, [&](int seed, size_t count) {
          return play(*create(seeded(info, seed), table, true), table, count, 4);
        });
        CHECK(ratio <= uniform * 1.01); // 1% for the noise of 150 seeds
        CHECK(ratio >= 1.0);
      }
    }
}

TEST_CASE("climbing finds better points than uniform random without a prior") {
  for (uint64_t seed : {3, 4, 5}) {
    const RecordedTable table = modelTable(seed);
    const size_t most = table.trials().size() / 8;
    const double climbed = meanRatio(table, most, [&](int s, size_t count) {
      return play(*create("climb:seed=" + std::to_string(s), table, false), table, count, 4);
    });
    CHECK(climbed < uniformRatio(table, most));
  }
}

TEST_CASE("every strategy stays within the budget of a session") {
  const RecordedTable table = modelTable(3);
  for (const StrategyInfo &info : strategyRegistry()) {
    CAPTURE(std::string(info.name));
    auto clock = std::make_shared<ManualClock>();
    RecordedEvaluator::Options played{clock.get(), 0.005, 1};
    TuningTask task;
    MemoryTrialSink sink;
    task.space = &table.space();
    task.evaluator = std::make_shared<RecordedEvaluator>(table, table.space(), played);
    task.sink = &sink;
    task.strategy = info.name;
    task.clock = clock;
    TuningOptions options;
    options.budgetSeconds = 20;
    options.workers = 0;
    Result<TuningResult> result = runTuningSession(task, options);
    REQUIRE(result.isOk());
    CHECK(result->end == EndReason::budget);
    CHECK(result->elapsedSeconds <= 20 + 1.1); // at most one compilation begun before the end
    CHECK(result->measuredNow > 10);
    CHECK(result->measuredNow < table.trials().size());
  }
}

TEST_CASE("specifications are parsed, and refused with what there is") {
  const RecordedTable table = committedTable();
  auto message = [&](const char *specification) {
    Result<std::unique_ptr<Strategy>> strategy = createStrategy(specification, inputOf(table, false));
    return strategy ? std::string() : strategy.status().message();
  };
  CHECK(message("random:seed=3,prior_first=0").empty());
  CHECK(message("exhaustive:").empty());
  CHECK(message("anneal") == "strategy 'anneal' does not exist; there are: halving, exhaustive, random, climb");
  CHECK(message("random:sed=3") == "strategy option 'sed': no such option; there are: seed, prior_first");
  CHECK(message("random:seed=x") == "strategy option 'seed': expected an integer from 0 to "
                                    "9223372036854775807, got 'x'");
  CHECK(message("random:seed=-1").find("got '-1'") != std::string::npos);
  CHECK(message("exhaustive:limit") == "strategy option 'limit': expected <option>=<integer>");

  auto limited = create("exhaustive:limit=5", table, true);
  CHECK(play(*limited, table, 100, 0).size() == 5);
}

TEST_CASE("every strategy describes itself, and its described defaults are accepted") {
  const RecordedTable table = committedTable();
  for (const StrategyInfo &info : strategyRegistry()) {
    CAPTURE(std::string(info.name));
    CHECK(std::string(info.summary).size() > 10);
    std::string specification = std::string(info.name) + ":";
    for (const OptionInfo &option : info.options) {
      CHECK(option.help.size() > 10);
      specification += option.name + "=" + std::to_string(option.byDefault) + ",";
    }
    auto described = create(specification, table, true);
    auto byDefault = create(info.name, table, true);
    CHECK(play(*described, table, 1000, 0) == play(*byDefault, table, 1000, 0));
  }
}

TEST_CASE("the prior sorts stably and puts what is not a number last") {
  std::vector<Point> points;
  for (uint32_t i = 0; i < 6; ++i)
    points.push_back(Point{{i}});
  const double costs[] = {2, NAN, 1, 2, 1, 0};
  sortByPrior(points, [&](const Point &point) { return costs[point.index[0]]; });
  std::vector<uint32_t> order;
  for (const Point &point : points)
    order.push_back(point.index[0]);
  CHECK(order == std::vector<uint32_t>{5, 2, 4, 0, 3, 1});
}
