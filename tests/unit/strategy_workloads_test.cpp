//===- strategy_workloads_test.cpp - strategies on what was measured -----------===//
// How many trials each strategy needs until it has a configuration within 2% of the best of a recorded table, with a
// cost model that was fitted on the other tables only.
#include "compiler/Session/TuneSession.h"
#include "tests/unit/recorded_workloads.h"
#include "tuner/Strategies/Registry.h"

#include <doctest/doctest.h>

#include <deque>

using namespace heddle;
using namespace heddle::test;
using namespace heddle::tuner;

namespace {

using Cost = std::function<double(const Point &)>;

// Trials until one within 2% of the best was proposed; each is told `delay` proposals late.
size_t trialsUntilGood(const std::string &strategy, const RecordedTable &table, const Cost &cost, size_t delay) {
  StrategyInput input{&table.space(), {}, true, cost}; // a walk over all values of all knobs would take a second
  for (const PointTrial &trial : table.trials())
    input.feasible.push_back(trial.point);
  sortByPrior(input.feasible, cost);
  auto running = createStrategy(strategy, std::move(input));
  REQUIRE_MESSAGE(running.isOk(), running.status().message());
  std::deque<const PointTrial *> untold;
  for (size_t tried = 0; tried <= table.trials().size();) {
    std::optional<Point> point = (*running)->propose();
    if (point) {
      ++tried;
      const PointTrial *trial = table.find(table.space().text(*point));
      if (trial->isUsable() && trial->medianUs <= table.best()->medianUs * (1 + kGoodMargin))
        return tried;
      untold.push_back(trial);
    }
    if (!point || untold.size() > delay) {
      (*running)->observe(*untold.front());
      untold.pop_front();
    }
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
    for (size_t delay : {0, 4, 14, 30}) { // points in preparation: on one core, and on up to 16
      CAPTURE(name);
      CAPTURE(delay);
      const size_t tried = trialsUntilGood(kTuneStrategy, table, cost, delay);
      CHECK(tried > 0);
      CHECK(tried * 10 <= table.trials().size());
    }
  });
}

TEST_CASE("the default strategy needs far fewer trials than a random order") {
  forEveryTable([](const std::string &name, const RecordedTable &table, const Cost &cost) {
    constexpr size_t kDelay = 30;
    double random = 0, climb = 0;
    constexpr int kSeeds = 20;
    for (int seed = 1; seed <= kSeeds; ++seed) {
      const std::string options = ":prior_first=0,seed=" + std::to_string(seed);
      random += double(trialsUntilGood("random" + options, table, cost, kDelay)) / kSeeds;
      climb += double(trialsUntilGood("climb" + options, table, cost, kDelay)) / kSeeds;
    }
    const size_t tried = trialsUntilGood(kTuneStrategy, table, cost, kDelay);
    const size_t ordered = trialsUntilGood("exhaustive", table, cost, kDelay);
    MESSAGE(name << ": trials until within 2% of the best: " << std::string(kTuneStrategy) << " " << tried
                 << ", in the order of the model " << ordered << ", climb " << climb << ", random " << random << "; of "
                 << table.trials().size());
    CHECK(double(tried) < 0.5 * random);
  });
}
