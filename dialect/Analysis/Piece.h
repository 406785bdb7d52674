//===- Piece.h - closed forms of masks --------------------------*- C++ -*-===//
// Owns the vocabulary of the analysis. A piece is a set of (query position, key position) pairs: boxes on
// both axes, a band on k - q, and lattices (congruences on q, on k, and on k - q), repeated over cells (the
// segments of nested pullbacks; a cell's index is a symbol that the bounds use). Pieces are closed under
// intersection. Positions are global: a pullback only changes the frame in which a leaf writes its bounds.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_DIALECT_ANALYSIS_PIECE_H
#define HEDDLE_DIALECT_ANALYSIS_PIECE_H

#include "dialect/Analysis/IntExpr.h"

#include <functional>
#include <map>
#include <string>

namespace heddle::attn {

/// Inclusive bounds; an absent end is unbounded.
struct Interval {
  IntExpr lower, upper;
  void intersect(const Interval &other) {
    lower = max(lower, other.lower);
    upper = min(upper, other.upper);
  }
};

/// x is congruent to `residue` modulo `modulus` (static, > 1).
struct Congruence {
  int64_t modulus;
  IntExpr residue;
};

/// Cells are consecutive spans of positions: cell s is [base + s * span, base + (s + 1) * span).
struct CellLoop {
  unsigned cell; ///< index of the Cell symbol
  IntExpr base, span;
  IntExpr start() const { return base + symbol(Symbol::Cell, cell) * span; }
  IntExpr last() const { return start() + span - 1; }
};
/// Adds the loops of `from` that `to` does not have; ascending by index.
void appendCells(std::vector<CellLoop> &to, const std::vector<CellLoop> &from);

/// The key lies in an earlier (or later) cell than the query.
struct CellOrder {
  CellLoop loop;
  bool keyFirst;
};

struct Piece {
  std::vector<CellLoop> cells; ///< query and key share each; ascending by index; a base may use earlier cells
  std::vector<CellOrder> orders;
  Interval q, k;               ///< positions
  Interval diagonal;           ///< of k - q
  std::vector<Congruence> qLattice, kLattice, tie; ///< of q, of k, of k - q
  bool masked = false;         ///< covers the set, but is not equal to it
  std::string reason;          ///< why it is masked

  /// The same set with the axes swapped.
  Piece transposed() const;
};
using PieceList = std::vector<Piece>;

/// The pairs in both pieces. Masked if either is.
Piece intersect(const Piece &a, const Piece &b);

/// Hands out Cell symbols; the same cells asked for twice are the same symbol.
class CellTable {
public:
  CellLoop get(const IntExpr &base, const IntExpr &span);

private:
  std::vector<CellLoop> known;
};

/// The local coordinates in which a mask is evaluated: position = base + rate * local. `region` is the set of
/// pairs that have local coordinates here. Passed down from the pattern to the leaves.
struct Frame {
  Piece region;
  IntExpr base = 0;
  int64_t rate = 1;
  IntExpr extentQ, extentK; ///< local coordinates lie below these
  IntExpr group = 0;        ///< index of the enclosing attn.heads operand
  const std::map<unsigned, unsigned> *groupOfCount = nullptr; ///< attn.heads with n operands takes this one
  CellTable *cells = nullptr;

  /// Local coordinate of the frame -> position.
  IntExpr position(const IntExpr &local) const { return base + local * IntExpr(rate); }
};

} // namespace heddle::attn

#endif
