// Verifier and interface methods of attn.score_map. Its derivative is found op by op, forward: every value of the
// region has a tangent, its derivative with respect to the score; integers and conditions have none.
#include "dialect/IR/Attn.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace heddle::attn {
namespace {

constexpr double kLogOf2 = 0.69314718055994530942;
constexpr double kTwoOverRootPi = 1.12837916709551257390;

bool isWord(Type type) { return type.isInteger(1) || type.isInteger(32); }

/// A f32 op whose derivative is known, or one that makes an f32 of what has none.
bool hasTangentRule(Operation *op) {
  return isa<arith::ConstantOp, arith::SIToFPOp, arith::UIToFPOp, arith::AddFOp, arith::SubFOp, arith::MulFOp,
             arith::DivFOp, arith::NegFOp, arith::MaximumFOp, arith::MinimumFOp, arith::SelectOp, math::AbsFOp,
             math::CeilOp, math::CosOp, math::ErfOp, math::ExpOp, math::Exp2Op, math::ExpM1Op, math::FloorOp,
             math::FmaOp, math::LogOp, math::Log1pOp, math::Log2Op, math::PowFOp, math::RsqrtOp, math::SinOp,
             math::SqrtOp, math::TanhOp>(op);
}

/// Integers and conditions of integers; comparisons of scores.
bool isWithoutTangent(Operation *op) {
  return isa_and_nonnull<arith::ArithDialect>(op->getDialect()) && op->getNumResults() == 1 &&
         isWord(op->getResult(0).getType()) && (isa<arith::CmpFOp>(op) || llvm::all_of(op->getOperandTypes(), isWord));
}

LogicalResult verifyInner(Operation *op) {
  const bool isReal = op->getNumResults() == 1 && op->getResult(0).getType().isF32();
  if (op->getNumRegions() != 0 || !(isReal ? hasTangentRule(op) : isWithoutTangent(op)))
    return op->emitOpError(
        "expected an op on f32 with a known derivative, or an arith op on i32 and i1, in attn.score_map");
  return success();
}

/// Tangents of the values of a region; null: zero.
class Tangents {
public:
  Tangents(const ScoreFrame &frame, const IRMapping &values) : frame(frame), values(values) {}

  void set(Value value, Value tangent) { known[value] = tangent; }
  Value of(Value value) const { return known.lookup(value); }

  /// After the op was cloned.
  void visit(Operation &op) {
    if (op.getNumResults() == 1 && op.getResult(0).getType().isF32())
      set(op.getResult(0), tangentOf(op));
  }

private:
  Value a(Operation &op, unsigned index) const { return values.lookup(op.getOperand(index)); }
  Value t(Operation &op, unsigned index) const { return of(op.getOperand(index)); }
  Value result(Operation &op) const { return values.lookup(op.getResult(0)); }

  Value real(double value) const { return frame.real(value); }
  Value times(Value x, Value y) const { return x && y ? frame.mul(x, y) : Value(); }
  Value plus(Value x, Value y) const { return x && y ? frame.add(x, y) : x ? x : y; }
  Value orZero(Value x) const { return x ? x : real(0); }
  Value negative(Value x) const { return x ? frame.make<arith::NegFOp>(x) : Value(); }
  Value choose(Value condition, Value x, Value y) const {
    if (!x && !y)
      return {};
    Value first = orZero(x), second = orZero(y);
    return frame.make<arith::SelectOp>(condition, first, second);
  }
  Value isOrdered(arith::CmpFPredicate predicate, Value x, Value y) const {
    return arith::CmpFOp::create(frame.builder, frame.loc, predicate, x, y);
  }

  Value tangentOf(Operation &op) const {
    if (llvm::none_of(op.getOperands(), [&](Value operand) { return bool(of(operand)); }))
      return {};
    if (op.getNumOperands() == 1)
      return times(t(op, 0), slopeOf(op));
    return TypeSwitch<Operation *, Value>(&op)
        .Case([&](arith::AddFOp) { return plus(t(op, 0), t(op, 1)); })
        .Case([&](arith::SubFOp) { return plus(t(op, 0), negative(t(op, 1))); })
        .Case([&](arith::MulFOp) { return tangentOfProduct(op); })
        .Case([&](arith::DivFOp) { return frame.div(plus(t(op, 0), negative(times(result(op), t(op, 1)))), a(op, 1)); })
        .Case([&](arith::MaximumFOp) {
          return choose(isOrdered(arith::CmpFPredicate::OGE, a(op, 0), a(op, 1)), t(op, 0), t(op, 1));
        })
        .Case([&](arith::MinimumFOp) {
          return choose(isOrdered(arith::CmpFPredicate::OLE, a(op, 0), a(op, 1)), t(op, 0), t(op, 1));
        })
        .Case([&](arith::SelectOp) { return choose(a(op, 0), t(op, 1), t(op, 2)); })
        .Case([&](math::FmaOp) { return plus(tangentOfProduct(op), t(op, 2)); })
        .Case([&](math::PowFOp) { return tangentOfPower(op); });
  }

  // Nothing below makes two ops in one call: the order of arguments is the compiler's.
  Value tangentOfProduct(Operation &op) const {
    Value first = times(t(op, 0), a(op, 1)), second = times(a(op, 0), t(op, 1));
    return plus(first, second);
  }

  Value tangentOfPower(Operation &op) const {
    Value less = frame.sub(a(op, 1), real(1));
    Value alongBase = t(op, 0) ? times(times(a(op, 1), frame.make<math::PowFOp>(a(op, 0), less)), t(op, 0)) : Value();
    Value alongExponent = t(op, 1) ? times(times(frame.make<math::LogOp>(a(op, 0)), result(op)), t(op, 1)) : Value();
    return plus(alongBase, alongExponent);
  }

  /// The slope of a function of one value; null: zero.
  Value slopeOf(Operation &op) const {
    Value x = a(op, 0), y = result(op);
    auto inverse = [&](Value of) { return frame.div(real(1), of); };
    return TypeSwitch<Operation *, Value>(&op)
        .Case([&](arith::NegFOp) { return real(-1); })
        .Case([&](math::AbsFOp) {
          Value isNegative = isOrdered(arith::CmpFPredicate::OLT, x, real(0)), minus = real(-1), plus = real(1);
          return choose(isNegative, minus, plus);
        })
        .Case([&](math::CosOp) { return negative(frame.make<math::SinOp>(x)); })
        .Case([&](math::ErfOp) {
          Value decay = frame.make<math::ExpOp>(negative(times(x, x)));
          return times(decay, real(kTwoOverRootPi));
        })
        .Case([&](math::ExpOp) { return y; })
        .Case([&](math::Exp2Op) { return times(y, real(kLogOf2)); })
        .Case([&](math::ExpM1Op) { return frame.add(y, real(1)); })
        .Case([&](math::LogOp) { return inverse(x); })
        .Case([&](math::Log1pOp) { return inverse(frame.add(x, real(1))); })
        .Case([&](math::Log2Op) { return inverse(times(x, real(kLogOf2))); })
        .Case([&](math::RsqrtOp) {
          Value quotient = frame.div(y, x);
          return times(quotient, real(-0.5));
        })
        .Case([&](math::SinOp) { return frame.make<math::CosOp>(x); })
        .Case([&](math::SqrtOp) { return frame.div(real(0.5), y); })
        .Case([&](math::TanhOp) {
          Value square = times(y, y);
          return frame.sub(real(1), square);
        })
        .Default([](Operation *) { return Value(); }); // ceil and floor
  }

  const ScoreFrame &frame;
  const IRMapping &values;
  llvm::DenseMap<Value, Value> known;
};

constexpr unsigned kOwnArguments = 5; // score, batch, head, q, k

IRMapping argumentsOf(ScoreMapOp map, const ScoreFrame &frame, Value score) {
  SmallVector<Value> arguments = {score, frame.batch, frame.head, frame.q, frame.k};
  for (Value number : map.getNumbers())
    arguments.push_back(frame.arguments->values.lookup(number));
  IRMapping values;
  values.map(map.getBody().front().getArguments(), arguments);
  return values;
}

} // namespace

LogicalResult ScoreMapOp::verifyRegions() {
  Block &block = getBody().front();
  auto isI32 = [](Type type) { return type.isInteger(32); };
  SmallVector<Type> types(block.getArgumentTypes());
  if (block.getNumArguments() < kOwnArguments || !block.getArgument(0).getType().isF32() ||
      !llvm::all_of(ArrayRef<Type>(types).take_front(kOwnArguments).drop_front(), isI32))
    return emitOpError("expected a region over (score, batch, head, q, k): f32 and four i32");
  if (!llvm::equal(ArrayRef<Type>(types).drop_front(kOwnArguments), getNumbers().getTypes()))
    return emitOpError("expected the region to take what `with` lists behind (score, batch, head, q, k)");
  for (Value number : getNumbers())
    if (!isa<BlockArgument>(number))
      return emitOpError("expected `with` to list arguments of the pattern");
  auto yield = dyn_cast<YieldOp>(block.back());
  if (!yield)
    return emitOpError("expected the region to end with attn.yield");
  if (!yield.getValue().getType().isF32())
    return yield.emitOpError("expected an f32, got ") << yield.getValue().getType();
  for (Operation &op : block.without_terminator())
    if (failed(verifyInner(&op)))
      return failure();
  return success();
}

Value ScoreMapOp::buildScore(const ScoreFrame &frame, Value score) {
  Block &block = getBody().front();
  IRMapping values = argumentsOf(*this, frame, score);
  for (Operation &op : block.without_terminator())
    frame.builder.clone(op, values);
  return values.lookup(cast<YieldOp>(block.getTerminator()).getValue());
}

/// The derivative of what the region yields, where those of its arguments vary that `varies` names.
static Value tangentOfRegion(ScoreMapOp map, const ScoreFrame &frame, Value score,
                             llvm::function_ref<bool(unsigned)> varies) {
  Block &block = map.getBody().front();
  IRMapping values = argumentsOf(map, frame, score);
  Tangents tangents(frame, values);
  for (BlockArgument argument : block.getArguments())
    if (varies(argument.getArgNumber()))
      tangents.set(argument, frame.real(1));
  for (Operation &op : block.without_terminator()) {
    frame.builder.clone(op, values);
    tangents.visit(op);
  }
  Value tangent = tangents.of(cast<YieldOp>(block.getTerminator()).getValue());
  return tangent ? tangent : frame.real(0);
}

Value ScoreMapOp::buildDerivative(const ScoreFrame &frame, Value score) {
  return tangentOfRegion(*this, frame, score, [](unsigned index) { return index == 0; });
}

Value ScoreMapOp::buildArgumentDerivative(const ScoreFrame &frame, Value score, Value argument) {
  if (!argument.getType().isF32() || !llvm::is_contained(getNumbers(), argument))
    return {};
  return tangentOfRegion(*this, frame, score, [&](unsigned index) {
    return index >= kOwnArguments && getNumbers()[index - kOwnArguments] == argument;
  });
}

/// A region may read one position and subtract it from the other only.
PositionUse ScoreMapOp::positionUse() {
  Value q = getBody().front().getArgument(3), k = getBody().front().getArgument(4);
  auto isDistance = [&](Operation *user) {
    return isa<arith::SubIOp>(user) && llvm::is_contained(user->getOperands(), q) &&
           llvm::is_contained(user->getOperands(), k);
  };
  if (q.use_empty() && k.use_empty())
    return PositionUse::None;
  return llvm::all_of(q.getUsers(), isDistance) && llvm::all_of(k.getUsers(), isDistance) ? PositionUse::Distance
                                                                                          : PositionUse::Each;
}

std::string ScoreMapOp::inWords() { return "score_map"; }

} // namespace heddle::attn
