//===- Variant.h - a whole pattern as pieces and ranges ---------*- C++ -*-===//
// Owns what dialect/Analysis makes of a pattern, and what counts and schedules are made from: the pieces and the ranges
// of each branch, forward and transposed, for each choice of head groups.
//===----------------------------------------------------------------------===//
#pragma once

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
};

} // namespace heddle::attn
