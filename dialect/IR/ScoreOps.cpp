// Verifiers and interface methods of scaled, softcap and alibi.
#include "dialect/IR/DocumentTensors.h"
#include "dialect/IR/Reals.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace heddle::attn {

//===-- scaled ----------------------------------------------------------------===//

Value ScaledOp::getChanged() { return {}; }
Value ScaledOp::buildScore(const ScoreFrame &, Value score) { return score; }
Value ScaledOp::buildDerivative(const ScoreFrame &frame, Value) { return frame.real(1); }
std::string ScaledOp::inWords() { return getOffsets().empty() ? "scaled" : "scaled, inside documents"; }

LogicalResult ScaledOp::verify() {
  constexpr size_t kMostOffsets = 2;
  if (getOffsets().size() > kMostOffsets)
    return emitOpError("expected offsets of queries and of keys, or of both, got ")
           << getOffsets().size() << " tensors";
  if (getUsed() && getOffsets().empty())
    return emitOpError("expected offsets, `at`, beside `used`");
  const DocumentTensors documents = DocumentTensors::of(*this);
  return documents ? documents.verify() : success();
}

OperandUse ScaledOp::getOperandUse(unsigned index) {
  return DocumentTensors::of(*this).useOf(getOperation()->getOperand(index));
}
std::string ScaledOp::checkTensors(const TensorCall &call) {
  const DocumentTensors documents = DocumentTensors::of(*this);
  return documents ? documents.check(call) : "";
}
std::vector<int64_t> ScaledOp::makeTensor(unsigned index, const TensorCall &call, uint64_t seed) {
  return DocumentTensors::of(*this).make(getOperation()->getOperand(index), call, seed);
}

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

constexpr double kMostFastCap = 512; // 512 * 6e-7 stays well below what a row's lse may be off, 1e-3

/// c tanh(s / c) keeps the digits of scores that are small beside the cap. Marked `afn`, as in text for a device, tanh
/// may be off by 6e-7, absolutely (codegen/Emit/FastTanh.cpp): times the cap that is what the score is off.
Value SoftcapOp::buildScore(const ScoreFrame &frame, Value score) {
  const bool isFast = capOf(*this).maximum() <= kMostFastCap;
  Value cap = capOf(*this).value(frame);
  Value tangent = math::TanhOp::create(frame.builder, frame.loc, frame.div(score, cap),
                                       isFast ? arith::FastMathFlags::afn : arith::FastMathFlags::none);
  return frame.mul(cap, tangent);
}

/// 1 - tanh(s / c)^2 = 4 e / (1 + e)^2 with e = exp(-2 |s / c|), where nothing cancels.
Value SoftcapOp::buildDerivative(const ScoreFrame &frame, Value score) {
  Value distance = frame.make<math::AbsFOp>(frame.div(score, capOf(*this).value(frame)));
  Value power = frame.make<math::ExpOp>(frame.mul(distance, frame.real(-2)));
  Value sum = frame.add(power, frame.real(1));
  Value quotient = frame.div(power, frame.mul(sum, sum));
  return frame.mul(quotient, frame.real(4));
}

/// x^3 (2/3 - 8/15 x^2 + ...), the series of tanh(x) - x (1 - tanh(x)^2): within 1e-7 of it for |x| < kMostOfSeries.
constexpr double kMostOfSeries = 0.35;
static Value capSeries(const ScoreFrame &frame, Value x) {
  Value square = frame.mul(x, x), sum = frame.real(-0.0431049);
  for (double coefficient : {0.0886323, -0.1749559, 0.3238095, -0.5333333, 0.6666667}) {
    Value next = frame.real(coefficient);
    sum = frame.add(frame.mul(sum, square), next);
  }
  return frame.mul(sum, frame.mul(square, x));
}

/// tanh(x) - x (1 - tanh(x)^2) with x = s / c. Both are about x where x is small: there by their series.
Value SoftcapOp::buildArgumentDerivative(const ScoreFrame &frame, Value score, Value argument) {
  if (argument != getDynamicCap())
    return {};
  Value part = frame.div(score, capOf(*this).value(frame));
  Value slope = buildDerivative(frame, score), tangent = frame.make<math::TanhOp>(part);
  Value distance = frame.make<math::AbsFOp>(part), most = frame.real(kMostOfSeries);
  Value isSmall = arith::CmpFOp::create(frame.builder, frame.loc, arith::CmpFPredicate::OLT, distance, most);
  Value series = capSeries(frame, part), difference = frame.sub(tangent, frame.mul(part, slope));
  return frame.make<arith::SelectOp>(isSmall, series, difference);
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
PositionUse AlibiOp::positionUse() { return PositionUse::Distance; }
std::string AlibiOp::inWords() { return "alibi"; }

} // namespace heddle::attn
