// Flattens nested and/or, pushes not to the leaves, drops attn.full from and, repeated operands, dilation by 1,
// scores that nothing changes.
#include "dialect/IR/ScoreChain.h"
#include "dialect/Transforms/Passes.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace heddle::attn {
#define GEN_PASS_DEF_ATTNNORMALIZE
#include "dialect/Transforms/Passes.h.inc"

namespace {

/// and(and(a, b), c) -> and(a, b, c), each operand once; the same for or.
template <class Op> struct Flatten : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    llvm::SmallSetVector<Value, 8> operands;
    for (Value mask : op.getMasks()) {
      if (auto inner = mask.getDefiningOp<Op>())
        operands.insert(inner.getMasks().begin(), inner.getMasks().end());
      else
        operands.insert(mask);
    }
    if (llvm::equal(operands, op.getMasks()))
      return failure();
    rewriter.replaceOpWithNewOp<Op>(op, op.getType(), operands.getArrayRef());
    return success();
  }
};

/// and(a, full) -> and(a).
struct DropFullFromAnd : OpRewritePattern<AndOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AndOp op, PatternRewriter &rewriter) const override {
    SmallVector<Value> operands;
    for (Value mask : op.getMasks())
      if (!mask.getDefiningOp<FullOp>())
        operands.push_back(mask);
    if (operands.size() == op.getMasks().size() || operands.empty())
      return failure();
    rewriter.replaceOpWithNewOp<AndOp>(op, op.getType(), operands);
    return success();
  }
};

/// or(a, full) -> full.
struct OrWithFull : OpRewritePattern<OrOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(OrOp op, PatternRewriter &rewriter) const override {
    if (op.getMasks().size() < 2 ||
        llvm::none_of(op.getMasks(), [](Value mask) { return mask.getDefiningOp<FullOp>(); }))
      return failure();
    rewriter.replaceOpWithNewOp<FullOp>(op, op.getType());
    return success();
  }
};

/// not(and(a, b)) -> or(not a, not b), not(or(a, b)) -> and(not a, not b).
template <class From, class To> struct PushNot : OpRewritePattern<NotOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(NotOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getOperand().getDefiningOp<From>();
    if (!inner)
      return failure();
    SmallVector<Value> complements;
    for (Value mask : inner.getMasks())
      complements.push_back(NotOp::create(rewriter, op.getLoc(), op.getType(), mask));
    rewriter.replaceOpWithNewOp<To>(op, op.getType(), complements);
    return success();
  }
};

/// attn.scaled alone is what a softmax takes anyway.
struct DropUnchangedScores : OpRewritePattern<SoftmaxOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SoftmaxOp op, PatternRewriter &rewriter) const override {
    if (!op.getScores() || changesScores(op.getScores()))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getScoresMutable().clear(); });
    return success();
  }
};

/// dilate by 1 keeps everything where it is.
struct DropUnitDilation : OpRewritePattern<DilateOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DilateOp op, PatternRewriter &rewriter) const override {
    if (op.getRate() != 1)
      return failure();
    rewriter.replaceOp(op, op.getOperand());
    return success();
  }
};

struct AttnNormalizePass : impl::AttnNormalizeBase<AttnNormalizePass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateNormalizePatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

void populateNormalizePatterns(RewritePatternSet &patterns) {
  patterns.add<Flatten<AndOp>, Flatten<OrOp>, DropFullFromAnd, OrWithFull, PushNot<AndOp, OrOp>, PushNot<OrOp, AndOp>,
               DropUnchangedScores, DropUnitDilation>(patterns.getContext());
}

} // namespace heddle::attn
