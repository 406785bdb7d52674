//===- TestSpace.h - search spaces of rules that read knobs by name -------===//
#pragma once

#include "tuner/Space/SearchSpace.h"

#include <doctest/doctest.h>

namespace heddle::tuner {

/// A knob of numbers.
inline Knob numbersKnob(std::string name, const std::vector<int64_t> &values, std::string help = "") {
  Knob knob{std::move(name), std::move(help), {}};
  for (int64_t value : values)
    knob.values.push_back({value, ""});
  return knob;
}

/// A knob of names. The value of a name is its position in `names`.
inline Knob namesKnob(std::string name, const std::vector<std::string> &names, std::string help = "") {
  Knob knob{std::move(name), std::move(help), {}};
  for (const std::string &one : names)
    knob.values.push_back({int64_t(knob.values.size()), one});
  return knob;
}

/// Reads the values of one point by knob name.
struct PointValues {
  const std::vector<Knob> &knobs;
  const Point &point;

  int64_t operator[](std::string_view knob) const {
    for (size_t i = 0; i < knobs.size(); ++i)
      if (knobs[i].name == knob)
        return knobs[i].values[point.index[i]].value;
    FAIL("no knob ", std::string(knob));
    return 0;
  }
};

inline PointValues valuesOf(const SearchSpace &space, const Point &point) { return {space.knobs(), point}; }

/// A named rule: what is wrong with the numbers, or nothing.
struct Constraint {
  std::string name;
  std::function<std::optional<std::string>(const PointValues &)> reason;
};

inline Result<SearchSpace> spaceOf(const std::string &name, const std::vector<Knob> &knobs,
                                   const std::vector<Constraint> &rules = {}) {
  std::vector<std::string> names;
  for (const Constraint &rule : rules)
    names.push_back(rule.name);
  auto judge = [knobs, rules](const Point &point) -> std::optional<Refusal> {
    for (const Constraint &rule : rules)
      if (std::optional<std::string> reason = rule.reason({knobs, point}))
        return Refusal{rule.name, *reason};
    return std::nullopt;
  };
  return SearchSpace::create(name, knobs, judge, names);
}

} // namespace heddle::tuner
