// Tells the masks of a pattern apart by the lattices that their rows lie on, so that each can be computed by a kernel
// that splits rows into no more classes than it needs: on the common lattice of all, a tile of a band spans as many
// times more positions as there are classes, and visits the keys of all of them. Pairs that masks of a union share stay
// with the finer lattice, whose complement would have too many classes.
#include "dialect/Transforms/Passes.h"
#include "dialect/Transforms/UnionTerms.h"

#include <map>

using namespace mlir;

namespace heddle::attn {
namespace {

bool areCompatible(const GroupRates &a, const GroupRates &b) {
  for (size_t v = 0; v < a.size(); ++v)
    if (a[v] != 0 && b[v] != 0 && a[v] != b[v])
      return false;
  return true;
}

bool shareRowLattice(const TermGroup &a, const TermGroup &b) { return areCompatible(rowRates(a), rowRates(b)); }

/// Branches of one pass and the classes of its rows in each variant.
struct PassBranches {
  GroupRates rates;
  SmallVector<Value> masks;

  void add(const GroupRates &other, Value mask) {
    for (size_t v = 0; v < rates.size(); ++v)
      rates[v] = std::max(rates[v], other[v]);
    masks.push_back(mask);
  }
};

void addTo(SmallVectorImpl<PassBranches> &passes, const GroupRates &rates, Value mask) {
  auto *found = llvm::find_if(passes, [&](const PassBranches &pass) { return areCompatible(pass.rates, rates); });
  if (found == passes.end())
    passes.push_back({rates, {mask}});
  else
    found->add(rates, mask);
}

/// The coarsest first. Makes masks in front of the softmax.
SmallVector<PassBranches> passesOf(PatternOp pattern) {
  SoftmaxOp softmax = pattern.getSoftmax();
  OpBuilder builder(softmax);
  SmallVector<SmallVector<Value>> sums; // of masks whose pairs add up, the terms of each
  for (Value branch : softmax.getBranches()) {
    if (sums.empty() || softmax.getCombine() == Combine::lse)
      sums.emplace_back();
    sums.back().append(termsOf(branch, builder));
  }
  SmallVector<PassBranches> passes;
  for (ArrayRef<Value> terms : sums) {
    CellTable cells;
    SmallVector<TermGroup> groups = groupTerms(pattern, terms, cells, {rowRates, shareRowLattice, kMaxPasses});
    if (groups.size() > kMaxPasses) { // the caller refuses: what they leave out of each other is not asked
      passes.assign(groups.size(), PassBranches());
      return passes;
    }
    for (auto [group, mask] : llvm::zip_equal(groups, masksApart(pattern, groups, builder)))
      addTo(passes, rowRates(group), mask);
  }
  std::multimap<int64_t, PassBranches, std::greater<>> byRate; // keeps the order of equals
  for (PassBranches &pass : passes)
    byRate.emplace(*llvm::max_element(pass.rates), std::move(pass));
  passes.clear();
  for (auto &entry : byRate)
    passes.push_back(std::move(entry.second));
  return passes;
}

/// A module with the pattern whose softmax has `count` of its branches from `first` on.
OwningOpRef<ModuleOp> withBranches(PatternOp pattern, size_t first, size_t count, Combine combine) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(pattern.getLoc());
  auto copy = cast<PatternOp>(pattern->clone());
  module->push_back(copy);
  SoftmaxOp softmax = copy.getSoftmax();
  SmallVector<Value> branches(softmax.getBranches().slice(first, count));
  softmax.getBranchesMutable().assign(branches);
  softmax.setCombine(combine);
  dropUnused(copy);
  if (auto split = withSplitUnion(copy, analyze(copy)); succeeded(split))
    return std::move(*split);
  return module;
}

/// The classes of rows that heads of this variant of a pass would have in one pass. A pass has fewer variants than the
/// pattern where its masks name no groups of heads.
int64_t wholeRowRate(const PatternAnalysis &whole, const PatternAnalysis &pass, size_t variant) {
  if (pass.variants.size() == whole.variants.size())
    return whole.variants[variant].forward.rowRate;
  int64_t largest = 1;
  for (const Variant &any : whole.variants)
    largest = std::max(largest, any.forward.rowRate);
  return largest;
}

/// Empty: the passes are worth their launches.
std::string objection(ArrayRef<OwningOpRef<ModuleOp>> modules, const PatternAnalysis &whole) {
  bool hasFinerRows = false;
  for (const OwningOpRef<ModuleOp> &module : modules) {
    PatternAnalysis pass = analyze(*ModuleOp(*module).getOps<PatternOp>().begin());
    for (auto [v, variant] : llvm::enumerate(pass.variants)) {
      const bool hasPairs = llvm::any_of(variant.branches, [](const PieceList &pieces) { return !pieces.empty(); });
      hasFinerRows |= hasPairs && variant.forward.rowRate < wholeRowRate(whole, pass, v);
      for (const BranchRanges &branch : variant.forward.branches)
        if (branch.masked && whole.isStructural())
          return "a pass would be evaluated pair by pair: " + branch.reason;
    }
  }
  return hasFinerRows ? "" : "no pass would have fewer classes of rows than the pattern has";
}

} // namespace

ChainedPasses chainedPasses(PatternOp pattern, const PatternAnalysis &analysis) {
  OwningOpRef<ModuleOp> scratch = ModuleOp::create(pattern.getLoc());
  auto copy = cast<PatternOp>(pattern->clone());
  scratch->push_back(copy);
  SmallVector<PassBranches> passes = passesOf(copy);
  if (passes.size() < 2)
    return {{}, "all rows lie on one lattice"};
  if (passes.size() > kMaxPasses)
    return {{},
            "at least " + std::to_string(passes.size()) + " row lattices, at most " + std::to_string(kMaxPasses) +
                " passes are chained"};
  const Combine combine = copy.getSoftmax().getCombine();
  SmallVector<Value> all;
  for (const PassBranches &pass : passes)
    all.append(pass.masks);
  copy.getSoftmax().getBranchesMutable().assign(all);
  ChainedPasses result;
  size_t first = 0;
  for (const PassBranches &pass : passes) {
    result.modules.push_back(withBranches(copy, first, pass.masks.size(), combine));
    first += pass.masks.size();
  }
  result.whyNone = objection(result.modules, analysis);
  if (!result.whyNone.empty())
    result.modules.clear();
  return result;
}

} // namespace heddle::attn
