#include "dialect/Geometry/IntExpr.h"

#include <algorithm>
#include <utility>

namespace heddle::attn {
namespace {

int64_t floorDivide(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return quotient - ((a % b != 0) && ((a < 0) != (b < 0)));
}

int64_t foldConstants(IntExpr::Op op, int64_t a, int64_t b) {
  switch (op) {
  case IntExpr::Add:
    return a + b;
  case IntExpr::Sub:
    return a - b;
  case IntExpr::Mul:
    return a * b;
  case IntExpr::FloorDiv:
    return floorDivide(a, b);
  case IntExpr::Mod:
    return a - floorDivide(a, b) * b;
  case IntExpr::Min:
    return std::min(a, b);
  case IntExpr::Max:
    return std::max(a, b);
  case IntExpr::Less:
    return a < b;
  case IntExpr::Equal:
    return a == b;
  case IntExpr::And:
    return a && b;
  default:
    return 0;
  }
}

/// `expr` as a sum `rest + constant`.
std::pair<IntExpr, int64_t> splitConstant(const IntExpr &expr) {
  const IntExpr::Node *node = expr.get();
  if (node->op == IntExpr::Add)
    if (auto value = node->operands[1].constant())
      return {node->operands[0], *value};
  return {expr, 0};
}

bool isConstant(const IntExpr &expr, int64_t value) { return expr.constant() == std::optional<int64_t>(value); }

bool occursInMinMax(IntExpr::Op op, const IntExpr &tree, const IntExpr &leaf) {
  if (tree == leaf)
    return true;
  const IntExpr::Node *node = tree.get();
  return node->op == op && (occursInMinMax(op, node->operands[0], leaf) || occursInMinMax(op, node->operands[1], leaf));
}

} // namespace

IntExpr::IntExpr(int64_t value) {
  auto fresh = std::make_shared<Node>();
  fresh->op = Constant;
  fresh->value = value;
  node = std::move(fresh);
}

IntExpr::IntExpr(Symbol symbol) {
  auto fresh = std::make_shared<Node>();
  fresh->op = Symbolic;
  fresh->symbol = symbol;
  node = std::move(fresh);
}

std::optional<int64_t> IntExpr::constant() const {
  if (node && node->op == Constant)
    return node->value;
  return std::nullopt;
}

bool IntExpr::operator==(const IntExpr &other) const {
  if (node == other.node)
    return true;
  if (!node || !other.node || node->op != other.node->op)
    return false;
  if (node->op == Constant)
    return node->value == other.node->value;
  if (node->op == Symbolic)
    return node->symbol == other.node->symbol;
  if (!(node->symbol == other.node->symbol))
    return false;
  return std::equal(std::begin(node->operands), std::end(node->operands), std::begin(other.node->operands));
}

bool IntExpr::dependsOn(Symbol::Kind kind) const {
  if (!node)
    return false;
  if (node->op == Symbolic)
    return node->symbol.kind == kind;
  return std::any_of(std::begin(node->operands), std::end(node->operands),
                     [&](const IntExpr &operand) { return operand.dependsOn(kind); });
}

bool IntExpr::readsTensors() const {
  return node && (node->op == Entry || node->op == Search ||
                  std::any_of(std::begin(node->operands), std::end(node->operands),
                              [](const IntExpr &operand) { return operand.readsTensors(); }));
}

IntExpr IntExpr::make(Op op, IntExpr a, IntExpr b, IntExpr c) {
  if (op != Select && a.constant() && b.constant())
    return foldConstants(op, *a.constant(), *b.constant());
  auto fresh = std::make_shared<Node>();
  fresh->op = op;
  fresh->operands[0] = std::move(a);
  fresh->operands[1] = std::move(b);
  fresh->operands[2] = std::move(c);
  IntExpr result;
  result.node = std::move(fresh);
  return result;
}

IntExpr operator+(IntExpr a, IntExpr b) {
  if (a.constant())
    std::swap(a, b);
  if (isConstant(b, 0))
    return a;
  if (auto value = b.constant()) {
    auto [rest, offset] = splitConstant(a);
    if (offset != 0)
      return rest + IntExpr(offset + *value);
  }
  return IntExpr::make(IntExpr::Add, a, b);
}

IntExpr operator-(IntExpr a, IntExpr b) {
  if (auto value = b.constant())
    return a + IntExpr(-*value);
  if (a == b)
    return 0;
  return IntExpr::make(IntExpr::Sub, a, b);
}

IntExpr operator*(IntExpr a, IntExpr b) {
  if (a.constant())
    std::swap(a, b);
  if (isConstant(b, 1))
    return a;
  if (isConstant(b, 0))
    return 0;
  return IntExpr::make(IntExpr::Mul, a, b);
}

IntExpr floorDiv(IntExpr a, IntExpr b) { return isConstant(b, 1) ? a : IntExpr::make(IntExpr::FloorDiv, a, b); }
IntExpr ceilDiv(IntExpr a, IntExpr b) { return isConstant(b, 1) ? a : floorDiv(a + (b - 1), b); }
IntExpr mod(IntExpr a, IntExpr b) { return isConstant(b, 1) ? IntExpr(0) : IntExpr::make(IntExpr::Mod, a, b); }

static IntExpr minMax(IntExpr::Op op, IntExpr a, IntExpr b) {
  if (!a || !b)
    return a ? a : b;
  if (occursInMinMax(op, a, b))
    return a;
  if (occursInMinMax(op, b, a))
    return b;
  return IntExpr::make(op, a, b);
}
IntExpr min(IntExpr a, IntExpr b) { return minMax(IntExpr::Min, a, b); }
IntExpr max(IntExpr a, IntExpr b) { return minMax(IntExpr::Max, a, b); }

IntExpr select(IntExpr condition, IntExpr a, IntExpr b) {
  if (auto value = condition.constant())
    return *value ? a : b;
  return IntExpr::make(IntExpr::Select, condition, a, b);
}

IntExpr cut(IntExpr a) {
  if (auto value = a.constant())
    return std::clamp(*value, -kFarthest - 1, kFarthest);
  return a.get()->op == IntExpr::Cut ? a : IntExpr::make(IntExpr::Cut, a, {});
}

IntExpr IntExpr::read(Op op, unsigned argument, IntExpr a, IntExpr b) {
  auto fresh = std::make_shared<Node>();
  fresh->op = op;
  fresh->symbol = {Symbol::Tensor, argument};
  fresh->operands[0] = std::move(a);
  fresh->operands[1] = std::move(b);
  IntExpr result;
  result.node = std::move(fresh);
  return result;
}
IntExpr entry(unsigned argument, IntExpr index) { return IntExpr::read(IntExpr::Entry, argument, std::move(index)); }
IntExpr search(unsigned argument, IntExpr value, IntExpr count) {
  return IntExpr::read(IntExpr::Search, argument, std::move(value), std::move(count));
}

IntExpr less(IntExpr a, IntExpr b) { return a == b ? IntExpr(0) : IntExpr::make(IntExpr::Less, a, b); }
IntExpr lessEqual(IntExpr a, IntExpr b) {
  if (!a || !b || a == b)
    return 1;
  return less(a, b + 1);
}
IntExpr equal(IntExpr a, IntExpr b) { return a == b ? IntExpr(1) : IntExpr::make(IntExpr::Equal, a, b); }
IntExpr both(IntExpr a, IntExpr b) {
  if (isConstant(a, 1))
    return b;
  if (isConstant(b, 1) || a == b)
    return a;
  return IntExpr::make(IntExpr::And, a, b);
}

} // namespace heddle::attn
