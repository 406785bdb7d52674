//===- Strategy.h - the one ask/tell interface of all search strategies -----===//
// A strategy decides which feasible point is tried next and nothing else: time, compilation,
// measurement and records belong to the session. What every strategy promises is tested for all
// registered ones by tests/unit/strategies_test.cpp.
#pragma once

#include "tuner/Space/Trial.h"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace heddle::tuner {

// Not thread-safe: a session calls its strategy from one thread.
class Strategy {
public:
  virtual ~Strategy() = default;
  // The next point to try: feasible, and never one that was proposed before. May be called several
  // times before a trial is observed, since compilation runs ahead of measurement. Nothing means
  // "not before I observe more"; with no proposal outstanding it means the search is over.
  virtual std::optional<Point> propose() = 0;
  // The trial of a proposed point, in any order, at most once per proposal; or of a point that the session tried by
  // itself and did not give to the strategy.
  virtual void observe(const PointTrial &trial) = 0;
};

// What a strategy starts from. The space must outlive the strategy.
struct StrategyInput {
  const SearchSpace *space = nullptr;
  std::vector<Point> feasible;                    // no duplicates
  bool hasPrior = false;                          // the feasible points come most promising first
  std::function<double(const Point &)> cost = {}; // the estimate that they are sorted by; null without a prior
};

// Sorts points by a cost that the caller estimates without running anything, cheapest first. Points of
// equal cost keep their order; a cost that is not a number counts as the largest.
void sortByPrior(std::vector<Point> &points, const std::function<double(const Point &)> &cost);

} // namespace heddle::tuner
