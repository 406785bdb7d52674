//===- SplitUnion.cpp - unions over several key lattices --------------------===//
// Makes branches without common pairs of a union whose masks lie on different key lattices, so that each is walked at
// its own stride; as one branch it would be walked on their common lattice, which is every key.
//===----------------------------------------------------------------------===//
#include "dialect/Analysis/PatternAnalysis.h"
#include "dialect/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <algorithm>
#include <map>

using namespace mlir;

namespace heddle::attn {
#define GEN_PASS_DEF_ATTNSPLITUNION
#include "dialect/Transforms/Passes.h.inc"

namespace {

constexpr size_t kMaxBranches = 8;

/// Masks whose union is `mask`: the operands of or, also below segment, dilate, blocks and heads.
SmallVector<Value> termsOf(Value mask, OpBuilder &builder);

/// The op with another operand.
template <class Op> SmallVector<Value> pulledBack(Op op, OpBuilder &builder) {
  SmallVector<Value> terms;
  for (Value term : termsOf(op.getOperand(), builder)) {
    IRMapping operands;
    operands.map(op.getOperand(), term);
    terms.push_back(builder.clone(*op, operands)->getResult(0));
  }
  return terms;
}

/// Term i of every group of heads; nothing for groups with fewer.
SmallVector<Value> termsOfHeads(HeadsOp heads, OpBuilder &builder) {
  SmallVector<SmallVector<Value>> ofGroup;
  size_t most = 0;
  for (Value mask : heads.getMasks()) {
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

SmallVector<Value> termsOf(Value mask, OpBuilder &builder) {
  if (auto either = mask.getDefiningOp<OrOp>()) {
    SmallVector<Value> terms;
    for (Value operand : either.getMasks())
      terms.append(termsOf(operand, builder));
    return terms;
  }
  if (auto segment = mask.getDefiningOp<SegmentOp>())
    return pulledBack(segment, builder);
  if (auto dilate = mask.getDefiningOp<DilateOp>())
    return pulledBack(dilate, builder);
  if (auto documents = mask.getDefiningOp<DocumentsOp>())
    return pulledBack(documents, builder);
  if (auto blocks = mask.getDefiningOp<BlocksOp>())
    return pulledBack(blocks, builder);
  if (auto heads = mask.getDefiningOp<HeadsOp>())
    return termsOfHeads(heads, builder);
  return {mask};
}

/// Masks that share a branch, and their pieces in each variant.
struct Group {
  SmallVector<Value> masks;
  std::vector<PieceList> pieces;

  /// For each variant; 0 where there are no pieces, which fit into every branch.
  SmallVector<int64_t> keyRates() const {
    SmallVector<int64_t> rates;
    for (const PieceList &list : pieces)
      rates.push_back(list.empty() ? 0 : buildRanges({list}, Direction::Forward).branches[0].columnRate);
    return rates;
  }

  Group joined(const Group &other) const {
    Group result = *this;
    result.masks.append(other.masks);
    for (size_t v = 0; v < pieces.size(); ++v)
      result.pieces[v].insert(result.pieces[v].end(), other.pieces[v].begin(), other.pieces[v].end());
    return result;
  }

  bool meets(const Group &other) const {
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
};

/// Whether a branch of both loads no more keys than the two apart.
bool fitTogether(const Group &a, const Group &b) {
  SmallVector<int64_t> ofA = a.keyRates(), ofB = b.keyRates(), ofBoth = a.joined(b).keyRates();
  for (size_t v = 0; v < ofBoth.size(); ++v)
    if ((ofA[v] != 0 && ofBoth[v] < ofA[v]) || (ofB[v] != 0 && ofBoth[v] < ofB[v]))
      return false;
  return true;
}

/// Groups of the terms, the finest lattice first: what others leave out should be simple to say.
SmallVector<Group> groupsOf(PatternOp pattern, ArrayRef<Value> terms, CellTable &cells) {
  SmallVector<Group> groups;
  for (Value term : terms) {
    Group alone{{term}, piecesOf(pattern, term, cells)};
    auto *fitting = std::find_if(groups.begin(), groups.end(), [&](const Group &group) { return fitTogether(group, alone); });
    if (fitting == groups.end())
      groups.push_back(std::move(alone));
    else
      *fitting = fitting->joined(alone);
  }
  std::multimap<int64_t, Group> byCoarseness; // keeps the order of equals
  for (Group &group : groups) {
    SmallVector<int64_t> rates = group.keyRates();
    byCoarseness.emplace(*std::max_element(rates.begin(), rates.end()), std::move(group));
  }
  groups.clear();
  for (auto &entry : byCoarseness)
    groups.push_back(std::move(entry.second));
  return groups;
}

Value unionOf(ArrayRef<Value> masks, Location loc, OpBuilder &builder) {
  return masks.size() == 1 ? masks[0] : OrOp::create(builder, loc, masks[0].getType(), masks).getResult();
}

/// One mask for each group, without what those before it keep.
SmallVector<Value> apart(ArrayRef<Group> groups, Location loc, OpBuilder &builder) {
  SmallVector<Value> whole, branches;
  for (const Group &group : groups) {
    Value mask = unionOf(group.masks, loc, builder);
    SmallVector<Value> conditions = {mask};
    for (size_t before = 0; before < whole.size(); ++before)
      if (group.meets(groups[before]))
        conditions.push_back(NotOp::create(builder, loc, mask.getType(), whole[before]));
    whole.push_back(mask);
    branches.push_back(conditions.size() == 1 ? mask : AndOp::create(builder, loc, mask.getType(), conditions).getResult());
  }
  return branches;
}

/// Masks that nothing uses any more.
void dropUnused(PatternOp pattern) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(pattern.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

struct AttnSplitUnionPass : impl::AttnSplitUnionBase<AttnSplitUnionPass> {
  void runOnOperation() override { splitUnion(getOperation()); }
};

} // namespace

void splitUnion(PatternOp pattern) {
  SoftmaxOp softmax = pattern.getSoftmax();
  if (softmax.getCombine() != Combine::set_union)
    return;
  OpBuilder builder(softmax);
  SmallVector<Value> terms;
  for (Value mask : softmax.getBranches())
    terms.append(termsOf(mask, builder));
  CellTable cells;
  SmallVector<Group> groups = groupsOf(pattern, terms, cells);
  if (groups.size() > 1 && groups.size() <= kMaxBranches) {
    softmax.getBranchesMutable().assign(apart(groups, softmax.getLoc(), builder));
    softmax.setCombine(Combine::lse);
  }
  dropUnused(pattern);
}

FailureOr<OwningOpRef<ModuleOp>> withSplitUnion(PatternOp pattern, const PatternAnalysis &analysis) {
  if (pattern.getSoftmax().getCombine() != Combine::set_union)
    return failure();
  OwningOpRef<ModuleOp> module = ModuleOp::create(pattern.getLoc());
  auto copy = cast<PatternOp>(pattern->clone());
  module->push_back(copy);
  splitUnion(copy);
  if (copy.getSoftmax().getCombine() == Combine::set_union || (analysis.isStructural() && !analyze(copy).isStructural()))
    return failure();
  return module;
}

} // namespace heddle::attn
