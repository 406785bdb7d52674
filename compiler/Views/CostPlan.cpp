#include "compiler/Views/CostPlan.h"
#include "codegen/Skeletons/Shared/EmbeddedSources.h"
#include "compiler/Io/JsonPlace.h"
#include "compiler/Views/CostPairs.h"

#include <cmath>
#include <cstdio>

namespace heddle {
/// The files of examples/cost/published: plans as `heddle cost` takes them; or, of several runs, what they share, and in
/// "runs" what each has of its own, over it (RFC 7386).
const std::vector<EmbeddedFile> &publishedRuns();
} // namespace heddle

namespace heddle::views {

Result<CostPlan> planCost(cost::CostFile file, size_t most, const TunedWinners *tuned,
                          const std::function<void(double)> &progress) {
  CostPlan plan = {std::move(file.problem), std::move(file.reported), {}};
  HEDDLE_TRY(addPairs(plan.problem, tuned, progress));
  plan.found = cost::search(plan.problem, most);
  return plan;
}

static Result<PublishedRun> publishedRun(const OrderedJson &run, const std::string &label) {
  HEDDLE_ASSIGN(cost::CostFile file, cost::parseCostFile(run.dump(), label));
  if (file.reported.secondsOfStep == 0)
    return Status::internal(label + " reports no time of a step");
  HEDDLE_ASSIGN(CostPlan plan, planCost(std::move(file), 1));
  if (plan.found.best.empty())
    return Status::internal(label + ": no layout of the run is possible here");
  const double predicted = plan.found.best.front().time.total;
  return PublishedRun{std::move(plan), predicted};
}

Result<std::vector<PublishedRun>> publishedRuns() {
  std::vector<PublishedRun> runs;
  for (const EmbeddedFile &embedded : heddle::publishedRuns()) {
    const std::string label(embedded.name);
    HEDDLE_ASSIGN(OrderedJson shared, parseJson(std::string(embedded.text), label));
    const OrderedJson own = shared.value("runs", OrderedJson::array({OrderedJson::object()}));
    shared.erase("runs");
    for (const OrderedJson &changes : own) {
      OrderedJson whole = shared;
      whole.merge_patch(changes);
      HEDDLE_ASSIGN(PublishedRun run, publishedRun(whole, label));
      runs.push_back(std::move(run));
    }
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
