#include "tuner/Search/Strategies.h"
#include "tuner/Space/Shuffle.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace heddle::tuner {

namespace {

constexpr int64_t kMostPoints = std::numeric_limits<int32_t>::max();

void takeFirst(std::vector<Point> &points, bool, const std::vector<int64_t> &values) {
  if (const size_t limit = size_t(values[0]); limit > 0 && limit < points.size())
    points.resize(limit);
}

void shuffle(std::vector<Point> &points, bool hasPrior, const std::vector<int64_t> &values) {
  std::mt19937_64 random{uint64_t(values[0])};
  shuffleFrom(points, std::min(hasPrior ? size_t(values[1]) : 0, points.size()), random);
}

Result<std::vector<std::string>> splitAssignments(const std::string &text) {
  std::vector<std::string> result;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    result.push_back(text.substr(at, end - at));
    if (result.back().find('=') == std::string::npos)
      return Status::invalidArgument("strategy option '" + result.back() + "': expected <option>=<integer>");
    at = end + 1;
  }
  return result;
}

Result<int64_t> parseValue(const StrategyOption &option, const std::string &text) {
  int64_t value = 0;
  const char *end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end && value >= option.least && value <= option.most)
    return value;
  return Status::invalidArgument("strategy option '" + option.name + "': expected an integer from " +
                                 std::to_string(option.least) + " to " + std::to_string(option.most) + ", got '" +
                                 text + "'");
}

Result<std::vector<int64_t>> parseOptions(const Strategy &strategy, const std::string &text) {
  HEDDLE_ASSIGN(const std::vector<std::string> assignments, splitAssignments(text));
  std::vector<int64_t> values;
  std::string known;
  for (const StrategyOption &option : strategy.options) {
    values.push_back(option.byDefault);
    known += (known.empty() ? "" : ", ") + option.name;
  }
  for (const std::string &assignment : assignments) {
    const std::string name = assignment.substr(0, assignment.find('='));
    const auto option = std::find_if(strategy.options.begin(), strategy.options.end(),
                                     [&](const StrategyOption &each) { return each.name == name; });
    if (option == strategy.options.end())
      return Status::invalidArgument("strategy option '" + name + "': no such option; there are: " + known);
    HEDDLE_ASSIGN(values[size_t(option - strategy.options.begin())],
                  parseValue(*option, assignment.substr(name.size() + 1)));
  }
  return values;
}

} // namespace

const std::vector<Strategy> &strategies() {
  static const std::vector<Strategy> list = {
      {"exhaustive", "every feasible point, most promising first", {{"limit", 0, 0, kMostPoints}}, takeFirst},
      {"random",
       "a seeded random order after the most promising points",
       {{"seed", 1, 0, std::numeric_limits<int64_t>::max()}, {"prior_first", 8, 0, kMostPoints}},
       shuffle}};
  return list;
}

Result<std::vector<Point>> orderPoints(const std::string &specification, std::vector<Point> points, bool hasPrior) {
  const size_t colon = std::min(specification.find(':'), specification.size());
  const std::string name = specification.substr(0, colon);
  std::string known;
  for (const Strategy &strategy : strategies()) {
    known += (known.empty() ? "" : ", ") + std::string(strategy.name);
    if (name != strategy.name)
      continue;
    HEDDLE_ASSIGN(const std::vector<int64_t> values,
                  parseOptions(strategy, specification.substr(std::min(colon + 1, specification.size()))));
    strategy.order(points, hasPrior, values);
    return points;
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
