// Owns what one tile of rows visits, for concrete sizes.
#pragma once

#include "dialect/Geometry/ProblemSizes.h"
#include "dialect/Geometry/Variant.h"

namespace heddle::attn {

/// Column tiles [begin, end).
struct TileRun {
  int64_t begin, end;
  bool operator==(const TileRun &other) const { return begin == other.begin && end == other.end; }
};

/// What one tile of rows does in one branch. Runs are ascending, disjoint and not adjacent.
struct TileVisit {
  std::vector<TileRun> visited, full;
  int64_t evaluations = 0; ///< of pieces and of loops over cells, what it cost
};

/// A tile of rows: rows rowClass + rowRate * Q for Q in [index * block, (index + 1) * block), as far as they exist.
struct RowTile {
  int64_t rowClass = 0, index = 0, block = 1;
};

/// Rows of one class by the positions of the first and the last one.
struct RowSpan {
  int64_t first, last;
};

class BranchEvaluator;

/// Asks one branch of a variant about many tiles of rows; ranges and sizes outlive it.
class TileVisitor {
public:
  TileVisitor(const VariantRanges &variant, unsigned branch, Direction direction, const ProblemSizes &sizes);
  TileVisitor(TileVisitor &&) noexcept;
  ~TileVisitor();

  /// The column tiles for one tile of rows, which must hold at least one row. Ends early, and means nothing, once it has
  /// taken more evaluations than `most`.
  TileVisit visit(int64_t head, RowTile tile, int64_t columnsPerTile, int64_t most = INT64_MAX) const;
  TileVisit visit(int64_t head, RowSpan rows, int64_t columnsPerTile, int64_t most = INT64_MAX) const;
  /// Of the class of columns that rows from this position on visit.
  int64_t columnResidue(int64_t head, int64_t firstRow) const;
  /// Heads of this variant with equal values visit alike.
  std::vector<int64_t> headValues(int64_t head) const;

private:
  std::unique_ptr<BranchEvaluator> evaluator;
  int64_t rowRate;
  Direction direction;
  const ProblemSizes &sizes;
};

/// The branches of all variants, so that heads that visit alike are asked about once; what it is given outlives it.
class HeadVisitors {
public:
  HeadVisitors(const PatternAnalysis &analysis, Direction direction, const ProblemSizes &sizes);

  const std::vector<TileVisitor> &of(int64_t head) const;
  /// Heads with equal values visit alike in every branch.
  std::vector<int64_t> headValues(int64_t head) const;

private:
  const PatternAnalysis &analysis;
  const ProblemSizes &sizes;
  std::vector<std::vector<TileVisitor>> variants;
};

} // namespace heddle::attn
