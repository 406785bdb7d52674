//===- Climb.cpp - neighbours of the best points seen -----------------------===//
// Tries the neighbours of the fastest point whose neighbours have not all been tried, and falls back
// to the seeded random order when there is none. Proposals never wait for observations, so it keeps
// a compile queue full; observations only change what comes next.
#include "tuner/Strategies/Registry.h"
#include "tuner/Strategies/Shuffle.h"

#include <algorithm>
#include <limits>
#include <set>

namespace heddle::tuner {

namespace {

struct ClimbOptions {
  int64_t seed = 1;
  int64_t priorFirst = 8;

  template <class F> static void fields(F &&f) {
    f("seed", &ClimbOptions::seed, OptionRange{0, std::numeric_limits<int64_t>::max()},
      "same seed and same trials, same order of points");
    f("prior_first", &ClimbOptions::priorFirst, OptionRange{0, std::numeric_limits<int32_t>::max()},
      "start with this many points in the order of the cost model, if there is one");
  }
};

class Climb : public Strategy {
public:
  Climb(StrategyInput input, const ClimbOptions &options)
      : space(*input.space), order(std::move(input.feasible)), random(uint64_t(options.seed)) {
    priorFirst = input.hasPrior ? std::min(size_t(options.priorFirst), order.size()) : 0;
    shuffleFrom(order, priorFirst, random);
    untried.insert(order.begin(), order.end());
  }

  std::optional<Point> propose() override {
    if (next >= priorFirst)
      if (std::optional<Point> step = climb())
        return take(*step);
    while (next < order.size() && !untried.count(order[next]))
      ++next;
    if (next == order.size())
      return std::nullopt;
    return take(order[next++]);
  }

  void observe(const PointTrial &trial) override {
    if (trial.isUsable())
      seen.emplace(trial.medianUs, trial.point);
  }

private:
  // An untried neighbour of the fastest point that has one; points without are forgotten.
  std::optional<Point> climb() {
    while (!seen.empty()) {
      std::vector<Point> steps;
      for (Point &neighbour : space.neighbours(seen.begin()->second))
        if (untried.count(neighbour))
          steps.push_back(std::move(neighbour));
      if (!steps.empty())
        return steps[size_t(random() % steps.size())];
      seen.erase(seen.begin());
    }
    return std::nullopt;
  }

  Point take(const Point &point) {
    untried.erase(point);
    return point;
  }

  const SearchSpace &space;
  std::vector<Point> order;
  std::set<Point> untried;
  std::set<std::pair<double, Point>> seen;
  std::mt19937_64 random;
  size_t priorFirst = 0;
  size_t next = 0;
};

Result<std::unique_ptr<Strategy>> create(StrategyInput input, const OptionTexts &texts) {
  HEDDLE_ASSIGN(ClimbOptions options, parseOptions<ClimbOptions>(texts));
  return std::unique_ptr<Strategy>(std::make_unique<Climb>(std::move(input), options));
}

} // namespace

StrategyInfo climbStrategy() {
  return {"climb", "neighbours of the fastest points seen, random points in between", describeOptions<ClimbOptions>(),
          create};
}

} // namespace heddle::tuner
