// Bitwise equal calls for equal ops: nothing here depends on the target.
#include "codegen/Emit/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace heddle {
namespace {

bool allows(arith::FastMathFlags flags, arith::FastMathFlags wanted) { return bitEnumContainsAll(flags, wanted); }

LogicalResult replaceByCall(Operation *op, ValueRange operands, StringRef callee, ConversionPatternRewriter &rewriter) {
  if (!op->getResult(0).getType().isF32())
    return rewriter.notifyMatchFailure(op, "only f32 has a function");
  rewriter.replaceOpWithNewOp<emitc::CallOpaqueOp>(op, op->getResultTypes(), callee, operands);
  return success();
}

template <class Op> class CallFunction : public OpConversionPattern<Op> {
public:
  CallFunction(TypeConverter &converter, MLIRContext *context, const char *callee)
      : OpConversionPattern<Op>(converter, context), callee(callee) {}
  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    return replaceByCall(op, adaptor.getOperands(), callee, rewriter);
  }

private:
  const char *callee;
};

struct CallPowerOfTwo : OpConversionPattern<math::Exp2Op> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(math::Exp2Op op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    bool isFast = allows(op.getFastmath(), arith::FastMathFlags::afn);
    return replaceByCall(op, adaptor.getOperands(), isFast ? "heddle::ptx::exp2Approx" : "exp2f", rewriter);
  }
};

struct MultiplyByReciprocal : OpConversionPattern<arith::DivFOp> {
  MultiplyByReciprocal(TypeConverter &converter, MLIRContext *context)
      : OpConversionPattern(converter, context, /*benefit=*/2) {}
  LogicalResult matchAndRewrite(arith::DivFOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getType().isF32() || !allows(op.getFastmath(), arith::FastMathFlags::arcp))
      return rewriter.notifyMatchFailure(op, "an exact division");
    auto inverse = emitc::CallOpaqueOp::create(rewriter, op.getLoc(), op->getResultTypes(),
                                               "heddle::ptx::reciprocalApprox", adaptor.getRhs());
    rewriter.replaceOpWithNewOp<emitc::MulOp>(op, op.getType(), adaptor.getLhs(), inverse.getResult(0));
    return success();
  }
};

struct CallLeadingZeros : OpConversionPattern<math::CountLeadingZerosOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(math::CountLeadingZerosOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getType().isInteger(32))
      return rewriter.notifyMatchFailure(op, "only words have a function");
    rewriter.replaceOpWithNewOp<emitc::CallOpaqueOp>(op, op->getResultTypes(), "__clz", adaptor.getOperands());
    return success();
  }
};

struct CallBitcast : OpConversionPattern<arith::BitcastOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(arith::BitcastOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getIn().getType().isInteger(32) && !op.getIn().getType().isF32())
      return rewriter.notifyMatchFailure(op, "only words and f32 are read as each other");
    const char *callee = op.getType().isF32() ? "__int_as_float" : "__float_as_int";
    rewriter.replaceOpWithNewOp<emitc::CallOpaqueOp>(op, op->getResultTypes(), callee, adaptor.getOperands());
    return success();
  }
};

} // namespace

void populateMathFunctionPatterns(TypeConverter &converter, RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<CallPowerOfTwo, MultiplyByReciprocal, CallBitcast, CallLeadingZeros>(converter, context);
  patterns.add<CallFunction<math::AbsFOp>>(converter, context, "fabsf");
  patterns.add<CallFunction<math::CeilOp>>(converter, context, "ceilf");
  patterns.add<CallFunction<math::CosOp>>(converter, context, "cosf");
  patterns.add<CallFunction<math::ErfOp>>(converter, context, "erff");
  patterns.add<CallFunction<math::ExpOp>>(converter, context, "expf");
  patterns.add<CallFunction<math::ExpM1Op>>(converter, context, "expm1f");
  patterns.add<CallFunction<math::FloorOp>>(converter, context, "floorf");
  patterns.add<CallFunction<math::FmaOp>>(converter, context, "fmaf");
  patterns.add<CallFunction<math::LogOp>>(converter, context, "logf");
  patterns.add<CallFunction<math::Log1pOp>>(converter, context, "log1pf");
  patterns.add<CallFunction<math::Log2Op>>(converter, context, "log2f");
  patterns.add<CallFunction<math::PowFOp>>(converter, context, "powf");
  patterns.add<CallFunction<math::RsqrtOp>>(converter, context, "rsqrtf");
  patterns.add<CallFunction<math::SinOp>>(converter, context, "sinf");
  patterns.add<CallFunction<math::SqrtOp>>(converter, context, "sqrtf");
  patterns.add<CallFunction<math::TanhOp>>(converter, context, "tanhf");
}

} // namespace heddle
