// A strategy puts the feasible points in the order in which they are tried; time, compilation, measurement and records
// belong to the session. What every strategy promises is tested by tests/unit/strategies_test.cpp.
#pragma once

#include "tuner/Space/SearchSpace.h"

namespace heddle::tuner {

struct StrategyOption {
  std::string name;
  int64_t byDefault, least, most;
};

struct Strategy {
  const char *name;
  const char *summary; // one line of help
  std::vector<StrategyOption> options;
  // Orders points that come most promising first where there is a prior; values[i] is that of options[i].
  void (*order)(std::vector<Point> &points, bool hasPrior, const std::vector<int64_t> &values);
};

// All strategies, in the order in which help lists them; the first is the default. The list never changes.
const std::vector<Strategy> &strategies();

// Points in the order of a specification "<name>" or "<name>:<option>=<integer>,...". Refused: an unknown name or
// option, a value out of its range; the message lists what there is.
Result<std::vector<Point>> orderPoints(const std::string &specification, std::vector<Point> points, bool hasPrior);

// Sorts points by a cost that the caller estimates without running anything, cheapest first. Points of
// equal cost keep their order; a cost that is not a number counts as the largest.
void sortByPrior(std::vector<Point> &points, const std::function<double(const Point &)> &cost);

} // namespace heddle::tuner
