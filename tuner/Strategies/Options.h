//===- Options.h - strategy options from one field list ---------------------===//
// A strategy's options are one struct of integers with one field list:
//   template <class F> static void fields(F &&f) { f("seed", &T::seed, {least, most}, "help"); }
// Defaults come from the struct, help and ranges from the list, parsing from here.
#pragma once

#include "runtime/Core/Status.h"

#include <charconv>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace heddle::tuner {

struct OptionRange {
  int64_t least;
  int64_t most;
};

// What is printed as help for one option.
struct OptionInfo {
  std::string name;
  int64_t byDefault;
  OptionRange range;
  std::string help;
};

// Options as they were typed, in order: name and value.
using OptionTexts = std::vector<std::pair<std::string, std::string>>;

template <class T> std::vector<OptionInfo> describeOptions() {
  std::vector<OptionInfo> result;
  const T defaults;
  T::fields([&](const char *name, int64_t T::*member, OptionRange range, const char *help) {
    result.push_back({name, defaults.*member, range, help});
  });
  return result;
}

// Refused: an option that T does not have (the message lists those it has), a value that is not an
// integer in the range of the option.
template <class T> Result<T> parseOptions(const OptionTexts &texts) {
  T options;
  for (const auto &given : texts) {
    const std::string &name = given.first, &text = given.second;
    std::string known, problem;
    bool isKnown = false;
    T::fields([&](const char *field, int64_t T::*member, OptionRange range, const char *) {
      known += (known.empty() ? "" : ", ") + std::string(field);
      if (name != field)
        return;
      isKnown = true;
      int64_t value = 0;
      const char *end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data(), end, value);
      if (error != std::errc() || stop != end || value < range.least || value > range.most)
        problem = "expected an integer from " + std::to_string(range.least) + " to " + std::to_string(range.most) +
                  ", got '" + text + "'";
      else
        options.*member = value;
    });
    if (!isKnown)
      problem = "no such option; there are: " + (known.empty() ? "none" : known);
    if (!problem.empty())
      return Status::invalidArgument("strategy option '" + name + "': " + problem);
  }
  return options;
}

} // namespace heddle::tuner
