// Plans over ranks as files, for tests of what follows plans that know no patterns, and how they are made.
#ifndef HEDDLE_TESTS_UNIT_GROUP_PLANS_H
#define HEDDLE_TESTS_UNIT_GROUP_PLANS_H

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace heddle::test {

// 4 heads, 2 of k and v; sizes of patterns are 19, keys further apart than 40 lie in windows of their own.
struct PlanCase {
  const char *file, *pattern;
  int64_t rows;
  int32_t ranks;
  const char *layout, *form;
  bool travels = true, hasGuests = false, isPlacementFree = false;
  bool isBeside = false; // forward, some launch of a rank runs beside others of it
};

inline std::vector<PlanCase> planCases() {
  std::vector<PlanCase> cases = {
      {"causal_gather", "causal", 128, 2, "zigzag", "gather"},
      {"causal_ring", "causal", 96, 3, "zigzag", "ring"},
      {"causal_free", "causal", 128, 2, "zigzag", "gather"},
      {"window_gather", "sliding_window", 128, 3, "contiguous", "gather"},
      {"window_ring", "sliding_window", 128, 3, "striped:10", "ring"},
      {"longformer_gather", "longformer", 1024, 2, "contiguous", "gather"},
      {"causal_heads", "causal", 96, 2, "zigzag", "ulysses"},
      {"full_heads", "full", 96, 4, "contiguous", "ulysses"},
      {"causal_teams", "causal", 96, 4, "zigzag", "ulysses2+gather"},
      {"window_teams", "sliding_window", 128, 8, "contiguous", "ulysses4+ring"},
      {"dilated_gather", "dilated", 16384, 2, "contiguous", "gather", /*travels=*/false},
      {"longnet_free", "longnet", 128, 2, "zigzag", "gather"},
  };
  cases[2].isPlacementFree = cases[11].isPlacementFree = true;
  cases[5].hasGuests = true;
  for (size_t number : {0, 2, 5, 8, 11}) // several blocks of a rank, of which one begins in the last step
    cases[number].isBeside = true;
  return cases;
}

inline std::string textOf(const PlanCase &of) {
  std::ifstream file(HEDDLE_GROUP_PLANS + ("/" + std::string(of.file)) + ".txt");
  return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace heddle::test

#endif
