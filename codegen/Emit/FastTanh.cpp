// Writes c tanh(s / c), whose tanh is marked `afn`, as c - c d with d = 2 / (1 + exp(2 s / c)) = 1 - tanh(s / c): an
// ex2 and an rcp. Both are off by about 2^-22; what e = exp(2 s / c) is off, relatively, by up to 2^-22 + 2^-23 |2 s /
// c|, reaches d times 2 e / (1 + e)^2 <= 1/2, and (2 s / c) e / (1 + e)^2 <= 0.23. Together tanh is off below 6e-7,
// absolutely: digits of scores that are small beside the cap are lost, fewer than products of 16-bit numbers lack. Only
// text for a device is so.
#include "codegen/Emit/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>

using namespace mlir;

namespace heddle {
namespace {

/// c tanh(s / c), found at its tanh.
struct Bounded {
  arith::MulFOp product;
  Value score, cap;
};

std::optional<Bounded> boundedBy(math::TanhOp tangent) {
  auto quotient = tangent.getOperand().getDefiningOp<arith::DivFOp>();
  if (!quotient || !tangent->hasOneUse() || !bitEnumContainsAll(tangent.getFastmath(), arith::FastMathFlags::afn))
    return std::nullopt;
  auto product = dyn_cast<arith::MulFOp>(*tangent->user_begin());
  if (!product)
    return std::nullopt;
  Value factor = product.getLhs() == tangent.getResult() ? product.getRhs() : product.getLhs();
  if (factor != quotient.getRhs())
    return std::nullopt;
  return Bounded{product, quotient.getLhs(), factor};
}

Value fastForm(Bounded bounded) {
  OpBuilder builder(bounded.product);
  const Location loc = bounded.product.getLoc();
  auto real = [&](double value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(static_cast<float>(value)));
  };
  constexpr double kLog2OfE = 1.44269504088896340736;
  Value slope = builder.createOrFold<arith::DivFOp>(loc, real(2 * kLog2OfE), bounded.cap);
  Value exponent = arith::MulFOp::create(builder, loc, bounded.score, slope);
  Value power = math::Exp2Op::create(builder, loc, exponent, arith::FastMathFlags::afn);
  Value sum = arith::AddFOp::create(builder, loc, power, real(1));
  Value distance = arith::DivFOp::create(builder, loc, real(2), sum, arith::FastMathFlags::arcp);
  Value lacking = arith::MulFOp::create(builder, loc, bounded.cap, distance);
  return arith::SubFOp::create(builder, loc, bounded.cap, lacking);
}

class FastTanhPass : public PassWrapper<FastTanhPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FastTanhPass)

  llvm::StringRef getArgument() const override { return "heddle-fast-tanh"; }
  llvm::StringRef getDescription() const override { return "Bound scores with fast instructions"; }
  void runOnOperation() override {
    SmallVector<math::TanhOp> tangents;
    getOperation().walk([&](math::TanhOp tangent) { tangents.push_back(tangent); });
    for (math::TanhOp tangent : tangents)
      if (std::optional<Bounded> bounded = boundedBy(tangent)) {
        bounded->product.replaceAllUsesWith(fastForm(*bounded));
        Operation *quotient = tangent.getOperand().getDefiningOp();
        bounded->product.erase();
        tangent.erase();
        if (quotient->use_empty())
          quotient->erase();
      }
  }
};

} // namespace

std::unique_ptr<Pass> createFastTanhPass() { return std::make_unique<FastTanhPass>(); }

} // namespace heddle
