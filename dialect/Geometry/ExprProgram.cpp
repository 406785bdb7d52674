#include "dialect/Geometry/ExprProgram.h"

#include <algorithm>

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
  if (const auto known = slotOf.find(node); known != slotOf.end())
    return known->second;
  Instruction instruction{node, {0, 0, 0}};
  if (node->op != IntExpr::Constant && node->op != IntExpr::Symbolic)
    for (unsigned i = 0; i < 3; ++i)
      if (node->operands[i])
        instruction.operands[i] = addNode(node->operands[i]);
  roots.push_back(expr);
  instructions.push_back(instruction);
  return slotOf[node] = unsigned(instructions.size() - 1);
}

bool ExprProgram::uses(Symbol::Kind kind) const {
  return std::any_of(instructions.begin(), instructions.end(), [&](const Instruction &instruction) {
    return instruction.node->op == IntExpr::Symbolic && instruction.node->symbol.kind == kind;
  });
}

std::vector<unsigned> ExprProgram::cells() const {
  std::vector<unsigned> used;
  for (const Instruction &instruction : instructions)
    if (instruction.node->op == IntExpr::Symbolic && instruction.node->symbol.kind == Symbol::Cell)
      used.push_back(instruction.node->symbol.index);
  return used;
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
    onTile[i] = isSymbol && (kind == Symbol::TileFirst || kind == Symbol::TileLast || kind == Symbol::Cell ||
                             kind == Symbol::ListedCell);
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

/// Positions of a cell whose number, not multiplied by its span, is part of the expression; 1 if there is none.
static int64_t spanInside(const IntExpr &expr, const std::function<int64_t(unsigned)> &spanOf) {
  const IntExpr::Node *node = expr.get();
  if (!node || node->op == IntExpr::Constant || node->op == IntExpr::Mul)
    return 1;
  if (node->op == IntExpr::Symbolic)
    return node->symbol.kind == Symbol::Cell ? spanOf(node->symbol.index) : 1;
  int64_t span = 1;
  for (const IntExpr &operand : node->operands)
    span = std::max(span, spanInside(operand, spanOf));
  return span;
}

void ExprProgram::appendDivisors(const std::vector<int64_t> &slots, const std::function<int64_t(unsigned)> &spanOf,
                                 std::vector<int64_t> &divisors) const {
  for (const Instruction &instruction : instructions) {
    if (instruction.node->op != IntExpr::FloorDiv && instruction.node->op != IntExpr::Mod)
      continue;
    const int64_t span = spanInside(instruction.node->operands[0], spanOf), divisor = slots[instruction.operands[1]];
    if (divisor > 0 && divisor <= 2 * kFarthest / span)
      divisors.push_back(divisor * span);
  }
}

WideInt seriesSum(const SweepNumber &start, int64_t steps, int64_t turns) {
  return WideInt(start.value) * steps * turns + WideInt(start.slope) * turns * steps * (steps - 1) / 2 +
         WideInt(start.turn) * steps * turns * (turns - 1) / 2;
}

SweepNumber SweepDomain::mul(Number a, Number b) {
  if (!a.isConstant() && !b.isConstant())
    stayHere();
  auto change = [&](int64_t ofA, int64_t ofB) { return ofA * b.value + ofB * a.value; };
  return {a.value * b.value, change(a.slope, b.slope), change(a.turn, b.turn), change(a.cell, b.cell),
          change(a.cellTurn, b.cellTurn)};
}

void SweepDomain::keep(Number margin) {
  int64_t least = margin.value;
  auto limit = [&](int64_t &reach, int64_t change) {
    if (change < 0) {
      reach = std::min(reach, least / -change);
      least += change * reach;
    }
  };
  limit(turns, margin.turn);
  limit(horizon, margin.slope);
  limit(cellTurns, margin.cellTurn);
  limit(cells, margin.cell);
}

SweepNumber SweepDomain::limitToFloor(Number a, int64_t divisor) {
  int64_t remainder = a.value - floorDivide(a.value, divisor) * divisor;
  int64_t above = divisor - 1 - remainder, below = remainder; // how far the value may move before its floor changes
  auto limit = [&](int64_t &reach, int64_t &change, int64_t steps, int64_t slope) { // room is left for so many steps
    if (change % divisor == 0)
      return;
    int64_t &room = change > 0 ? above : below;
    slope = slope % divisor == 0 ? 0 : std::abs(slope);
    const int64_t ofSteps = slope == 0 ? 0 : steps < room / 2 / slope ? steps * slope : room / 2;
    reach = std::min(reach, (room - ofSteps) / std::abs(change));
    room -= reach * std::abs(change);
    change = 0;
  };
  limit(turns, a.turn, horizon, a.slope);
  limit(horizon, a.slope, 0, 0);
  limit(cellTurns, a.cellTurn, cells, a.cell);
  limit(cells, a.cell, 0, 0);
  return {0, a.slope / divisor, a.turn / divisor, a.cell / divisor, a.cellTurn / divisor};
}

SweepNumber SweepDomain::floorDiv(Number a, Number b) {
  int64_t quotient = floorDivide(a.value, b.value);
  if (!b.isConstant()) {
    stayHere();
    return {quotient, 0, 0};
  }
  Number change = limitToFloor(a, b.value);
  change.value = quotient;
  return change;
}

SweepNumber SweepDomain::mod(Number a, Number b) {
  int64_t remainder = a.value - floorDivide(a.value, b.value) * b.value;
  if (!b.isConstant()) {
    stayHere();
    return {remainder, 0, 0};
  }
  limitToFloor(a, b.value);
  auto kept = [&](int64_t change) { return change % b.value == 0 ? 0 : change; };
  return {remainder, kept(a.slope), kept(a.turn), kept(a.cell), kept(a.cellTurn)};
}

bool SweepDomain::less(Number a, Number b) {
  Number difference = sub(b, a), one = constant(1), zero = constant(0);
  bool result = difference.value > 0;
  keep(result ? sub(difference, one) : sub(zero, difference));
  return result;
}

bool SweepDomain::equal(Number a, Number b) {
  Number difference = sub(b, a), one = constant(1), zero = constant(0);
  if (difference.value != 0) {
    keep(difference.value > 0 ? sub(difference, one) : sub(sub(zero, difference), one));
    return false;
  }
  fixed(difference);
  return true;
}

int64_t SweepDomain::fixed(Number a) {
  if (a.slope != 0)
    horizon = 0;
  if (a.turn != 0)
    turns = 0;
  if (a.cell != 0)
    cells = 0;
  if (a.cellTurn != 0)
    cellTurns = 0;
  return a.value;
}

SweepNumber SweepDomain::entry(unsigned argument, Number index) {
  return constant(entryOf(tensors, argument, fixed(index)));
}

SweepNumber SweepDomain::search(unsigned argument, Number value, Number count) {
  const int64_t entries = fixed(count), found = searchIn(tensors, argument, value.value, entries);
  const int64_t here = entryOf(tensors, argument, found), next = entryOf(tensors, argument, found + 1);
  if (value.value < here) // before all entries
    keep(sub(constant(here - 1), value));
  else if (found + 1 >= entries)
    keep(sub(value, constant(here)));
  else if (value.value < next)
    keep(sub(constant(next - 1), value)), keep(sub(value, constant(here)));
  else
    stayHere(); // entries that do not ascend
  return constant(found);
}

} // namespace heddle::attn
