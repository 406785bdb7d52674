//===- Counts.h - exact numbers of pairs and tiles --------------*- C++ -*-===//
// Owns counting: tiles that a schedule visits, tiles that it may run without a mask, and kept pairs, as exact
// integers for concrete sizes. Cost follows the bends of the pattern, not its length (ExprProgram.h, SweepDomain).
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_DIALECT_ANALYSIS_COUNTS_H
#define HEDDLE_DIALECT_ANALYSIS_COUNTS_H

#include "dialect/Analysis/PatternAnalysis.h"
#include "dialect/Analysis/TensorData.h"

namespace heddle::attn {

using WideInt = __int128;

/// A sum over the tiles of one branch takes at most so many evaluations of pieces, about a second, unless a caller allows more.
inline constexpr int64_t kMostEvaluations = int64_t(1) << 20;

/// Concrete sizes of one call. Lengths and heads are >= 0; `parameters` has one value per run-time size.
struct ProblemSizes {
  int64_t heads = 1, seqlenQ = 0, seqlenK = 0, qOrigin = 0, kOrigin = 0;
  std::vector<int64_t> parameters;
  TensorData tensors = {}; ///< of integers, as far as they are given
  int64_t mostEvaluations = kMostEvaluations; ///< of one sum; what takes more is a bound, or unknown
};

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

struct TileShape {
  int64_t rows = 128, columns = 128;
};

struct TileCounts {
  WideInt visited = 0, full = 0;
  bool isBound = false; ///< lists are too long to be read, tensors not given, or:
  bool isCutShort = false; ///< more evaluations than are allowed. At most so many are visited, at least so many full

  void add(const TileCounts &other, WideInt times = 1) {
    visited += times * other.visited;
    full += times * other.full;
    isBound |= other.isBound;
    isCutShort |= other.isCutShort;
  }
};

/// Lists of more entries in all, summed over the rows of a head and over heads that differ, are not read for counts.
inline constexpr int64_t kMostListEntries = int64_t(1) << 20;

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

/// Index into analysis.variants of `head`.
unsigned variantOf(const PatternAnalysis &analysis, const ProblemSizes &sizes, int64_t head);

/// Summed over the heads and branches of one batch element.
TileCounts countTiles(const PatternAnalysis &analysis, const ProblemSizes &sizes, TileShape shape, Direction direction);
/// The same for one head.
TileCounts countTilesOfHead(const PatternAnalysis &analysis, const ProblemSizes &sizes, int64_t head, TileShape shape,
                            Direction direction);

/// Kept pairs of one batch element, summed over heads; a pair that n branches keep counts n times. None if a part of
/// the pattern has no closed form (`masked`), has lists of more than kMostListEntries entries, reads a tensor that is not
/// given, or takes more evaluations than `sizes` allow, which `isCutShort` then says.
std::optional<WideInt> countPairs(const PatternAnalysis &analysis, const ProblemSizes &sizes, bool *isCutShort = nullptr);

/// True if a mask reads a tensor that is not given: visitTile then has no meaning.
bool lacksTensors(const PatternAnalysis &analysis, const ProblemSizes &sizes);

/// Entries of a branch's lists, over all rows and over heads that differ; of the branch that has most.
WideInt longestList(const PatternAnalysis &analysis, const ProblemSizes &sizes);

/// True if a list has more entries than are read for counts.
bool hasLongLists(const PatternAnalysis &analysis, const ProblemSizes &sizes);

/// Number of row tiles of one head: rowRate * ceil(ceil(rows / rowRate) / block), without those that hold no row.
int64_t countRowTiles(int64_t rows, int64_t rowRate, int64_t block);

std::string toString(WideInt value);

} // namespace heddle::attn

#endif
