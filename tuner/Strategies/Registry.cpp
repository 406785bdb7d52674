//===- Registry.cpp ---------------------------------------------------------===//
// The explicit list: each name stands for a function `StrategyInfo <name>Strategy()` in its own file.
#include "tuner/Strategies/Registry.h"

#include <algorithm>
#include <cmath>
#include <limits>

#define HEDDLE_STRATEGIES(S)                                                                                           \
  S(halving)                                                                                                           \
  S(exhaustive)                                                                                                        \
  S(random)                                                                                                            \
  S(climb)

namespace heddle::tuner {

#define HEDDLE_DECLARE_STRATEGY(name) StrategyInfo name##Strategy();
HEDDLE_STRATEGIES(HEDDLE_DECLARE_STRATEGY)
#undef HEDDLE_DECLARE_STRATEGY

const std::vector<StrategyInfo> &strategyRegistry() {
#define HEDDLE_LIST_STRATEGY(name) name##Strategy(),
  static const std::vector<StrategyInfo> list = {HEDDLE_STRATEGIES(HEDDLE_LIST_STRATEGY)};
#undef HEDDLE_LIST_STRATEGY
  return list;
}

namespace {

Result<OptionTexts> splitOptions(const std::string &text) {
  OptionTexts result;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string assignment = text.substr(at, end - at);
    const size_t equals = assignment.find('=');
    if (equals == std::string::npos)
      return Status::invalidArgument("strategy option '" + assignment + "': expected <option>=<integer>");
    result.emplace_back(assignment.substr(0, equals), assignment.substr(equals + 1));
    at = end + 1;
  }
  return result;
}

} // namespace

Result<std::unique_ptr<Strategy>> createStrategy(const std::string &specification, StrategyInput input) {
  const size_t colon = std::min(specification.find(':'), specification.size());
  const std::string name = specification.substr(0, colon);
  std::string known;
  for (const StrategyInfo &info : strategyRegistry()) {
    known += (known.empty() ? "" : ", ") + std::string(info.name);
    if (name != info.name)
      continue;
    HEDDLE_ASSIGN(OptionTexts options, splitOptions(specification.substr(std::min(colon + 1, specification.size()))));
    return info.create(std::move(input), options);
  }
  return Status::invalidArgument("strategy '" + name + "' does not exist; there are: " + known);
}

void sortByPrior(std::vector<Point> &points, const std::function<double(const Point &)> &cost) {
  std::vector<std::pair<double, size_t>> keys;
  keys.reserve(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    const double estimate = cost(points[i]);
    keys.emplace_back(std::isnan(estimate) ? std::numeric_limits<double>::infinity() : estimate, i);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<Point> sorted;
  sorted.reserve(points.size());
  for (const auto &[estimate, index] : keys)
    sorted.push_back(std::move(points[index]));
  points = std::move(sorted);
}

} // namespace heddle::tuner
