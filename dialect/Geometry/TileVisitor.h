//===- TileVisitor.h - single tiles of rows ---------------------*- C++ -*-===//
// Owns what one tile of rows visits, for concrete sizes.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_DIALECT_GEOMETRY_TILEVISITOR_H
#define HEDDLE_DIALECT_GEOMETRY_TILEVISITOR_H

#include "dialect/Geometry/ProblemSizes.h"
#include "dialect/Geometry/Ranges.h"

namespace heddle::attn {

/// Column tiles [begin, end).
struct TileRun {
  int64_t begin, end;
  bool operator==(const TileRun &other) const { return begin == other.begin && end == other.end; }
};

/// What one tile of rows does in one branch. Runs are ascending, disjoint and not adjacent.
struct TileVisit {
  std::vector<TileRun> visited, full;
  int64_t evaluations = 0; ///< of pieces, what it cost
};

/// A tile of rows: rows rowClass + rowRate * Q for Q in [index * block, (index + 1) * block), as far as they exist.
struct RowTile {
  int64_t rowClass = 0, index = 0, block = 1;
};

class BranchEvaluator;

/// Asks one branch of a variant about many tiles of rows; ranges and sizes outlive it.
class TileVisitor {
public:
  TileVisitor(const VariantRanges &variant, unsigned branch, Direction direction, const ProblemSizes &sizes);
  TileVisitor(TileVisitor &&) noexcept;
  ~TileVisitor();

  /// The column tiles for one tile of rows, which must hold at least one row.
  TileVisit visit(int64_t head, RowTile tile, int64_t columnsPerTile) const;
  /// Heads of this variant with equal values visit alike.
  std::vector<int64_t> headValues(int64_t head) const;

private:
  std::unique_ptr<BranchEvaluator> evaluator;
  int64_t rowRate;
  Direction direction;
  const ProblemSizes &sizes;
};

/// The column tiles of `branch` (of `variant`) for one tile of rows; the tile must hold at least one row.
TileVisit visitTile(const VariantRanges &variant, unsigned branch, Direction direction, const ProblemSizes &sizes,
                    int64_t head, RowTile tile, int64_t columnsPerTile);

} // namespace heddle::attn

#endif
