// Owns the sum over the tiles of one branch, from which tiles (Counts.cpp) and pairs (PairCounter.cpp) are counted: the
// bound where lists are too long to be read, and the axis that is asked.
#pragma once

#include "dialect/Geometry/BranchEvaluator.h"
#include "dialect/Geometry/Counts.h"
#include "dialect/Geometry/RowTiles.h"

#include <map>

namespace heddle::attn {

/// What is left of the evaluations of a count.
inline ProblemSizes after(const TileCounts &counts, ProblemSizes sizes) {
  sizes.mostEvaluations -= counts.evaluations;
  return sizes;
}

/// The rows of a direction, split into so many classes.
struct SplitRows {
  Direction direction;
  int64_t rate;
};

/// Every tile may be visited, for one branch and head.
TileCounts everyTile(SplitRows split, int64_t columnRate, const ProblemSizes &sizes, TileShape shape);

bool hasLists(const BranchRanges &branch);

/// A branch whose lists may be too long to be read; heads that differ are counted one after the other.
class BranchCount {
public:
  /// The tensors outlive it.
  BranchCount(const BranchRanges &branch, SplitRows split, const TensorData &tensors);

  /// Branch number `index` of a variant. What has lists is asked of the other axis if that has none: tiles are the same
  /// from both, if all rows and all columns are one class.
  static BranchCount of(const Variant &variant, size_t index, Direction direction, const TensorData &tensors);

  const BranchEvaluator &evaluator() const { return whole; }

  /// After the first head that is cut short all are.
  TileCounts count(const ProblemSizes &sizes, int64_t head, TileShape shape);
  /// The same of these rows alone.
  TileCounts count(const ProblemSizes &sizes, int64_t head, TileShape shape, RowAxis rows);
  /// The next head is the first one again.
  void restart() {
    entries = 0;
    cutShort = {};
  }

private:
  TileCounts countAnew(const ProblemSizes &sizes, int64_t head, TileShape shape, RowAxis rows);

  SplitRows split;
  BranchEvaluator whole, plain;
  std::optional<BranchEvaluator> fromOtherAxis;
  WideInt entries = 0;
  TileCounts cutShort;
};

/// Calls `count(head, weight)` so that the weights of a variant's heads add up to their number, once for all heads
/// whose ranges evaluate alike.
template <class Count>
void forEachDistinctHead(const std::vector<HeadGroup> &heads, const ProblemSizes &sizes, unsigned variant,
                         const BranchEvaluator &evaluator, Count count) {
  std::map<std::vector<int64_t>, std::pair<int64_t, int64_t>> groups; // values -> representative, number
  bool headMatters = evaluator.uses(Symbol::Head);
  for (const HeadGroup &alike : heads) {
    if (alike.variant != variant)
      continue;
    std::vector<int64_t> values;
    if (headMatters)
      values = evaluator.headValues([&](Symbol symbol) { return symbolValue(sizes, alike.first, symbol); });
    groups.try_emplace(std::move(values), alike.first, 0).first->second.second += alike.heads;
  }
  for (const auto &[values, group] : groups)
    count(group.first, group.second);
}

} // namespace heddle::attn
