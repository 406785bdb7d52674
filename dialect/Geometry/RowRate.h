// Owns the choice of the residue classes that the rows of a variant are split into: their common multiple where that is
// small, else the rate at which tiles are fewest, by an estimate.
#pragma once

#include "dialect/Geometry/Piece.h"

namespace heddle::attn {

/// Lattices of rows whose common multiple is at most `exact` are kept whatever it costs the others; more than `most`
/// classes are never made.
struct RowRateLimits {
  int64_t exact = 64, most = 4096;
};

/// A sum over pairs takes rows apart into at most so many classes.
inline constexpr RowRateLimits kCountedClasses = {int64_t(1) << 14, int64_t(1) << 14};

/// Limits for patterns of so many head groups: kernels for heads that share keys count with the common multiple of all
/// groups.
RowRateLimits rowRateLimits(size_t variants);

/// Of the branches of a variant, rows on the q axis.
int64_t chooseRowRate(const std::vector<PieceList> &branches, const RowRateLimits &limits);

/// Widens congruences on the row to what so many classes know of them. The piece is masked where that is less.
void widenRows(Piece &piece, int64_t rowRate);

} // namespace heddle::attn
