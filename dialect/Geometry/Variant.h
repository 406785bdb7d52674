// Owns what dialect/Analysis makes of a pattern, and what counts and schedules are made from: the pieces and the ranges
// of each branch, forward and transposed, for each choice of head groups.
#pragma once

#include "dialect/Geometry/ProblemSizes.h"
#include "dialect/Geometry/Ranges.h"

namespace heddle::attn {

/// One choice of operand for every attn.heads with the same number of operands.
struct Variant {
  std::map<unsigned, unsigned> groupOfCount; ///< operand count -> operand
  std::vector<PieceList> branches;
  VariantRanges forward, transposed;

  const VariantRanges &ranges(Direction direction) const {
    return direction == Direction::Forward ? forward : transposed;
  }
};

struct PatternAnalysis {
  std::vector<Variant> variants;
  IntExpr variantOfHead;             ///< index into `variants`, from Head and Heads
  std::vector<unsigned> maskTensors; ///< arguments, tensors of integers, that masks read

  /// True if no branch of any variant is masked.
  bool isStructural() const;
  /// True if the keys of some piece are those of a list; of one that is gone through, whatever is asked of it.
  bool hasLists() const;
  bool searchesLists() const;
};

/// Heads of one variant in which everything that pieces say of the head has the same values.
struct HeadGroup {
  unsigned variant;
  int64_t first; ///< the lowest of them
  int64_t heads; ///< how many there are
};

/// A pattern with the sizes of a call, which outlive whoever is given them.
struct AnalysedCall {
  const PatternAnalysis &analysis;
  const ProblemSizes &sizes;
};

/// Of heads that all these patterns treat alike; the variant is that of the first. The calls have as many heads.
std::vector<HeadGroup> headGroups(const std::vector<AnalysedCall> &calls);

/// Every head is in one group. Cost follows the groups and the bends of what depends on the head, not the number of
/// heads.
std::vector<HeadGroup> headGroups(const PatternAnalysis &analysis, const ProblemSizes &sizes);

} // namespace heddle::attn
