#include "dialect/Geometry/ConsecutiveTiles.h"

#include <algorithm>

namespace heddle::attn {
namespace {

constexpr Symbol::Kind kMoving[] = {Symbol::Cell, Symbol::TileFirst, Symbol::Head};

/// The same for all tiles of all heads.
bool isFixed(const IntExpr &bound) {
  return std::none_of(std::begin(kMoving), std::end(kMoving), [&](Symbol::Kind kind) { return bound.dependsOn(kind); });
}

bool isFixed(const Interval &interval) {
  return (!interval.lower || isFixed(interval.lower)) && (!interval.upper || isFixed(interval.upper));
}

/// Likewise, but for the ends of the piece's cells.
bool isFixedInCells(const Piece &piece, Interval Piece::*axis, CellAxis CellLoop::*axisOfCell) {
  const auto isOk = [&](const std::vector<IntExpr> &terms, IntExpr (CellLoop::*end)(const CellAxis &) const) {
    return std::all_of(terms.begin(), terms.end(), [&](const IntExpr &term) {
      return isFixed(term) || std::any_of(piece.cells.begin(), piece.cells.end(),
                                          [&](const CellLoop &loop) { return term == (loop.*end)(loop.*axisOfCell); });
    });
  };
  return isOk(lowerTerms(piece.*axis), &CellLoop::start) && isOk(upperTerms(piece.*axis), &CellLoop::last);
}

bool holdsZero(const Interval &interval) {
  return isNeverEmpty({interval.lower, 0}) && isNeverEmpty({0, interval.upper});
}

/// Cells lie alike on both axes, and a query whose own position is a key keeps it, cut to an interval of keys: what
/// consecutive queries keep leaves no gap, whatever cells they lie in.
bool keepsOwnPosition(const Piece &piece) {
  const auto isSquare = [](const CellLoop &loop) { return loop.q == loop.k; };
  return holdsZero(piece.diagonal) && std::all_of(piece.cells.begin(), piece.cells.end(), isSquare) &&
         std::all_of(piece.bands.begin(), piece.bands.end(),
                     [&](const CellBand &band) { return isSquare(band.loop) && holdsZero(band.steps); });
}

/// Without cells what a query keeps moves with it: it is the band, cut to an interval of keys.
bool keepsConsecutiveKeys(const Piece &piece, int64_t rate) {
  if (piece.list || !piece.qCells.empty() || !piece.kCells.empty())
    return false;
  if (!isFixedInCells(piece, &Piece::q, &CellLoop::q) || !isFixedInCells(piece, &Piece::k, &CellLoop::k) ||
      !isFixed(piece.diagonal))
    return false;
  return (piece.cells.empty() && piece.bands.empty()) || (rate == 1 && keepsOwnPosition(piece));
}

} // namespace

int64_t rateOfConsecutiveTiles(const PatternAnalysis &analysis) {
  if (analysis.variants.size() != 1)
    return 0;
  const Variant &variant = analysis.variants.front();
  if (variant.branches.size() != 1 || variant.branches.front().size() != 1)
    return 0;
  const int64_t rate = variant.transposed.rowRate;
  const BranchRanges &ranges = variant.transposed.branches.front();
  const Piece &piece = variant.branches.front().front();
  const bool isOneClass = !ranges.masked && ranges.columnRate == rate &&
                          !ranges.columnResidue.dependsOn(Symbol::Cell) &&
                          !ranges.columnResidue.dependsOn(Symbol::Head);
  return isOneClass && keepsConsecutiveKeys(piece, rate) ? rate : 0;
}

} // namespace heddle::attn
