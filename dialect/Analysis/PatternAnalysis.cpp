#include "dialect/Analysis/PatternAnalysis.h"
#include "dialect/Geometry/Piece.h"
#include "dialect/IR/PatternOperands.h"

#include <algorithm>

namespace heddle::attn {
namespace {

/// Operand counts of the masks of a pattern that choose by heads, ascending and distinct.
std::vector<unsigned> headCounts(PatternOp pattern) {
  std::vector<unsigned> counts;
  pattern.walk([&](MaskOpInterface mask) {
    if (mask.form() == MaskForm::ByHeads)
      counts.push_back(mask->getNumOperands());
  });
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

Frame rootFrame(PatternOp pattern, CellTable &cells, const std::map<unsigned, unsigned> &groupOfCount) {
  Frame frame;
  frame.extentQ = endOf(pattern, WholeAxis::Queries);
  frame.extentK = endOf(pattern, WholeAxis::Keys);
  frame.groupOfCount = &groupOfCount;
  frame.cells = &cells;
  return frame;
}

Variant analyzeVariant(PatternOp pattern, std::map<unsigned, unsigned> groupOfCount, const RowRateLimits &limits) {
  Variant variant;
  variant.groupOfCount = std::move(groupOfCount);
  CellTable cells;
  Frame frame = rootFrame(pattern, cells, variant.groupOfCount);
  SoftmaxOp softmax = pattern.getSoftmax();
  if (softmax.getCombine() == Combine::set_union)
    variant.branches.emplace_back();
  for (mlir::Value branch : softmax.getBranches()) {
    if (softmax.getCombine() == Combine::lse)
      variant.branches.emplace_back();
    branch.getDefiningOp<MaskOpInterface>().pieces(frame, variant.branches.back());
  }
  for (PieceList &pieces : variant.branches)
    dropEmpty(pieces);
  variant.forward = buildRanges(variant.branches, Direction::Forward, limits);
  variant.transposed = buildRanges(variant.branches, Direction::Transposed, limits);
  return variant;
}

/// Index of the attn.heads operand (of `count`) that serves Head of Heads: floor shares, the first Heads mod
/// count operands serve one more.
IntExpr headGroup(unsigned count) {
  IntExpr head = symbol(Symbol::Head), heads = symbol(Symbol::Heads);
  IntExpr share = floorDiv(heads, count), larger = mod(heads, count);
  IntExpr headsInLarger = larger * (share + 1);
  return select(less(head, headsInLarger), floorDiv(head, share + 1),
                larger + floorDiv(head - headsInLarger, max(share, 1)));
}

using GroupOfCount = std::map<unsigned, unsigned>;

/// The operand that each variant takes of the attn.heads ops.
std::vector<GroupOfCount> variantsOf(const std::vector<unsigned> &counts) {
  unsigned variants = 1;
  for (unsigned count : counts)
    variants *= count;
  std::vector<GroupOfCount> result(variants);
  for (unsigned index = 0; index < variants; ++index) {
    unsigned rest = index;
    for (auto count = counts.rbegin(); count != counts.rend(); ++count) {
      result[index][*count] = rest % *count;
      rest /= *count;
    }
  }
  return result;
}

} // namespace

std::vector<PieceList> piecesOf(PatternOp pattern, mlir::Value mask, CellTable &cells) {
  std::vector<PieceList> result;
  for (const GroupOfCount &groupOfCount : variantsOf(headCounts(pattern))) {
    Frame frame = rootFrame(pattern, cells, groupOfCount);
    mask.getDefiningOp<MaskOpInterface>().pieces(frame, result.emplace_back());
    dropEmpty(result.back());
  }
  return result;
}

PatternAnalysis analyze(PatternOp pattern) {
  PatternAnalysis analysis;
  std::vector<unsigned> counts = headCounts(pattern);
  analysis.variantOfHead = 0;
  for (unsigned count : counts)
    analysis.variantOfHead = analysis.variantOfHead * IntExpr(count) + headGroup(count);
  analysis.maskTensors = maskTensorsOf(pattern);
  std::vector<GroupOfCount> variants = variantsOf(counts);
  const RowRateLimits limits = rowRateLimits(variants.size());
  for (GroupOfCount &groupOfCount : variants)
    analysis.variants.push_back(analyzeVariant(pattern, std::move(groupOfCount), limits));
  return analysis;
}

} // namespace heddle::attn
