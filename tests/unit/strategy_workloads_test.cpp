//===- strategy_workloads_test.cpp - strategies on what was measured -----------===//
// How many trials each strategy needs until it has a configuration within 2% of the best of a recorded table, with a
// cost model that was fitted on the other tables only.
#include "compiler/Session/TuneSession.h"
#include "tests/unit/recorded_workloads.h"
#include "tuner/Search/Strategies.h"

#include <doctest/doctest.h>

using namespace heddle;
using namespace heddle::test;
using namespace heddle::tuner;

namespace {

using Cost = std::function<double(const Point &)>;

// Trials until one within 2% of the best.
size_t trialsUntilGood(const std::string &strategy, const RecordedTable &table, const Cost &cost) {
  std::vector<Point> points; // a walk over all values of all knobs would take a second
  for (const PointTrial &trial : table.trials())
    points.push_back(trial.point);
  sortByPrior(points, cost);
  auto ordered = orderPoints(strategy, std::move(points), true);
  REQUIRE_MESSAGE(ordered.isOk(), ordered.status().message());
  for (size_t tried = 0; tried < ordered->size(); ++tried) {
    const PointTrial *trial = table.find(table.space().text((*ordered)[tried]));
    if (trial->isUsable() && trial->medianUs <= table.best()->medianUs * (1 + kGoodMargin))
      return tried + 1;
  }
  return 0;
}

// With an estimate that was fitted on the other tables of the family.
template <class F> void forEveryTable(F check) {
  for (const CostTraining &training : trainings())
    for (size_t i = 0; i < training.size(); ++i) {
      auto fit = training.fit(i);
      REQUIRE_MESSAGE(fit.isOk(), fit.status().message());
      const Cost cost = [&](const Point &point) { return training.estimate(i, fit->model, point); };
      check(training.familyName() + " " + recordedWorkloads()[i].table, training.table(i), cost);
    }
}

} // namespace

TEST_CASE("the default strategy is within 2% of every table's best after at most a tenth of its trials") {
  forEveryTable([](const std::string &name, const RecordedTable &table, const Cost &cost) {
    CAPTURE(name);
    const size_t tried = trialsUntilGood(kTuneStrategy, table, cost);
    CHECK(tried > 0);
    CHECK(tried * 10 <= table.trials().size());
  });
}

TEST_CASE("the default strategy needs far fewer trials than a random order") {
  forEveryTable([](const std::string &name, const RecordedTable &table, const Cost &cost) {
    double random = 0;
    constexpr int kSeeds = 20;
    for (int seed = 1; seed <= kSeeds; ++seed)
      random += double(trialsUntilGood("random:prior_first=0,seed=" + std::to_string(seed), table, cost)) / kSeeds;
    const size_t tried = trialsUntilGood(kTuneStrategy, table, cost);
    MESSAGE(name << ": trials until within 2% of the best: " << tried << ", random " << random << "; of "
                 << table.trials().size());
    CHECK(double(tried) < 0.5 * random);
  });
}
