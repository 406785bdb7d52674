#include "dialect/IR/ScoreFrame.h"

using namespace mlir;

namespace heddle::attn {

Value ScoreFrame::real(double value) const {
  return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(static_cast<float>(value)));
}
Value ScoreFrame::integer(int32_t value) const {
  return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value));
}
Value ScoreFrame::toReal(Value integer) const {
  return arith::SIToFPOp::create(builder, loc, builder.getF32Type(), integer);
}

} // namespace heddle::attn
