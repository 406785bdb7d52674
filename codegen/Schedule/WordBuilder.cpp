// A limit is the distance of a bound from the line's base, clamped at 0: as an unsigned number it is exact wherever
// the bound lies.
#include "codegen/Schedule/WordBuilder.h"
#include "codegen/Schedule/PatternFunction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
namespace arith = mlir::arith;

namespace heddle {

static constexpr int64_t kMaxColumns = 1 << 10; // of a tile

static bool isOneBound(const Word &word) { return !word.below != !word.from && !word.other && !word.when; }
/// The negation of what has one bound.
static Word swapped(const Word &word) { return {word.from, word.below, {}, {}}; }

Value WordBuilder::constant(int64_t value) {
  return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(static_cast<int32_t>(value)));
}
Value WordBuilder::add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
Value WordBuilder::sub(Value a, Value b) { return arith::SubIOp::create(builder, loc, a, b); }
Value WordBuilder::mul(Value a, Value b) { return arith::MulIOp::create(builder, loc, a, b); }
Value WordBuilder::conjunction(Value a, Value b) { return arith::AndIOp::create(builder, loc, a, b); }
Value WordBuilder::inverted(Value word) { return arith::XOrIOp::create(builder, loc, word, constant(-1)); }
Value WordBuilder::choose(Value condition, Value a, Value b) {
  return arith::SelectOp::create(builder, loc, condition, a, b);
}
Value WordBuilder::isLess(Value a, Value b) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, a, b);
}
Value WordBuilder::below(Value limit) {
  return func::CallOp::create(builder, loc, kColumnsBelow, TypeRange{builder.getI32Type()}, limit).getResult(0);
}

/// The number of columns c >= 0 with low + slope * c < high.
Value WordBuilder::limit(Value low, Value high, int64_t slope) {
  Value distance = sub(arith::MaxSIOp::create(builder, loc, low, high), low);
  if (slope == 1)
    return distance;
  distance = add(distance, constant(slope - 1));
  if (llvm::isPowerOf2_64(slope))
    return arith::ShRUIOp::create(builder, loc, distance, constant(llvm::Log2_64(slope)));
  return arith::DivSIOp::create(builder, loc, distance, constant(slope));
}

Word WordBuilder::less(const Line &line, Value bound, bool orEqual) {
  // The emitted text has no unsigned division: where one is needed, the distance is cut to have a sign.
  if (line.slope > 0) {
    Value base = orEqual ? sub(line.base, constant(1)) : line.base;
    if (!llvm::isPowerOf2_64(line.slope))
      bound = arith::MinSIOp::create(builder, loc, bound, add(base, constant(line.slope * kMaxColumns)));
    return {limit(base, bound, line.slope), {}, {}, {}};
  }
  Value base = orEqual ? line.base : add(line.base, constant(1)); // the columns before the limit lie above the bound
  if (!llvm::isPowerOf2_64(-line.slope))
    bound = arith::MaxSIOp::create(builder, loc, bound, add(base, constant(line.slope * kMaxColumns)));
  return {{}, limit(bound, base, -line.slope), {}, {}};
}

Word WordBuilder::both(const Word &a, const Word &b) {
  auto merge = [](Value x, Value y, auto &&combine) { return x && y ? combine(x, y) : x ? x : y; };
  return {merge(a.below, b.below, [&](Value x, Value y) { return choose(isLess(x, y), x, y); }),
          merge(a.from, b.from, [&](Value x, Value y) { return choose(isLess(x, y), y, x); }),
          merge(a.other, b.other, [&](Value x, Value y) { return conjunction(x, y); }),
          merge(a.when, b.when, [&](Value x, Value y) { return conjunction(x, y); })};
}

Word WordBuilder::either(const Word &a, const Word &b) {
  if (isOneBound(a) && isOneBound(b) && !a.below == !b.below)
    return negation(both(swapped(a), swapped(b)));
  Value first = bits(a), second = bits(b);
  return {{}, {}, arith::OrIOp::create(builder, loc, first, second), {}};
}

Word WordBuilder::differ(const Word &a, const Word &b) {
  Value first = bits(a), second = bits(b);
  return {{}, {}, arith::XOrIOp::create(builder, loc, first, second), {}};
}

Word WordBuilder::negation(const Word &word) {
  if (isOneBound(word))
    return swapped(word);
  return {{}, {}, inverted(bits(word)), {}};
}

Word WordBuilder::pick(Value condition, const Word &a, const Word &b) {
  Value first = bits(a), second = bits(b);
  return {{}, {}, choose(condition, first, second), {}};
}

Value WordBuilder::bits(const Word &word) {
  Value result = word.other;
  auto cut = [&](Value columns) { result = result ? conjunction(result, columns) : columns; };
  if (word.below)
    cut(below(word.below));
  if (word.from)
    cut(inverted(below(word.from)));
  if (!result)
    result = constant(-1);
  return word.when ? choose(word.when, result, constant(0)) : result;
}

} // namespace heddle
