// Owns the vocabulary of the analysis. A piece is a set of (query position, key position) pairs: boxes on
// both axes, a band on k - q, and lattices (congruences on q, on k, and on k - q), repeated over cells (the
// segments and documents of nested pullbacks; a cell's index is a symbol that the bounds use). Pieces are closed under
// intersection. Positions are global: a pullback only changes the frame in which a leaf writes its bounds. A piece may
// also keep only the key cells that a list names for the query's cell (CellList.h).
#pragma once

#include "dialect/Geometry/CellList.h"
#include "dialect/Geometry/IntExpr.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
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

/// Where the cells of a loop lie on one axis: of one size, from `base` on, or where the entries of a tensor say.
struct CellAxis {
  IntExpr base;                   ///< position of the start of cell 0, or of offset 0
  std::optional<unsigned> starts; ///< the tensor (an argument of the pattern) whose entry s is the offset of cell s
  bool operator==(const CellAxis &other) const { return base == other.base && starts == other.starts; }
};

/// Cells are consecutive spans of positions, on each axis: cell s is [base + s * span, base + (s + 1) * span), or, of
/// unequal cells, [base + entry s, base + entry s + 1), 0 <= s < count, the entries ascending.
struct CellLoop {
  unsigned cell; ///< index of the Cell symbol
  CellAxis q, k;
  IntExpr span;  ///< absent: the cells are unequal
  IntExpr count; ///< of unequal cells

  bool isEven() const { return bool(span); }
  /// First and last position of the cell.
  IntExpr start(const CellAxis &axis) const;
  IntExpr last(const CellAxis &axis) const;
  /// First position of the cell `steps` after, last one of the cell `steps` after, as bounds; of unequal cells at most
  /// one away.
  IntExpr startAfter(const CellAxis &axis, const IntExpr &steps) const;
  IntExpr lastAfter(const CellAxis &axis, const IntExpr &steps) const;
  /// The cell that a position of the axis lies in; of unequal cells the nearest one.
  IntExpr cellAt(const CellAxis &axis, const IntExpr &position) const;
  /// Of unequal cells: every row from `first` to `last` lies in one.
  IntExpr holdsAll(const CellAxis &axis, const IntExpr &first, const IntExpr &last) const;
  CellLoop transposed() const { return {cell, k, q, span, count}; }
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
  CellList transposed() const;
};

struct Piece {
  std::vector<CellLoop> cells; ///< query and key share each; ascending by index; bases may use earlier cells
  std::vector<CellBand> bands; ///< at most one for each cell loop
  std::vector<CellClass> qCells, kCells;
  std::optional<CellList> list;
  Interval q, k;                                   ///< positions
  Interval diagonal;                               ///< of k - q
  std::vector<Congruence> qLattice, kLattice, tie; ///< of q, of k, of k - q
  bool masked = false;                             ///< covers the set, but is not equal to it
  std::string reason;                              ///< why it is masked

  /// The same set with the axes swapped.
  Piece transposed() const;
};
using PieceList = std::vector<Piece>;

/// The pairs in both pieces. Masked if either is, or if they have different lists.
Piece intersect(const Piece &a, const Piece &b);

/// Hands out Cell symbols; the same cells asked for twice are the same symbol.
class CellTable {
public:
  /// Numbers the cells of `wanted`.
  CellLoop get(CellLoop wanted);

private:
  std::vector<CellLoop> known;
};

/// The local coordinates in which a mask is evaluated: local x of an axis stands for the positions base + rate * n with
/// floor(n / width) = x. `region` is the set of pairs that have local coordinates here. Passed down from the pattern to
/// the leaves.
struct Frame {
  Piece region;
  IntExpr baseQ = 0, baseK = 0;
  int64_t rate = 1;
  IntExpr width = 1;        ///< positions of one local coordinate: more than 1 inside attn.blocks
  IntExpr extentQ, extentK; ///< local coordinates lie below these
  bool hasNegative = true;  ///< there may be rows before coordinate 0
  IntExpr group = 0;        ///< index of the enclosing attn.heads operand
  const std::map<unsigned, unsigned> *groupOfCount = nullptr; ///< attn.heads with n operands takes this one
  CellTable *cells = nullptr;

  /// One position for each local coordinate.
  bool isFine() const { return width == IntExpr(1); }
  /// Positions from one local coordinate to the next.
  IntExpr step() const { return width * IntExpr(rate); }
  /// Blocks whose size is not known, or no divisor of where positions end: positions are made of sizes in 64 bits.
  bool isWide() const;
  /// A size of the author, counted from an edge, cut where it would reach beyond every position: what is made of it
  /// stays within 32 bits, or is cut itself where the frame is wide.
  IntExpr cut(const IntExpr &size) const;
  /// Likewise of a distance.
  IntExpr reach(const IntExpr &size) const;
  /// So many local coordinates, in positions.
  IntExpr positions(const IntExpr &size) const;
  /// The frame of blocks of so many local coordinates.
  Frame inBlocks(const IntExpr &size) const;
  /// First and last position of a local coordinate on the axis &Piece::q or &Piece::k.
  IntExpr first(Interval Piece::*axis, const IntExpr &local) const;
  IntExpr last(Interval Piece::*axis, const IntExpr &local) const;
  /// The pairs of the region whose key lies `steps` local coordinates after the query.
  Piece band(const Interval &steps) const;
  /// The cells that local coordinates are.
  CellLoop blocks() const { return cells->get(evenCells(step())); }
  CellLoop evenCells(const IntExpr &span) const { return {0, {baseQ, {}}, {baseK, {}}, span, {}}; }

private:
  /// A position made of `local`, cut where 32 bits might not hold it.
  IntExpr bound(const IntExpr &position, const IntExpr &local) const;
};

/// Each of them is a lower bound, the largest counts; empty where nothing bounds.
std::vector<IntExpr> lowerTerms(const Interval &interval);
/// Each of them is an upper bound, the smallest counts.
std::vector<IntExpr> upperTerms(const Interval &interval);

/// True if no sizes >= 0 make the lower bound larger than the upper one, as far as that is seen.
bool isNeverEmpty(const Interval &interval);

/// Drops pieces that are empty for every size.
void dropEmpty(PieceList &pieces);

} // namespace heddle::attn
