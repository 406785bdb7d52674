// Owns the formulas that turn pieces into ranges of columns for a tile of rows. They are expressions over
// TileFirst and TileLast (positions of the first and last existing row of the tile), the cells that the tile
// crosses, sizes and parameters. The host evaluates them (Counts.h), the device runs them (codegen/Schedule).
#pragma once

#include "dialect/Geometry/Piece.h"
#include "dialect/Geometry/RowRate.h"

#include <string>

namespace heddle::attn {

/// Which axis the tiles are rows of. Forward: rows are queries. Transposed: rows are keys (dK, dV).
enum class Direction { Forward, Transposed };

/// A cell loop with the bounds that a tile gives it: cells lower <= s <= upper.
struct CellRange {
  unsigned cell;
  IntExpr lower, upper;
  IntExpr span; ///< positions of a cell; 1 of unequal ones, whose numbers no position is made of
};

/// The columns that a list names, in column numbers. A listed cell visits [first, last], cut to the piece's own range.
struct ListedColumns {
  std::shared_ptr<const ListRule> rule;
  std::vector<IntExpr> arguments;
  IntExpr row;         ///< number of the cell of the tile's rows
  IntExpr span;        ///< positions of a cell
  IntExpr first, last; ///< over Symbol::ListedCell
  IntExpr cellOf;      ///< cell of the first column of the piece at or after Symbol::Column
};

/// What one piece asks of a tile, in column numbers K of the branch's class (column index = residue + rate * K).
/// Per combination of cells; over several cells the visited ranges add up and the full ones intersect.
struct PieceRange {
  std::vector<CellRange> cells;      ///< ascending; later ones may use earlier ones
  IntExpr visitFirst, visitLast;     ///< empty when first > last
  IntExpr hasRows;                   ///< 0: no row of the tile lies in these cells
  IntExpr fullFirst, fullLast;       ///< every row of the tile in these cells keeps these columns
  std::optional<ListedColumns> list; ///< and of the columns above only those that it names
};

struct BranchRanges {
  int64_t columnRate = 1;
  IntExpr columnResidue = 0; ///< of the column INDEX, in [0, columnRate)
  IntExpr columnCount;       ///< columns of this class
  std::vector<PieceRange> pieces;
  bool masked = false;          ///< visited is a superset, full a subset
  bool mayVisitGaps = false;    ///< rows lie further apart than a band is wide: columns between may be visited
  int64_t exactFromColumns = 1; ///< visited is exact for column tiles of at least this many columns
  std::string reason;           ///< why it is masked
};

struct VariantRanges {
  int64_t rowRate = 1;
  std::vector<BranchRanges> branches;
};

/// Empty if tiles of rows find the piece's columns in closed form; else what stands against that.
std::string whyMasked(const Piece &piece, Direction direction);

/// Of more pieces than this in a branch the last ones are one, which visits a superset.
inline constexpr unsigned kMaxPieces = 8;

/// Piece lists of the branches of one variant (queries on the q axis) -> ranges. Rows exist by construction; columns
/// are cut to the existing ones here, so pieces carry no bounds for the ends of the sequence.
/// Lattices that the classes of rows do not keep (RowRate.h) are widened, which visits a superset.
VariantRanges buildRanges(const std::vector<PieceList> &branches, Direction direction,
                          const RowRateLimits &limits = {});

} // namespace heddle::attn
