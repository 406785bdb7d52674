// Makes branches without common pairs of a union whose masks lie on different key lattices, so that each is walked at
// its own stride; as one branch it would be walked on their common lattice, which is every key.
#include "dialect/Transforms/Passes.h"
#include "dialect/Transforms/UnionTerms.h"

using namespace mlir;

namespace heddle::attn {
#define GEN_PASS_DEF_ATTNSPLITUNION
#include "dialect/Transforms/Passes.h.inc"

namespace {

constexpr size_t kMaxBranches = 16;
constexpr size_t kMaxGroups = 64;

/// Whether a branch of both loads no more keys than the two apart.
bool fitTogether(const TermGroup &a, const TermGroup &b) {
  GroupRates ofA = keyRates(a), ofB = keyRates(b), ofBoth = keyRates(a, b);
  for (size_t v = 0; v < ofBoth.size(); ++v)
    if ((ofA[v] != 0 && ofBoth[v] < ofA[v]) || (ofB[v] != 0 && ofBoth[v] < ofB[v]))
      return false;
  return true;
}

/// Beyond the limit the two finest lattices are walked as one: the keys of the coarser of them are loaded more often by
/// the ratio of their rates, which is least there.
void joinFinest(SmallVectorImpl<TermGroup> &groups) {
  while (groups.size() > kMaxBranches) {
    groups[0].append(groups[1]);
    groups.erase(&groups[1]);
  }
}

/// A branch that is asked pair by pair must gain by its stride what that costs.
bool isWorthSplitting(const PatternAnalysis &whole, const PatternAnalysis &split) {
  if (!whole.isStructural())
    return true;
  return llvm::all_of(split.variants, [](const Variant &variant) {
    return llvm::all_of(variant.forward.branches,
                        [](const BranchRanges &branch) { return !branch.masked || branch.columnRate > 1; });
  });
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
  SmallVector<TermGroup> groups = groupTerms(pattern, terms, cells, {keyRates, fitTogether, kMaxGroups});
  if (groups.size() > 1 && groups.size() <= kMaxGroups) {
    joinFinest(groups);
    softmax.getBranchesMutable().assign(masksApart(pattern, groups, builder));
    softmax.setCombine(Combine::lse);
    softmax.setGradient(Gradient::full); // they are one softmax still
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
  if (copy.getSoftmax().getCombine() == Combine::set_union || !isWorthSplitting(analysis, analyze(copy)))
    return failure();
  return module;
}

} // namespace heddle::attn
