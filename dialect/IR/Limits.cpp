// A mask that is used twice is built twice, so a chain of n ops can stand for 2^n: everything is counted as often as it
// is used before anything is built. Masks come before their uses, so one pass in the order of the text suffices.
#include "dialect/IR/Limits.h"
#include "dialect/Geometry/Lattice.h"

#include <set>

using namespace mlir;

namespace heddle::attn {
namespace {

constexpr int64_t kMany = int64_t(1) << 40; // sums of some of these do not overflow

int64_t saturatingSum(int64_t a, int64_t b) { return std::min(a + b, kMany); }
int64_t saturatingProduct(int64_t a, int64_t b) { return b != 0 && a > kMany / b ? kMany : std::min(a * b, kMany); }

/// Ops inside, itself included.
int64_t weightOf(Operation &op) {
  int64_t weight = 0;
  op.walk([&](Operation *) { ++weight; });
  return weight;
}

int64_t rateOf(Operation &op) {
  auto mask = dyn_cast<MaskOpInterface>(op);
  return mask ? mask.residues().rate : 1;
}

/// What the op multiplies the distance of neighbouring coordinates by, at most.
int64_t stepOf(Operation &op) {
  auto pullback = dyn_cast<PullbackOpInterface>(op);
  return pullback ? pullback.place().step() : 1;
}

LogicalResult verifyVariants(PatternOp pattern, int64_t &variants) {
  std::set<size_t> counts;
  variants = 1;
  for (auto mask : pattern.getBody().front().getOps<MaskOpInterface>())
    if (mask.form() == MaskForm::ByHeads && counts.insert(mask->getNumOperands()).second) {
      variants = saturatingProduct(variants, mask->getNumOperands());
      if (variants > kMaxVariants)
        return mask->emitOpError("expected at most ")
               << kMaxVariants << " choices of operands of attn.heads, got " << variants;
    }
  return success();
}

/// What is below the value that an op gives.
struct Tree {
  int64_t depth = 0, ops = 0, step = 1, rate = 1;
};

LogicalResult verifyTree(Operation &op, const Tree &tree) {
  if (tree.depth > kMaxNesting)
    return op.emitOpError("expected ops nested at most ") << kMaxNesting << " deep, got " << tree.depth;
  if (tree.step > kFarthest)
    return op.emitOpError("expected rates and block sizes whose product is at most ")
           << kFarthest << ", got " << (tree.step == kMany ? "at least " : "") << tree.step;
  if (tree.rate > kMaxRate)
    return op.emitOpError("expected nested rates whose product is at most ") << kMaxRate << ", got " << tree.rate;
  return success();
}

LogicalResult verifyTrees(PatternOp pattern, int64_t variants) {
  llvm::DenseMap<Value, Tree> trees;
  for (Operation &op : pattern.getBody().front()) {
    Tree tree{1, weightOf(op)};
    for (Value operand : op.getOperands()) {
      const Tree inner = trees.lookup(operand);
      tree.depth = std::max(tree.depth, inner.depth + 1);
      tree.ops = saturatingSum(tree.ops, inner.ops);
      tree.step = std::max(tree.step, inner.step);
      tree.rate = std::max(tree.rate, inner.rate);
    }
    tree.step = saturatingProduct(tree.step, stepOf(op));
    tree.rate = saturatingProduct(tree.rate, rateOf(op));
    if (failed(verifyTree(op, tree)))
      return failure();
    if (saturatingProduct(tree.ops, variants) > kMaxWrittenOut)
      return op.emitOpError("expected at most ")
             << kMaxWrittenOut << " ops, each as often as it is used in each of " << variants
             << " choices of heads, got " << (tree.ops == kMany ? "at least " : "")
             << saturatingProduct(tree.ops, variants);
    for (Value result : op.getResults())
      trees[result] = tree;
  }
  return success();
}

} // namespace

LogicalResult verifyLimits(PatternOp pattern) {
  if (int64_t arguments = pattern.getNumArguments(); arguments > kMaxArguments)
    return pattern.emitOpError("expected at most ") << kMaxArguments << " arguments, got " << arguments;
  int64_t variants = 1;
  if (failed(verifyVariants(pattern, variants)))
    return failure();
  return verifyTrees(pattern, variants);
}

} // namespace heddle::attn
