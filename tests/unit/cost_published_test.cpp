// Predictions beside what others reported. A constant that changes shows here: bounds are those that docs/cost.md states.
#include "compiler/Views/CostPlan.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace heddle;

TEST_CASE("the time of a step of published runs is met within 8% on average, and none is off by more than 16%") {
  const auto runs = views::publishedRuns();
  REQUIRE_MESSAGE(runs.isOk(), runs.status().message());
  CHECK(runs->size() >= 30);
  CHECK(views::meanError(*runs) <= 0.08);
  for (const views::PublishedRun &run : *runs) {
    CAPTURE(run.plan.problem.name);
    CHECK(!run.plan.reported.source.empty());
    CHECK(std::fabs(run.error()) <= 0.16);
  }
}
