#include "dialect/IR/PredicateFrame.h"
#include "dialect/Geometry/Piece.h"
#include "dialect/IR/Operands.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;
namespace arith = mlir::arith;

namespace heddle::attn {
namespace {

Value constantI32(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(static_cast<int32_t>(value)));
}

std::optional<int64_t> powerOfTwo(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)) && constant.isPowerOf2())
    return constant.logBase2();
  return std::nullopt;
}

} // namespace

Value buildFloorDiv(OpBuilder &builder, Location loc, Value a, Value b) {
  if (auto shift = powerOfTwo(b))
    return arith::ShRSIOp::create(builder, loc, a, constantI32(builder, loc, *shift));
  return arith::FloorDivSIOp::create(builder, loc, a, b);
}

Value buildMod(OpBuilder &builder, Location loc, Value a, Value b) {
  if (auto shift = powerOfTwo(b))
    return arith::AndIOp::create(builder, loc, a, constantI32(builder, loc, (int64_t(1) << *shift) - 1));
  Value multiple = arith::MulIOp::create(builder, loc, buildFloorDiv(builder, loc, a, b), b);
  return arith::SubIOp::create(builder, loc, a, multiple);
}

Value PredicateFrame::constant(int64_t value) const { return constantI32(builder, loc, value); }
Value PredicateFrame::boolean(bool value) const {
  return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(value));
}
Value PredicateFrame::add(Value a, Value b) const { return arith::AddIOp::create(builder, loc, a, b); }
Value PredicateFrame::sub(Value a, Value b) const { return arith::SubIOp::create(builder, loc, a, b); }
Value PredicateFrame::mul(Value a, Value b) const { return arith::MulIOp::create(builder, loc, a, b); }
Value PredicateFrame::floorDiv(Value a, Value b) const { return buildFloorDiv(builder, loc, a, b); }
Value PredicateFrame::mod(Value a, Value b) const { return buildMod(builder, loc, a, b); }
Value PredicateFrame::min(Value a, Value b) const { return arith::MinSIOp::create(builder, loc, a, b); }
Value PredicateFrame::max(Value a, Value b) const { return arith::MaxSIOp::create(builder, loc, a, b); }
Value PredicateFrame::lessUnsigned(Value a, Value b) const {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, a, b);
}
Value PredicateFrame::less(Value a, Value b) const {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, a, b);
}
Value PredicateFrame::lessEqual(Value a, Value b) const {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, a, b);
}
Value PredicateFrame::equal(Value a, Value b) const {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, a, b);
}
Value PredicateFrame::both(Value a, Value b) const { return arith::AndIOp::create(builder, loc, a, b); }
Value PredicateFrame::either(Value a, Value b) const { return arith::OrIOp::create(builder, loc, a, b); }

Value PredicateFrame::headExpr(const IntExpr &expr) const {
  ExprBuilder expressions(builder, loc, [&](Symbol symbol) { return symbol.kind == Symbol::Head ? head : heads; });
  return expressions.integer(expr);
}

Value ExprBuilder::integer(const IntExpr &expr) {
  if (auto value = expr.constant())
    return constantI32(builder, loc, std::clamp(*value, -kFarthest, kFarthest)); // nothing lies beyond
  return build(expr);
}

Value ExprBuilder::condition(const IntExpr &expr) {
  if (auto value = expr.constant())
    return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(*value != 0));
  return build(expr);
}

Value ExprBuilder::buildDivision(const IntExpr::Node &node) {
  Value a = integer(node.operands[0]), b = integer(node.operands[1]);
  return node.op == IntExpr::FloorDiv ? buildFloorDiv(builder, loc, a, b) : buildMod(builder, loc, a, b);
}

Value ExprBuilder::buildWide(const IntExpr &expr) {
  const IntExpr::Node &node = *expr.get();
  Type i64 = builder.getI64Type();
  if (node.op == IntExpr::Constant)
    return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(node.value));
  if (node.op != IntExpr::Add && node.op != IntExpr::Sub && node.op != IntExpr::Mul)
    return arith::ExtSIOp::create(builder, loc, i64, build(expr));
  Value a = buildWide(node.operands[0]), b = buildWide(node.operands[1]);
  if (node.op == IntExpr::Mul)
    return arith::MulIOp::create(builder, loc, a, b);
  return node.op == IntExpr::Add ? arith::AddIOp::create(builder, loc, a, b).getResult()
                                 : arith::SubIOp::create(builder, loc, a, b).getResult();
}

Value ExprBuilder::buildCut(const IntExpr &expr) {
  Value wide = buildWide(expr), least = buildWide(-kFarthest - 1), most = buildWide(kFarthest);
  Value within = arith::MinSIOp::create(builder, loc, arith::MaxSIOp::create(builder, loc, wide, least), most);
  return arith::TruncIOp::create(builder, loc, builder.getI32Type(), within);
}

Value ExprBuilder::build(const IntExpr &expr) {
  const IntExpr::Node &node = *expr.get();
  Value &result = built[&node];
  if (result)
    return result;
  auto a = [&] { return integer(node.operands[0]); };
  auto b = [&] { return integer(node.operands[1]); };
  auto compare = [&](arith::CmpIPredicate predicate) -> Value {
    Value left = a(), right = b();
    return arith::CmpIOp::create(builder, loc, predicate, left, right);
  };
  Value fresh;
  switch (node.op) {
  case IntExpr::Constant:
    fresh = constantI32(builder, loc, node.value);
    break;
  case IntExpr::Symbolic:
    fresh = valueOf(node.symbol);
    break;
  case IntExpr::Add: {
    Value x = a(), y = b();
    fresh = arith::AddIOp::create(builder, loc, x, y);
    break;
  }
  case IntExpr::Sub: {
    Value x = a(), y = b();
    fresh = arith::SubIOp::create(builder, loc, x, y);
    break;
  }
  case IntExpr::Mul: {
    Value x = a(), y = b();
    fresh = arith::MulIOp::create(builder, loc, x, y);
    break;
  }
  case IntExpr::Min: {
    Value x = a(), y = b();
    fresh = arith::MinSIOp::create(builder, loc, x, y);
    break;
  }
  case IntExpr::Max: {
    Value x = a(), y = b();
    fresh = arith::MaxSIOp::create(builder, loc, x, y);
    break;
  }
  case IntExpr::FloorDiv:
  case IntExpr::Mod:
    fresh = buildDivision(node);
    break;
  case IntExpr::Cut:
    fresh = buildCut(node.operands[0]);
    break;
  case IntExpr::Less:
    fresh = compare(arith::CmpIPredicate::slt);
    break;
  case IntExpr::Equal:
    fresh = compare(arith::CmpIPredicate::eq);
    break;
  case IntExpr::Entry: {
    Value tensor = valueOf(node.symbol), index = integer(node.operands[0]);
    fresh = loadEntry(builder, loc, tensor, index);
    break;
  }
  case IntExpr::Search: {
    Value tensor = valueOf(node.symbol), value = integer(node.operands[0]), count = integer(node.operands[1]);
    fresh = callSearch(builder, loc, tensor, value, count);
    break;
  }
  case IntExpr::And: {
    Value x = condition(node.operands[0]), y = condition(node.operands[1]);
    fresh = arith::AndIOp::create(builder, loc, x, y);
    break;
  }
  case IntExpr::Select: {
    Value choose = condition(node.operands[0]), x = integer(node.operands[1]), y = integer(node.operands[2]);
    fresh = arith::SelectOp::create(builder, loc, choose, x, y);
    break;
  }
  }
  return built[&node] = fresh;
}

} // namespace heddle::attn
