//===- RankReport.h - how well an order of points was -------------------------===//
// Compares costs that were estimated beforehand with the recorded times of a table.
#pragma once

#include "tests/recorded/RecordedTable.h"

#include <functional>
#include <string>
#include <vector>

namespace heddle::tuner {

struct RankReport {
  size_t trials = 0;   // of the table
  size_t timed = 0;    // of those, with a time: measured or stopped
  double spearman = 0; // rank correlation of cost and time over the timed, 1 for the same order; ties share their rank
  // (Best time of the 1, 5 or 10 cheapest) / (best of the table) - 1; infinite if none of them has a time.
  double regret1 = 0, regret5 = 0, regret10 = 0;
  size_t firstGood = 0; // trials in the order of cost until one within 2% of the best is measured; 0: never
};

// How far from the best time of a table counts as found.
constexpr double kGoodMargin = 0.02;

// The order of `cost` against the table, equal costs in the table's order. The table must have a usable trial.
RankReport rankReport(const RecordedTable &table, const std::function<double(const Point &)> &cost);

} // namespace heddle::tuner
