// The conformance test of search strategies: each is run on recorded tables.
#include "support/Places.h"
#include "tests/unit/tuner_tables.h"
#include "tuner/Search/TuningSession.h"

#include <set>

using namespace heddle;
using namespace heddle::tuner;

namespace {

std::vector<Point> pointsOf(const RecordedTable &table, bool hasPrior) {
  std::vector<Point> points = table.space().enumerate().take().points;
  if (hasPrior)
    sortByPrior(points, modelPrior(table.space()));
  return points;
}

std::vector<Point> ordered(const std::string &specification, const RecordedTable &table, bool hasPrior) {
  Result<std::vector<Point>> points = orderPoints(specification, pointsOf(table, hasPrior), hasPrior);
  REQUIRE_MESSAGE(points.isOk(), points.status().message());
  return points.take();
}

double bestOf(const std::vector<Point> &points, size_t most, const RecordedTable &table) {
  double best = 1e9;
  for (size_t i = 0; i < std::min(most, points.size()); ++i)
    if (const PointTrial *trial = table.find(table.space().text(points[i])); trial->isUsable())
      best = std::min(best, trial->medianUs);
  return best;
}

// Mean over seeds of best found / best there is, after `most` trials.
template <class Order> double meanRatio(const RecordedTable &table, size_t most, Order &&order) {
  double sum = 0;
  constexpr int seeds = 150;
  for (int seed = 1; seed <= seeds; ++seed)
    sum += bestOf(order(seed), most, table) / table.best()->medianUs;
  return sum / seeds;
}

double uniformRatio(const RecordedTable &table, size_t most) {
  return meanRatio(table, most,
                   [&](int seed) { return ordered("random:seed=" + std::to_string(1000 + seed), table, false); });
}

bool hasSeed(const Strategy &strategy) {
  return std::any_of(strategy.options.begin(), strategy.options.end(),
                     [](const StrategyOption &option) { return option.name == "seed"; });
}

std::string seeded(const Strategy &strategy, int seed) {
  return strategy.name + (hasSeed(strategy) ? ":seed=" + std::to_string(seed) : std::string());
}

RecordedTable committedTable() {
  Result<RecordedTable> table = RecordedTable::load(test::places().data + "/tuner/model_small.csv");
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

TEST_CASE("every strategy tries every point that it is given exactly once") {
  for (const RecordedTable &table : allTables())
    for (const Strategy &strategy : strategies())
      for (bool hasPrior : {false, true}) {
        CAPTURE(std::string(strategy.name));
        CAPTURE(table.space().name());
        const std::vector<Point> given = pointsOf(table, hasPrior), tried = ordered(strategy.name, table, hasPrior);
        CHECK(tried.size() == given.size());
        CHECK(std::set<Point>(tried.begin(), tried.end()) == std::set<Point>(given.begin(), given.end()));
      }
}

TEST_CASE("every strategy is deterministic under a seed, and the seed matters") {
  const RecordedTable table = modelTable(4);
  for (const Strategy &strategy : strategies()) {
    CAPTURE(std::string(strategy.name));
    auto run = [&](int seed) { return ordered(seeded(strategy, seed), table, true); };
    CHECK(run(7) == run(7));
    if (hasSeed(strategy))
      CHECK(run(7) != run(8));
  }
}

TEST_CASE("every strategy begins in prior order when there is a prior") {
  const RecordedTable table = modelTable(5);
  const std::vector<Point> given = pointsOf(table, true);
  for (const Strategy &strategy : strategies()) {
    CAPTURE(std::string(strategy.name));
    const std::vector<Point> tried = ordered(strategy.name, table, true);
    CHECK(std::equal(given.begin(), given.begin() + 8, tried.begin()));
  }
}

TEST_CASE("no strategy is worse than uniform random at the same number of trials") {
  for (const RecordedTable &table : allTables())
    for (size_t share : {20, 8, 4}) {
      const size_t most = std::max<size_t>(table.trials().size() / share, 5);
      const double uniform = uniformRatio(table, most);
      for (const Strategy &strategy : strategies()) {
        CAPTURE(std::string(strategy.name));
        CAPTURE(table.space().name());
        CAPTURE(most);
        const double ratio =
            meanRatio(table, most, [&](int seed) { return ordered(seeded(strategy, seed), table, true); });
        CHECK(ratio <= uniform * 1.01); // 1% for the noise of 150 seeds
        CHECK(ratio >= 1.0);
      }
    }
}

TEST_CASE("every strategy stays within the budget of a session") {
  const RecordedTable table = modelTable(3);
  for (const Strategy &strategy : strategies()) {
    CAPTURE(std::string(strategy.name));
    auto clock = std::make_shared<ManualClock>();
    RecordedEvaluator::Options played{clock.get(), 0.005, 1};
    TuningTask task;
    MemoryTrialSink sink;
    task.space = &table.space();
    task.evaluator = std::make_shared<RecordedEvaluator>(table, table.space(), played);
    task.sink = &sink;
    task.strategy = strategy.name;
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
    Result<std::vector<Point>> points = orderPoints(specification, pointsOf(table, false), false);
    return points ? std::string() : points.status().message();
  };
  CHECK(message("random:seed=3,prior_first=0").empty());
  CHECK(message("exhaustive:").empty());
  CHECK(message("anneal") == "strategy 'anneal' does not exist; there are: exhaustive, random");
  CHECK(message("random:sed=3") == "strategy option 'sed': no such option; there are: seed, prior_first");
  CHECK(message("random:seed=x") == "strategy option 'seed': expected an integer from 0 to "
                                    "9223372036854775807, got 'x'");
  CHECK(message("random:seed=-1").find("got '-1'") != std::string::npos);
  CHECK(message("exhaustive:limit") == "strategy option 'limit': expected <option>=<integer>");
  CHECK(ordered("exhaustive:limit=5", table, true).size() == 5);
}

TEST_CASE("every strategy describes itself, and its described defaults are accepted") {
  const RecordedTable table = committedTable();
  for (const Strategy &strategy : strategies()) {
    CAPTURE(std::string(strategy.name));
    CHECK(std::string(strategy.summary).size() > 10);
    std::string specification = std::string(strategy.name) + ":";
    for (const StrategyOption &option : strategy.options)
      specification += option.name + "=" + std::to_string(option.byDefault) + ",";
    CHECK(ordered(specification, table, true) == ordered(strategy.name, table, true));
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
