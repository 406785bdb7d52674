//===- CostPlan.cpp - a plan of training ----------------------------------===//
#include "compiler/Views/CostPlan.h"
#include "compiler/Cost/Published.h"
#include "compiler/Views/CostPairs.h"

#include <cmath>
#include <cstdio>

namespace heddle::views {

Result<CostPlan> planCost(cost::CostFile file, size_t most, const TunedWinners *tuned,
                          const std::function<void(double)> &progress) {
  CostPlan plan = {std::move(file.problem), std::move(file.reported), {}};
  HEDDLE_TRY(addPairs(plan.problem, tuned, progress));
  plan.found = cost::search(plan.problem, most);
  return plan;
}

Result<std::vector<PublishedRun>> publishedRuns() {
  std::vector<PublishedRun> runs;
  for (const EmbeddedFile &embedded : heddle::publishedRuns()) {
    HEDDLE_ASSIGN(cost::CostFile file, cost::parseCostFile(std::string(embedded.text), std::string(embedded.name)));
    if (file.reported.secondsOfStep == 0)
      return Status::internal(std::string(embedded.name) + " reports no time of a step");
    HEDDLE_ASSIGN(CostPlan plan, planCost(std::move(file), 1));
    if (plan.found.best.empty())
      return Status::internal(std::string(embedded.name) + ": no layout of the run is possible here");
    const double predicted = plan.found.best.front().time.total;
    runs.push_back({std::move(plan), predicted});
  }
  return runs;
}

double meanError(const std::vector<PublishedRun> &runs) {
  double sum = 0;
  for (const PublishedRun &run : runs)
    sum += std::fabs(run.error());
  return runs.empty() ? 0 : sum / double(runs.size());
}

std::string gibText(double bytes) {
  char text[48];
  std::snprintf(text, sizeof text, "%.1f GiB", bytes / double(1 << 30));
  return text;
}

std::string secondsText(double seconds) {
  char text[48];
  if (seconds >= 1)
    std::snprintf(text, sizeof text, seconds < 1000 ? "%.3g s" : "%.0f s", seconds);
  else
    std::snprintf(text, sizeof text, "%.3g ms", seconds * 1e3);
  return text;
}

} // namespace heddle::views
