#include "tests/recorded/RankReport.h"
#include "tuner/Model/Spearman.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace heddle::tuner {

RankReport rankReport(const RecordedTable &table, const std::function<double(const Point &)> &cost) {
  RankReport report;
  std::vector<std::pair<double, size_t>> order;
  std::vector<double> costs, times;
  for (const PointTrial &trial : table.trials()) {
    const double estimate = cost(trial.point);
    order.emplace_back(std::isnan(estimate) ? std::numeric_limits<double>::infinity() : estimate, order.size());
    if (isFailure(trial.outcome) || !(trial.medianUs > 0))
      continue;
    costs.push_back(order.back().first);
    times.push_back(trial.medianUs);
  }
  std::sort(order.begin(), order.end());
  report.trials = order.size();
  report.timed = times.size();
  report.spearman = spearman(costs, times);
  const double best = table.best()->medianUs;
  double soFar = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < order.size(); ++i) {
    const PointTrial &trial = table.trials()[order[i].second];
    if (!isFailure(trial.outcome) && trial.medianUs > 0)
      soFar = std::min(soFar, trial.medianUs);
    if (i < 1)
      report.regret1 = soFar / best - 1;
    if (i < 5)
      report.regret5 = soFar / best - 1;
    if (i < 10)
      report.regret10 = soFar / best - 1;
    if (!report.firstGood && trial.isUsable() && trial.medianUs <= best * (1 + kGoodMargin))
      report.firstGood = i + 1;
  }
  return report;
}

} // namespace heddle::tuner
