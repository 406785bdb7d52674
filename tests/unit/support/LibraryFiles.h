// Owns the list of the files of patterns/, and the share of it that slow checks take of every run.
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_LIBRARYFILES_H
#define HEDDLE_TESTS_UNIT_SUPPORT_LIBRARYFILES_H

#include "support/Places.h"

#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <vector>

namespace heddle::test {

inline std::vector<std::string> libraryPatterns() {
  std::vector<std::string> paths;
  for (const auto &entry : std::filesystem::directory_iterator(test::places().patterns))
    if (entry.path().extension() == ".mlir")
      paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  REQUIRE(paths.size() >= 40);
  return paths;
}

inline bool takesAll() { return std::getenv("HEDDLE_TEST_ALL") != nullptr; }

/// Every second file, from the first or the second one on; all of them with HEDDLE_TEST_ALL=1. Checks of one kind begin
/// differently, so that each file is among some of them.
inline std::vector<std::string> halfOfLibrary(size_t first) {
  const std::vector<std::string> all = libraryPatterns();
  if (takesAll())
    return all;
  std::vector<std::string> some;
  for (size_t i = first; i < all.size(); i += 2)
    some.push_back(all[i]);
  return some;
}

} // namespace heddle::test

#endif
