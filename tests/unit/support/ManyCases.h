//===- ManyCases.h - checks of many random compositions ------------------------===//
// Owns the loop over random cases: a check applies to some of them, and a disagreement is reported in its smallest
// form. HEDDLE_TEST_SEED=n starts elsewhere.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_MANYCASES_H
#define HEDDLE_TESTS_UNIT_SUPPORT_MANYCASES_H

#include "support/RandomPattern.h"

#include <cstdlib>
#include <doctest/doctest.h>

namespace heddle::test {

struct Outcome {
  bool isValid = false; ///< the verifier takes the pattern, and what is checked applies to it
  std::string account;  ///< of the first disagreement; empty if there is none
};

/// The smallest case on a path of simpler cases that all fail.
template <class Fails> RandomCase shrunk(RandomCase failing, Fails fails) {
  for (bool isSmaller = true; isSmaller;) {
    isSmaller = false;
    for (const RandomCase &simpler : simplerCases(failing)) {
      if (!fails(simpler))
        continue;
      failing = simpler;
      isSmaller = true;
      break;
    }
  }
  return failing;
}

inline int64_t fromEnvironment(const char *name, int64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoll(text, nullptr, 10) : otherwise;
}

/// Checks `wanted` cases that `check` applies to, of at most `limit`, and reports disagreements in their smallest form.
template <class Make, class Check> void checkMany(int64_t wanted, int64_t limit, Make make, Check check) {
  const int64_t seed = fromEnvironment("HEDDLE_TEST_SEED", 1);
  auto disagrees = [&](const RandomCase &made) { return !check(made).account.empty(); };
  for (int64_t tried = 0, checked = 0, failures = 0; checked < wanted && failures < 5; ++tried) {
    REQUIRE_MESSAGE(tried < limit, "too many patterns are refused by the verifier");
    std::mt19937 random(static_cast<uint32_t>(seed * 1000003 + tried));
    RandomCase made = make(random, tried);
    Outcome outcome = check(made);
    checked += outcome.isValid;
    if (outcome.account.empty())
      continue;
    ++failures;
    RandomCase smallest = shrunk(made, disagrees);
    CHECK_MESSAGE(false, smallest.describe(), "\n", check(smallest).account);
  }
}

} // namespace heddle::test

#endif
