//===- Piece.h - closed forms of masks --------------------------*- C++ -*-===//
// Owns the vocabulary of the analysis. A piece is a set of (query position, key position) pairs: boxes on
// both axes, a band on k - q, and lattices (congruences on q, on k, and on k - q), repeated over cells (the
// segments of nested pullbacks; a cell's index is a symbol that the bounds use). Pieces are closed under
// intersection. Positions are global: a pullback only changes the frame in which a leaf writes its bounds. A piece may also
// keep only the key cells that a list names for the query's cell (CellList.h).
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_DIALECT_ANALYSIS_PIECE_H
#define HEDDLE_DIALECT_ANALYSIS_PIECE_H

#include "dialect/Analysis/CellList.h"
#include "dialect/Analysis/IntExpr.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace heddle::attn {

/// Positions lie within (-kFarthest, kFarthest): sums of two of them fit the 32 bits of device code.
constexpr int64_t kFarthest = int64_t(1) << 30;

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

/// Cell of the key - cell of the query lies in `steps`: {, -1} is an earlier cell, {0, 0} the same one.
struct CellBand {
  CellLoop loop;
  Interval steps;
};

/// The cell of one axis has a number congruent to `residue` modulo `modulus` (static, > 1).
struct CellClass {
  CellLoop loop;
  int64_t modulus;
  IntExpr residue;
};

/// The cell of the key is one of those that the cell of the query names.
struct CellList {
  CellLoop loop;
  std::shared_ptr<const ListRule> rule;
  std::vector<IntExpr> arguments; ///< of the rule
  bool isTransposed = false;      ///< the cell of the query is one of those that the cell of the key names
};

struct Piece {
  std::vector<CellLoop> cells; ///< query and key share each; ascending by index; a base may use earlier cells
  std::vector<CellBand> bands;         ///< at most one for each cell loop
  std::vector<CellClass> qCells, kCells;
  std::optional<CellList> list;
  Interval q, k;               ///< positions
  Interval diagonal;           ///< of k - q
  std::vector<Congruence> qLattice, kLattice, tie; ///< of q, of k, of k - q
  bool masked = false;         ///< covers the set, but is not equal to it
  std::string reason;          ///< why it is masked

  /// The same set with the axes swapped.
  Piece transposed() const;
};
using PieceList = std::vector<Piece>;

/// The pairs in both pieces. Masked if either is, or if they have different lists.
Piece intersect(const Piece &a, const Piece &b);

/// Hands out Cell symbols; the same cells asked for twice are the same symbol.
class CellTable {
public:
  CellLoop get(const IntExpr &base, const IntExpr &span);

private:
  std::vector<CellLoop> known;
};

/// The local coordinates in which a mask is evaluated: local x stands for the positions base + rate * n with
/// floor(n / width) = x. `region` is the set of pairs that have local coordinates here. Passed down from the pattern to
/// the leaves.
struct Frame {
  Piece region;
  IntExpr base = 0;
  int64_t rate = 1;
  IntExpr width = 1;        ///< positions of one local coordinate: more than 1 inside attn.blocks
  IntExpr extentQ, extentK; ///< local coordinates lie below these
  IntExpr group = 0;        ///< index of the enclosing attn.heads operand
  const std::map<unsigned, unsigned> *groupOfCount = nullptr; ///< attn.heads with n operands takes this one
  CellTable *cells = nullptr;

  /// One position for each local coordinate.
  bool isFine() const { return width == IntExpr(1); }
  /// Positions from one local coordinate to the next.
  IntExpr step() const { return width * IntExpr(rate); }
  /// A size of the author, cut where it would reach beyond every position: what is made of it stays within 32 bits.
  IntExpr cut(const IntExpr &size) const;
  /// First and last position of a local coordinate.
  IntExpr first(const IntExpr &local) const { return base + local * step(); }
  IntExpr last(const IntExpr &local) const { return isFine() ? first(local) : first(local + 1) - rate; }
  /// The pairs of the region whose key lies `steps` local coordinates after the query.
  Piece band(const Interval &steps) const;
  /// The cells that local coordinates are.
  CellLoop blocks() const { return cells->get(base, step()); }
};

} // namespace heddle::attn

#endif
