//===- HeadGroups.h - heads that a pattern treats alike ----------*- C++ -*-===//
#pragma once

#include "dialect/Geometry/ProblemSizes.h"
#include "dialect/Geometry/Variant.h"

namespace heddle::attn {

/// Heads of one variant in which everything that pieces say of the head has the same values.
struct HeadGroup {
  unsigned variant;
  int64_t first; ///< the lowest of them
  int64_t heads; ///< how many there are
};

/// Every head is in one group. Cost follows the groups and the bends of what depends on the head, not the number of
/// heads.
std::vector<HeadGroup> headGroups(const PatternAnalysis &analysis, const ProblemSizes &sizes);

} // namespace heddle::attn
