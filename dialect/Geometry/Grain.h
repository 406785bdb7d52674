// Owns the question how large the squares are in which a pattern keeps all pairs or none. A kernel whose tiles lie in
// such squares never asks for a pair: a tile that it visits is kept.
#pragma once

#include "dialect/Geometry/Variant.h"

namespace heddle::attn {

/// The largest known g so that a tile that is visited is kept whole, if its g rows and its g columns begin at a
/// multiple of g in their classes and position 0 of rows and columns is that of row and column 0: for any sizes and
/// every head. What does not exist in a tile apart. 1: none is known. Of tiles of a direction.
int64_t grainOf(const PatternAnalysis &analysis, Direction direction = Direction::Forward);

/// Squares that are cut by one band of positions and by nothing else.
struct BandedGrain {
  /// of a tile that is visited, placed as above, what lies in the band is kept
  int64_t grain = 1;
  /// of k - q, for each variant and branch, without cells; none if grain is 1
  std::vector<std::vector<Interval>> bands;
};

/// Likewise. Of patterns with lists, whose predicates are long; of others, and where there is no band, the
/// grain is 1.
BandedGrain bandedGrainOf(const PatternAnalysis &analysis, Direction direction = Direction::Forward);

/// The largest known divisor of the values of `expr`; 0: they are all 0.
int64_t knownDivisor(const IntExpr &expr);

} // namespace heddle::attn
