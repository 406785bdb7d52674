//===- ExprProgram.cpp - flattening and the sweep domain ------------------===//
#include "dialect/Analysis/ExprProgram.h"

#include <numeric>

namespace heddle::attn {

int64_t floorDivide(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

unsigned ExprProgram::add(const IntExpr &expr) {
  outputs.push_back(addNode(expr));
  return outputs.back();
}

unsigned ExprProgram::addNode(const IntExpr &expr) {
  const IntExpr::Node *node = expr.get();
  for (unsigned i = 0; i < instructions.size(); ++i)
    if (instructions[i].node == node)
      return i;
  Instruction instruction{node, {0, 0, 0}};
  if (node->op != IntExpr::Constant && node->op != IntExpr::Symbolic)
    for (unsigned i = 0; i < 3; ++i)
      if (node->operands[i])
        instruction.operands[i] = addNode(node->operands[i]);
  roots.push_back(expr);
  instructions.push_back(instruction);
  return instructions.size() - 1;
}

bool ExprProgram::uses(Symbol::Kind kind) const {
  return std::any_of(instructions.begin(), instructions.end(), [&](const Instruction &instruction) {
    return instruction.node->op == IntExpr::Symbolic && instruction.node->symbol.kind == kind;
  });
}

void ExprProgram::headValues(const std::vector<int64_t> &slots, std::vector<int64_t> &values) const {
  std::vector<char> onHead(instructions.size()), onTile(instructions.size()), decides(instructions.size());
  for (unsigned output : outputs)
    decides[output] = true;
  for (size_t i = 0; i < instructions.size(); ++i) {
    const Instruction &instruction = instructions[i];
    Symbol::Kind kind = instruction.node->symbol.kind;
    bool isSymbol = instruction.node->op == IntExpr::Symbolic;
    onHead[i] = isSymbol && kind == Symbol::Head;
    onTile[i] = isSymbol && (kind == Symbol::TileFirst || kind == Symbol::TileLast || kind == Symbol::Cell);
    forEachOperand(instruction, [&](unsigned operand) {
      onHead[i] |= onHead[operand];
      onTile[i] |= onTile[operand];
    });
    if (onTile[i])
      forEachOperand(instruction, [&](unsigned operand) { decides[operand] = true; });
  }
  for (size_t i = 0; i < instructions.size(); ++i)
    if (onHead[i] && !onTile[i] && decides[i])
      values.push_back(slots[i]);
}

int64_t ExprProgram::leastCommonDivisor(const std::vector<int64_t> &slots, int64_t start, int64_t limit) const {
  int64_t result = start;
  for (const Instruction &instruction : instructions) {
    if (instruction.node->op != IntExpr::FloorDiv && instruction.node->op != IntExpr::Mod)
      continue;
    int64_t joined = std::lcm(result, slots[instruction.operands[1]]);
    if (joined > limit)
      return start;
    result = joined;
  }
  return result;
}

SweepNumber SweepDomain::mul(Number a, Number b) {
  if (a.slope != 0 && b.slope != 0)
    horizon = 0;
  return {a.value * b.value, a.slope * b.value + b.slope * a.value};
}

void SweepDomain::limitToFloor(Number a, int64_t divisor) {
  int64_t remainder = a.value - floorDivide(a.value, divisor) * divisor;
  int64_t room = a.slope > 0 ? divisor - 1 - remainder : remainder;
  horizon = std::min(horizon, room / std::abs(a.slope));
}

SweepNumber SweepDomain::floorDiv(Number a, Number b) {
  int64_t quotient = floorDivide(a.value, b.value);
  if (b.slope != 0) {
    horizon = 0;
    return {quotient, 0};
  }
  if (a.slope % b.value == 0)
    return {quotient, a.slope / b.value};
  limitToFloor(a, b.value);
  return {quotient, 0};
}

SweepNumber SweepDomain::mod(Number a, Number b) {
  int64_t remainder = a.value - floorDivide(a.value, b.value) * b.value;
  if (b.slope != 0) {
    horizon = 0;
    return {remainder, 0};
  }
  if (a.slope % b.value == 0)
    return {remainder, 0};
  limitToFloor(a, b.value);
  return {remainder, a.slope};
}

bool SweepDomain::less(Number a, Number b) {
  int64_t difference = b.value - a.value, slope = b.slope - a.slope; // a < b while difference > 0
  bool result = difference > 0;
  if (result && slope < 0)
    horizon = std::min(horizon, (difference - 1) / -slope);
  if (!result && slope > 0)
    horizon = std::min(horizon, -difference / slope);
  return result;
}

bool SweepDomain::equal(Number a, Number b) {
  int64_t difference = b.value - a.value, slope = b.slope - a.slope;
  if (difference == 0) {
    if (slope != 0)
      horizon = 0;
    return true;
  }
  if (slope != 0 && (difference > 0) != (slope > 0)) // moving toward equality
    horizon = std::min(horizon, (std::abs(difference) - 1) / std::abs(slope));
  return false;
}

} // namespace heddle::attn
