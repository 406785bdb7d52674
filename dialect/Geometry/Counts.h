// Owns counting: tiles that a schedule visits, tiles that it may run without a mask, and kept pairs, as exact
// integers for concrete sizes. Cost follows the bends of the pattern, not its length (ExprProgram.h, SweepDomain).
#pragma once

#include "dialect/Geometry/ProblemSizes.h"
#include "dialect/Geometry/Variant.h"

namespace heddle::attn {

struct TileCounts {
  WideInt visited = 0, full = 0;
  bool isBound = false;    ///< lists are too long to be read, tensors not given, or:
  bool isCutShort = false; ///< more evaluations than are allowed. At most so many are visited, at least so many full
  int64_t evaluations = 0; ///< that it took

  void add(const TileCounts &other, WideInt times = 1) {
    visited += times * other.visited;
    full += times * other.full;
    isBound |= other.isBound;
    isCutShort |= other.isCutShort;
    evaluations += other.evaluations;
  }
};

/// Lists of more entries in all, summed over the rows of a head and over heads that differ, are not read for counts.
inline constexpr int64_t kMostListEntries = int64_t(1) << 20;

/// Index into analysis.variants of `head`.
unsigned variantOf(const PatternAnalysis &analysis, const ProblemSizes &sizes, int64_t head);

/// Summed over the heads and branches of one batch element.
TileCounts countTiles(const PatternAnalysis &analysis, const ProblemSizes &sizes, TileShape shape, Direction direction);
/// The same for one head.
TileCounts countTilesOfHead(const PatternAnalysis &analysis, const ProblemSizes &sizes, int64_t head, TileShape shape,
                            Direction direction);

/// Kept pairs of one batch element, summed over heads; a pair that n branches keep counts n times. None if a part of
/// the pattern has no closed form (`masked`), has lists of more than kMostListEntries entries, reads a tensor that is
/// not given, or takes more evaluations than `sizes` allow, which `isCutShort` then says.
std::optional<WideInt> countPairs(const PatternAnalysis &analysis, const ProblemSizes &sizes,
                                  bool *isCutShort = nullptr);

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
