//===- ScoreOps.cpp - scores that change by a formula ---------------------===//
// Verifiers and interface methods of scaled, softcap and alibi.
//===----------------------------------------------------------------------===//
#include "dialect/IR/Attn.h"
#include "dialect/IR/Reals.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace heddle::attn {

//===-- scaled ----------------------------------------------------------------===//

Value ScaledOp::getChanged() { return {}; }
Value ScaledOp::buildScore(const ScoreFrame &, Value score) { return score; }
Value ScaledOp::buildDerivative(const ScoreFrame &frame, Value) { return frame.real(1); }
std::string ScaledOp::inWords() { return "scaled"; }

//===-- softcap ---------------------------------------------------------------===//

static Real capOf(SoftcapOp op) { return {op.getDynamicCap(), op.getCapAttr()}; }

LogicalResult SoftcapOp::verify() {
  Real cap = capOf(*this);
  if (failed(verifyReal(*this, cap, "cap")))
    return failure();
  if (cap.minimum() > 0)
    return success();
  if (cap.number)
    return emitOpError("expected cap > 0, got ") << cap.number.getValueAsDouble();
  return emitOpError("expected a run-time cap with attn.min > 0: 0 has no inverse");
}

/// tanh(score / cap) for any cap.
static Value capped(const ScoreFrame &frame, Value score, Value cap) {
  return frame.make<math::TanhOp>(frame.div(score, cap));
}

/// 2 / (1 + exp(2 score / cap)) = 1 - tanh(score / cap) with the fast power and the fast inverse of the device. Both are
/// off by about 2^-22; what e = exp(2 score / cap) is off, relatively, by up to 2^-22 + 2^-23 |2 score / cap|, reaches the
/// result times 2 e / (1 + e)^2 <= 1/2, and (2 score / cap) e / (1 + e)^2 <= 0.23. Together below 6e-7, absolutely: times
/// the cap that is what the score is off.
static Value distanceFromCap(const ScoreFrame &frame, Value score, Value cap) {
  constexpr double kLog2OfE = 1.44269504088896340736;
  Value one = frame.real(1), two = frame.real(2);
  Value slope = frame.div(frame.real(2 * kLog2OfE), cap);
  Value exponent = frame.mul(score, slope);
  Value power = math::Exp2Op::create(frame.builder, frame.loc, exponent, arith::FastMathFlags::afn);
  Value sum = frame.add(power, one);
  return arith::DivFOp::create(frame.builder, frame.loc, two, sum, arith::FastMathFlags::arcp);
}

constexpr double kMostFastCap = 512; // 512 * 6e-7 stays well below what a row's lse may be off, 1e-3

Value SoftcapOp::buildScore(const ScoreFrame &frame, Value score) {
  Value cap = capOf(*this).value(frame);
  if (capOf(*this).maximum() > kMostFastCap)
    return frame.mul(cap, capped(frame, score, cap));
  return frame.sub(cap, frame.mul(cap, distanceFromCap(frame, score, cap)));
}

Value SoftcapOp::buildDerivative(const ScoreFrame &frame, Value score) {
  Value tangent = capped(frame, score, capOf(*this).value(frame));
  Value square = frame.mul(tangent, tangent);
  return frame.sub(frame.real(1), square);
}

std::string SoftcapOp::inWords() { return "softcap by " + capOf(*this).inWords(); }

//===-- alibi -----------------------------------------------------------------===//

/// The largest power of two that is at most `value`, for value >= 1: the exponent without the fraction.
static Value powerOfTwoBelow(const ScoreFrame &frame, Value value) {
  constexpr int32_t kExponentBits = 0x7f800000;
  Value bits = arith::BitcastOp::create(frame.builder, frame.loc, frame.builder.getI32Type(), value);
  Value exponent = frame.make<arith::AndIOp>(bits, frame.integer(kExponentBits));
  return arith::BitcastOp::create(frame.builder, frame.loc, value.getType(), exponent);
}

/// Exact in f32 up to the power: numbers of heads are below 2^20.
static Value alibiSlope(const ScoreFrame &frame) {
  Value head = frame.toReal(frame.head), regular = powerOfTwoBelow(frame, frame.toReal(frame.heads));
  Value isRegular = arith::CmpFOp::create(frame.builder, frame.loc, arith::CmpFPredicate::OLT, head, regular);
  Value following = frame.add(head, frame.real(1));
  Value beyond = frame.sub(head, regular);
  Value between = frame.add(beyond, frame.real(0.5));
  Value number = frame.make<arith::SelectOp>(isRegular, following, between);
  Value eighths = frame.mul(number, frame.real(-8));
  return frame.make<math::Exp2Op>(frame.div(eighths, regular));
}

Value AlibiOp::buildScore(const ScoreFrame &frame, Value score) {
  Value ahead = frame.toReal(frame.make<arith::SubIOp>(frame.q, frame.k));
  Value distance = frame.make<math::AbsFOp>(ahead);
  Value slope = alibiSlope(frame);
  return frame.sub(score, frame.mul(slope, distance));
}

Value AlibiOp::buildDerivative(const ScoreFrame &frame, Value) { return frame.real(1); }
std::string AlibiOp::inWords() { return "alibi"; }

} // namespace heddle::attn
