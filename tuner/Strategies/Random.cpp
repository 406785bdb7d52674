//===- Random.cpp - a seeded random order -----------------------------------===//
// The first few points follow the prior, the others come in an order that only the seed decides.
#include "tuner/Strategies/FixedOrder.h"
#include "tuner/Strategies/Registry.h"
#include "tuner/Strategies/Shuffle.h"

#include <algorithm>
#include <limits>

namespace heddle::tuner {

namespace {

struct RandomOptions {
  int64_t seed = 1;
  int64_t priorFirst = 8;

  template <class F> static void fields(F &&f) {
    f("seed", &RandomOptions::seed, OptionRange{0, std::numeric_limits<int64_t>::max()},
      "same seed, same order of points");
    f("prior_first", &RandomOptions::priorFirst, OptionRange{0, std::numeric_limits<int32_t>::max()},
      "start with this many points in the order of the cost model, if there is one");
  }
};

Result<std::unique_ptr<Strategy>> create(StrategyInput input, const OptionTexts &texts) {
  HEDDLE_ASSIGN(RandomOptions options, parseOptions<RandomOptions>(texts));
  std::vector<Point> points = std::move(input.feasible);
  std::mt19937_64 random{uint64_t(options.seed)};
  const size_t fixed = input.hasPrior ? size_t(options.priorFirst) : 0;
  shuffleFrom(points, std::min(fixed, points.size()), random);
  return std::unique_ptr<Strategy>(std::make_unique<FixedOrder>(std::move(points)));
}

} // namespace

StrategyInfo randomStrategy() {
  return {"random", "a seeded random order after the most promising points", describeOptions<RandomOptions>(), create};
}

} // namespace heddle::tuner
