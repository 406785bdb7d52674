//===- RankReport.cpp -----------------------------------------------------------===//
#include "tuner/Model/RankReport.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace heddle::tuner {

namespace {

// Ranks from 0; equal values share the mean of theirs.
std::vector<double> ranksOf(const std::vector<double> &values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::pair(values[a], a) < std::pair(values[b], b); });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]])
      ++end;
    for (size_t i = begin; i < end; ++i)
      ranks[order[i]] = double(begin + end - 1) / 2;
  }
  return ranks;
}

} // namespace

double spearman(const std::vector<double> &a, const std::vector<double> &b) {
  const std::vector<double> ranksA = ranksOf(a), ranksB = ranksOf(b);
  const double mean = (double(a.size()) - 1) / 2;
  double both = 0, onlyA = 0, onlyB = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    both += (ranksA[i] - mean) * (ranksB[i] - mean);
    onlyA += (ranksA[i] - mean) * (ranksA[i] - mean);
    onlyB += (ranksB[i] - mean) * (ranksB[i] - mean);
  }
  return onlyA > 0 && onlyB > 0 ? both / std::sqrt(onlyA * onlyB) : 0;
}

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
