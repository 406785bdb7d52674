//===- Exhaustive.cpp - every feasible point, most promising first ----------===//
// Proposes the points in the order given, so with a prior a short budget still sees the best guesses.
#include "tuner/Strategies/FixedOrder.h"
#include "tuner/Strategies/Registry.h"

#include <limits>

namespace heddle::tuner {

namespace {

struct ExhaustiveOptions {
  int64_t limit = 0;

  template <class F> static void fields(F &&f) {
    f("limit", &ExhaustiveOptions::limit, OptionRange{0, std::numeric_limits<int32_t>::max()},
      "stop after this many points, 0 for all");
  }
};

Result<std::unique_ptr<Strategy>> create(StrategyInput input, const OptionTexts &texts) {
  HEDDLE_ASSIGN(ExhaustiveOptions options, parseOptions<ExhaustiveOptions>(texts));
  std::vector<Point> points = std::move(input.feasible);
  if (options.limit > 0 && size_t(options.limit) < points.size())
    points.resize(size_t(options.limit));
  return std::unique_ptr<Strategy>(std::make_unique<FixedOrder>(std::move(points)));
}

} // namespace

StrategyInfo exhaustiveStrategy() {
  return {"exhaustive", "every feasible point, most promising first", describeOptions<ExhaustiveOptions>(), create};
}

} // namespace heddle::tuner
