//===- Exhaustive.cpp - every feasible point, most promising first ----------===//
// Proposes the points in the order given, so with a prior a short budget still sees the best guesses.
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

class Exhaustive : public Strategy {
public:
  Exhaustive(StrategyInput input, const ExhaustiveOptions &options) : points(std::move(input.feasible)) {
    if (options.limit > 0 && size_t(options.limit) < points.size())
      points.resize(size_t(options.limit));
  }

  std::optional<Point> propose() override {
    if (next == points.size())
      return std::nullopt;
    return points[next++];
  }

  void observe(const PointTrial &) override {}

private:
  std::vector<Point> points;
  size_t next = 0;
};

Result<std::unique_ptr<Strategy>> create(StrategyInput input, const OptionTexts &texts) {
  HEDDLE_ASSIGN(ExhaustiveOptions options, parseOptions<ExhaustiveOptions>(texts));
  return std::unique_ptr<Strategy>(std::make_unique<Exhaustive>(std::move(input), options));
}

} // namespace

StrategyInfo exhaustiveStrategy() {
  return {"exhaustive", "every feasible point, most promising first", describeOptions<ExhaustiveOptions>(), create};
}

} // namespace heddle::tuner
