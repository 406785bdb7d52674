#include "dialect/Geometry/Counts.h"
#include "dialect/Geometry/BranchCount.h"

#include <algorithm>

namespace heddle::attn {

int64_t countRowTiles(int64_t rows, int64_t rowRate, int64_t block) {
  int64_t total = 0;
  for (int64_t rowClass = 0; rowClass < std::min(rowRate, rows); ++rowClass)
    total += (rowsInClass(rows, rowRate, rowClass) + block - 1) / block;
  return total;
}

unsigned variantOf(const PatternAnalysis &analysis, const ProblemSizes &sizes, int64_t head) {
  ExprProgram program;
  unsigned slot = program.add(analysis.variantOfHead);
  PlainDomain domain;
  std::vector<int64_t> slots;
  program.run(domain, [&](Symbol symbol) { return symbolValue(sizes, head, symbol); }, slots);
  return slots[slot];
}

/// A bound for one head where tensors that say more are not given.
static TileCounts everyTile(const VariantRanges &ranges, const ProblemSizes &sizes, TileShape shape,
                            Direction direction) {
  TileCounts total;
  for (const BranchRanges &branch : ranges.branches)
    total.add(everyTile({direction, ranges.rowRate}, branch.columnRate, sizes, shape));
  return total;
}

TileCounts countTilesOfHead(const PatternAnalysis &analysis, const ProblemSizes &sizes, int64_t head, TileShape shape,
                            Direction direction) {
  const Variant &variant = analysis.variants[variantOf(analysis, sizes, head)];
  if (lacksTensors(analysis, sizes))
    return everyTile(variant.ranges(direction), sizes, shape, direction);
  TileCounts total;
  for (size_t branch = 0; branch < variant.branches.size(); ++branch)
    total.add(BranchCount::of(variant, branch, direction, sizes.tensors).count(after(total, sizes), head, shape));
  return total;
}

TileCounts countTiles(const PatternAnalysis &analysis, const ProblemSizes &sizes, TileShape shape,
                      Direction direction) {
  TileCounts total;
  const std::vector<HeadGroup> heads = headGroups(analysis, sizes);
  if (lacksTensors(analysis, sizes)) {
    for (const HeadGroup &alike : heads)
      total.add(everyTile(analysis.variants[alike.variant].ranges(direction), sizes, shape, direction), alike.heads);
    return total;
  }
  for (unsigned index = 0; index < analysis.variants.size(); ++index)
    for (size_t branch = 0; branch < analysis.variants[index].branches.size(); ++branch) {
      BranchCount counter = BranchCount::of(analysis.variants[index], branch, direction, sizes.tensors);
      forEachDistinctHead(heads, sizes, index, counter.evaluator(), [&](int64_t head, int64_t weight) {
        total.add(counter.count(after(total, sizes), head, shape), weight);
      });
    }
  return total;
}

bool lacksTensors(const PatternAnalysis &analysis, const ProblemSizes &sizes) {
  return std::any_of(analysis.maskTensors.begin(), analysis.maskTensors.end(),
                     [&](unsigned argument) { return !holds(&sizes.tensors, argument); });
}

WideInt longestList(const PatternAnalysis &analysis, const ProblemSizes &sizes) {
  const std::vector<HeadGroup> heads = headGroups(analysis, sizes);
  WideInt longest = 0;
  for (unsigned index = 0; index < analysis.variants.size(); ++index)
    for (const BranchRanges &branch : analysis.variants[index].forward.branches) {
      BranchEvaluator evaluator(branch, sizes.tensors);
      WideInt entries = 0;
      forEachDistinctHead(heads, sizes, index, evaluator, [&](int64_t head, int64_t) {
        auto valueOf = [&](Symbol symbol) { return symbolValue(sizes, head, symbol); };
        entries += analysis.variants[index].forward.rowRate * evaluator.listEntries(valueOf, sizes.seqlenQ);
      });
      longest = std::max(longest, entries);
    }
  return longest;
}

bool hasLongLists(const PatternAnalysis &analysis, const ProblemSizes &sizes) {
  return longestList(analysis, sizes) > kMostListEntries;
}

std::string toString(WideInt value) {
  if (value == 0)
    return "0";
  std::string digits;
  for (WideInt rest = value < 0 ? -value : value; rest != 0; rest /= 10)
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(rest % 10)));
  return value < 0 ? "-" + digits : digits;
}

} // namespace heddle::attn
