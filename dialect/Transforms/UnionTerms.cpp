#include "dialect/Transforms/UnionTerms.h"
#include "dialect/Transforms/Passes.h"
#include "dialect/Geometry/Piece.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <algorithm>
#include <map>

using namespace mlir;

namespace heddle::attn {
namespace {

/// The pullback with each term of its operand.
SmallVector<Value> pulledBack(Operation *op, OpBuilder &builder) {
  SmallVector<Value> terms;
  for (Value term : termsOf(op->getOperand(0), builder)) {
    IRMapping operands;
    operands.map(op->getOperand(0), term);
    terms.push_back(builder.clone(*op, operands)->getResult(0));
  }
  return terms;
}

/// Each meet of a term of every operand; the mask itself where there would be too many.
SmallVector<Value> termsOfProduct(Value both, OpBuilder &builder) {
  constexpr size_t kMost = 64;
  SmallVector<SmallVector<Value>> meets = {{}};
  for (Value mask : both.getDefiningOp()->getOperands()) {
    const SmallVector<Value> terms = termsOf(mask, builder);
    SmallVector<SmallVector<Value>> longer;
    for (ArrayRef<Value> meet : meets)
      for (Value term : terms) {
        longer.emplace_back(meet);
        longer.back().push_back(term);
      }
    meets = std::move(longer);
    if (meets.size() > kMost)
      return {both};
  }
  if (meets.size() == 1)
    return {both};
  SmallVector<Value> terms;
  for (ArrayRef<Value> meet : meets)
    terms.push_back(AndOp::create(builder, both.getLoc(), both.getType(), meet));
  return terms;
}

/// Term i of every group of heads; nothing for groups with fewer.
SmallVector<Value> termsOfHeads(Value heads, OpBuilder &builder) {
  SmallVector<SmallVector<Value>> ofGroup;
  size_t most = 0;
  for (Value mask : heads.getDefiningOp()->getOperands()) {
    ofGroup.push_back(termsOf(mask, builder));
    most = std::max(most, ofGroup.back().size());
  }
  SmallVector<Value> terms;
  for (size_t i = 0; i < most; ++i) {
    SmallVector<Value> operands;
    for (ArrayRef<Value> group : ofGroup)
      operands.push_back(i < group.size() ? group[i]
                                          : BoxOp::create(builder, heads.getLoc(), heads.getType(), ValueRange(),
                                                          builder.getDenseI64ArrayAttr({0, 0, 0, 0})));
    terms.push_back(HeadsOp::create(builder, heads.getLoc(), heads.getType(), operands));
  }
  return terms;
}

} // namespace

SmallVector<Value> termsOf(Value mask, OpBuilder &builder) {
  Operation *op = mask.getDefiningOp();
  switch (formOf(op)) {
  case MaskForm::Any: {
    SmallVector<Value> terms;
    for (Value operand : op->getOperands())
      terms.append(termsOf(operand, builder));
    return terms;
  }
  case MaskForm::All:
    return termsOfProduct(mask, builder);
  case MaskForm::Pullback:
    return pulledBack(op, builder);
  case MaskForm::ByHeads:
    return termsOfHeads(mask, builder);
  case MaskForm::Leaf:
  case MaskForm::Inverse:
  case MaskForm::Unanswered:
    break;
  }
  return {mask};
}

void TermGroup::append(const TermGroup &other) {
  masks.append(other.masks);
  for (size_t v = 0; v < pieces.size(); ++v)
    pieces[v].insert(pieces[v].end(), other.pieces[v].begin(), other.pieces[v].end());
}

bool TermGroup::meets(const TermGroup &other) const {
  for (size_t v = 0; v < pieces.size(); ++v) {
    PieceList common;
    for (const Piece &mine : pieces[v])
      for (const Piece &theirs : other.pieces[v])
        common.push_back(intersect(mine, theirs));
    dropEmpty(common);
    if (!common.empty())
      return true;
  }
  return false;
}

static int64_t columnRateOf(const VariantRanges &ranges) { return ranges.branches[0].columnRate; }
static int64_t rowRateOf(const VariantRanges &ranges) { return ranges.rowRate; }

/// The rates of two groups as one; 0 of no pieces. Many are not kept apart, and have no lattice: their ranges need not be
/// built to know it.
static GroupRates ratesOf(const TermGroup &a, const TermGroup &b, int64_t (*rate)(const VariantRanges &)) {
  GroupRates rates;
  for (size_t v = 0; v < a.pieces.size(); ++v) {
    if (a.pieces[v].size() + b.pieces[v].size() > kMaxPieces) {
      rates.push_back(1);
      continue;
    }
    PieceList both = a.pieces[v];
    both.insert(both.end(), b.pieces[v].begin(), b.pieces[v].end());
    rates.push_back(both.empty() ? 0 : rate(buildRanges({both}, Direction::Forward)));
  }
  return rates;
}

GroupRates keyRates(const TermGroup &group) {
  return keyRates(group, {{}, std::vector<PieceList>(group.pieces.size())});
}
GroupRates keyRates(const TermGroup &a, const TermGroup &b) { return ratesOf(a, b, columnRateOf); }
GroupRates rowRates(const TermGroup &group) {
  return ratesOf(group, {{}, std::vector<PieceList>(group.pieces.size())}, rowRateOf);
}

SmallVector<TermGroup> groupTerms(PatternOp pattern, ArrayRef<Value> terms, CellTable &cells,
                                  const Grouping &grouping) {
  SmallVector<TermGroup> groups;
  for (Value term : terms) {
    if (groups.size() > grouping.most)
      break;
    TermGroup alone{{term}, piecesOf(pattern, term, cells)};
    auto *fitting =
        std::find_if(groups.begin(), groups.end(), [&](const TermGroup &group) { return grouping.fit(group, alone); });
    if (fitting == groups.end())
      groups.push_back(std::move(alone));
    else
      fitting->append(alone);
  }
  std::multimap<int64_t, TermGroup> byRate; // keeps the order of equals
  for (TermGroup &group : groups) {
    GroupRates ofGroup = grouping.rates(group);
    byRate.emplace(*std::max_element(ofGroup.begin(), ofGroup.end()), std::move(group));
  }
  groups.clear();
  for (auto &entry : byRate)
    groups.push_back(std::move(entry.second));
  return groups;
}

static Value unionOf(ArrayRef<Value> masks, Location loc, OpBuilder &builder) {
  return masks.size() == 1 ? masks[0] : OrOp::create(builder, loc, masks[0].getType(), masks).getResult();
}

SmallVector<Value> masksApart(PatternOp pattern, ArrayRef<TermGroup> groups, OpBuilder &builder) {
  const Location loc = pattern.getSoftmax().getLoc();
  SmallVector<Value> whole, masks;
  for (const TermGroup &group : groups) {
    Value mask = unionOf(group.masks, loc, builder);
    SmallVector<Value> conditions = {mask};
    for (size_t before = 0; before < whole.size(); ++before)
      if (group.meets(groups[before]))
        conditions.push_back(NotOp::create(builder, loc, mask.getType(), whole[before]));
    whole.push_back(mask);
    Value apart = AndOp::create(builder, loc, mask.getType(), conditions);
    Value canonical = canonicalMask(pattern, apart, builder);
    masks.push_back(canonical ? canonical : apart);
  }
  return masks;
}

void dropUnused(PatternOp pattern) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(pattern.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

} // namespace heddle::attn
