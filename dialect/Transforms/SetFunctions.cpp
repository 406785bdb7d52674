#include "dialect/Transforms/SetFunctions.h"

#include <algorithm>

namespace heddle::attn {
namespace {

constexpr size_t kMaxNodes = size_t(1) << 14;
constexpr size_t kMaxCubes = 64;

} // namespace

SetFunctions::SetFunctions() : nodes{{kMaxVariables, kNone, kNone}, {kMaxVariables, kAll, kAll}} {}

SetFunctions::Set SetFunctions::node(unsigned v, Set low, Set high) {
  if (low == high)
    return low;
  if (nodes.size() >= kMaxNodes) {
    tooLarge = true;
    return kNone;
  }
  auto [place, isNew] = known.emplace(std::tuple(v, low, high), Set(nodes.size()));
  if (isNew)
    nodes.push_back({v, low, high});
  return place->second;
}

SetFunctions::Set SetFunctions::at(Set a, unsigned v, bool value) const {
  if (topOf(a) != v)
    return a;
  return value ? nodes[a].high : nodes[a].low;
}

SetFunctions::Set SetFunctions::choose(Set condition, Set then, Set otherwise) {
  if (condition == kAll || then == otherwise)
    return then;
  if (condition == kNone || tooLarge)
    return otherwise;
  if (then == kAll && otherwise == kNone)
    return condition;
  const auto key = std::tuple(condition, then, otherwise);
  if (auto found = chosen.find(key); found != chosen.end())
    return found->second;
  const unsigned v = std::min({topOf(condition), topOf(then), topOf(otherwise)});
  const Set low = choose(at(condition, v, false), at(then, v, false), at(otherwise, v, false));
  const Set high = choose(at(condition, v, true), at(then, v, true), at(otherwise, v, true));
  return chosen[key] = node(v, low, high);
}

SetFunctions::Set SetFunctions::without(Set a, unsigned v) {
  if (topOf(a) > v)
    return a;
  if (topOf(a) == v)
    return either(nodes[a].low, nodes[a].high);
  if (auto found = projected.find({a, v}); found != projected.end())
    return found->second;
  const Node own = nodes[a];
  return projected[{a, v}] = choose(variable(own.variable), without(own.high, v), without(own.low, v));
}

/// Minato's irredundant sum of products.
SetFunctions::Cover SetFunctions::coverOf(Set lower, Set upper) {
  if (lower == kNone || tooLarge || manyCubes)
    return {};
  if (upper == kAll)
    return {{Cube{}}, kAll};
  if (auto found = covers.find({lower, upper}); found != covers.end())
    return found->second;
  const unsigned v = std::min(topOf(lower), topOf(upper));
  const Set lower0 = at(lower, v, false), lower1 = at(lower, v, true);
  const Set upper0 = at(upper, v, false), upper1 = at(upper, v, true);
  Cover outside = coverOf(both(lower0, complement(upper1)), upper0);
  Cover inside = coverOf(both(lower1, complement(upper0)), upper1);
  const Set left = either(both(lower0, complement(outside.set)), both(lower1, complement(inside.set)));
  Cover result = coverOf(left, both(upper0, upper1));
  result.set = either(result.set, choose(variable(v), inside.set, outside.set));
  for (Cube &cube : outside.cubes) {
    cube.negative |= uint64_t(1) << v;
    result.cubes.push_back(cube);
  }
  for (Cube &cube : inside.cubes) {
    cube.positive |= uint64_t(1) << v;
    result.cubes.push_back(cube);
  }
  manyCubes |= result.cubes.size() > kMaxCubes;
  return covers[{lower, upper}] = result;
}

std::optional<std::vector<Cube>> SetFunctions::cover(Set lower, Set upper) {
  manyCubes = false;
  std::vector<Cube> cubes = coverOf(lower, upper).cubes;
  if (!manyCubes)
    return cubes;
  covers.clear(); // some are of cut ones
  return std::nullopt;
}

} // namespace heddle::attn
