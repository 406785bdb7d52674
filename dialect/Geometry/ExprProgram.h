// Owns evaluation: expressions are flattened once into a list of instructions without repetition and run in any
// domain of numbers. The domains are plain integers (one tile) and sweeps (a whole run of tiles at once).
#pragma once

#include "dialect/Geometry/IntExpr.h"
#include "dialect/Geometry/ProblemSizes.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <unordered_map>

namespace heddle::attn {

class ExprProgram {
public:
  /// Slot that holds the value of `expr` after `run`. The absent expression has no slot.
  unsigned add(const IntExpr &expr);
  /// True if an added expression uses this kind of symbol.
  bool uses(Symbol::Kind kind) const;
  /// The cells that added expressions use, each as often as it occurs.
  std::vector<unsigned> cells() const;

  /// Evaluates every instruction into `slots`. `valueOf(Symbol)` yields the domain's number.
  template <class Domain, class SymbolValues>
  void run(Domain &domain, SymbolValues valueOf, std::vector<typename Domain::Number> &slots) const;

  /// Appends the values, in `slots` of a run, of everything that depends on the head and on no tile or cell: heads
  /// with equal values evaluate alike for every tile.
  void headValues(const std::vector<int64_t> &slots, std::vector<int64_t> &values) const;

  /// Every divisor, in positions, given the values of a run: what divides the number of a cell counts by the cell's
  /// span, `spanOf(index of the cell)`. Those beyond all positions are left out.
  void appendDivisors(const std::vector<int64_t> &slots, const std::function<int64_t(unsigned)> &spanOf,
                      std::vector<int64_t> &divisors) const;

private:
  struct Instruction {
    const IntExpr::Node *node;
    unsigned operands[3];
  };
  unsigned addNode(const IntExpr &expr);
  template <class Domain> static typename Domain::Number cut(Domain &domain, typename Domain::Number a);
  template <class Visit> static void forEachOperand(const Instruction &instruction, Visit visit) {
    for (unsigned i = 0; i < 3; ++i)
      if (instruction.node->operands[i])
        visit(instruction.operands[i]);
  }

  std::vector<Instruction> instructions;
  std::unordered_map<const IntExpr::Node *, unsigned> slotOf; ///< the instruction that evaluates a node
  std::vector<unsigned> outputs;                              ///< what `add` returned
  std::vector<IntExpr> roots;                                 ///< keep the nodes alive
};

int64_t floorDivide(int64_t a, int64_t b);

/// One value.
struct PlainDomain {
  using Number = int64_t;
  const TensorData *tensors = nullptr;

  Number constant(int64_t value) { return value; }
  Number add(Number a, Number b) { return a + b; }
  Number sub(Number a, Number b) { return a - b; }
  Number mul(Number a, Number b) { return a * b; }
  Number floorDiv(Number a, Number b) { return floorDivide(a, b); }
  Number mod(Number a, Number b) { return a - floorDivide(a, b) * b; }
  bool less(Number a, Number b) { return a < b; }
  bool equal(Number a, Number b) { return a == b; }
  int64_t fixed(Number a) { return a; }
  Number entry(unsigned argument, Number index) { return entryOf(tensors, argument, index); }
  Number search(unsigned argument, Number value, Number count) { return searchIn(tensors, argument, value, count); }
};

/// An affine number over a rectangle of steps and turns (a turn is a whole period of steps), and over one of the cells
/// of a tile: its value at the corner and its changes per step and turn, of tiles and of cells.
struct SweepNumber {
  int64_t value = 0, slope = 0, turn = 0, cell = 0, cellTurn = 0;
  bool isConstant() const { return slope == 0 && turn == 0 && cell == 0 && cellTurn == 0; }
};

/// Over so many steps and turns; what cells change is left out.
WideInt seriesSum(const SweepNumber &start, int64_t steps, int64_t turns);

/// Evaluates at the corner and remembers for how many further steps and turns every comparison, floor and remainder
/// keeps its form, so that a sum over a billion tiles takes as many evaluations as one period has bends. Cells get the
/// room that steps and turns leave.
struct SweepDomain {
  using Number = SweepNumber;
  int64_t horizon = std::numeric_limits<int64_t>::max(); ///< further steps
  int64_t turns = std::numeric_limits<int64_t>::max();   ///< further turns
  const TensorData *tensors = nullptr;
  int64_t cells = 0, cellTurns = 0; ///< further steps and turns of cells

  Number constant(int64_t value) { return {value}; }
  Number add(Number a, Number b) {
    return {a.value + b.value, a.slope + b.slope, a.turn + b.turn, a.cell + b.cell, a.cellTurn + b.cellTurn};
  }
  Number sub(Number a, Number b) {
    return {a.value - b.value, a.slope - b.slope, a.turn - b.turn, a.cell - b.cell, a.cellTurn - b.cellTurn};
  }
  Number mul(Number a, Number b);
  Number floorDiv(Number a, Number b);
  Number mod(Number a, Number b);
  bool less(Number a, Number b);
  bool equal(Number a, Number b);
  /// Keeps to where `a` has its value of now.
  int64_t fixed(Number a);
  Number entry(unsigned argument, Number index);
  /// Keeps to the values between two entries.
  Number search(unsigned argument, Number value, Number count);

private:
  void stayHere() { horizon = turns = cells = cellTurns = 0; }
  /// Keeps to where `margin`, now >= 0, is not negative.
  void keep(Number margin);
  /// Keeps to where floor(a / divisor) changes by whole multiples only; the changes that remain.
  Number limitToFloor(Number a, int64_t divisor);
};

template <class Domain> typename Domain::Number ExprProgram::cut(Domain &domain, typename Domain::Number a) {
  const typename Domain::Number least = domain.constant(-kFarthest - 1), most = domain.constant(kFarthest);
  if (domain.less(a, least))
    return least;
  return domain.less(most, a) ? most : a;
}

template <class Domain, class SymbolValues>
void ExprProgram::run(Domain &domain, SymbolValues valueOf, std::vector<typename Domain::Number> &slots) const {
  slots.resize(instructions.size());
  for (size_t i = 0; i < instructions.size(); ++i) {
    const Instruction &instruction = instructions[i];
    auto operand = [&](unsigned index) { return slots[instruction.operands[index]]; };
    switch (instruction.node->op) {
    case IntExpr::Constant:
      slots[i] = domain.constant(instruction.node->value);
      break;
    case IntExpr::Symbolic:
      slots[i] = valueOf(instruction.node->symbol);
      break;
    case IntExpr::Add:
      slots[i] = domain.add(operand(0), operand(1));
      break;
    case IntExpr::Sub:
      slots[i] = domain.sub(operand(0), operand(1));
      break;
    case IntExpr::Mul:
      slots[i] = domain.mul(operand(0), operand(1));
      break;
    case IntExpr::FloorDiv:
      slots[i] = domain.floorDiv(operand(0), operand(1));
      break;
    case IntExpr::Mod:
      slots[i] = domain.mod(operand(0), operand(1));
      break;
    case IntExpr::Min:
      slots[i] = domain.less(operand(1), operand(0)) ? operand(1) : operand(0);
      break;
    case IntExpr::Max:
      slots[i] = domain.less(operand(0), operand(1)) ? operand(1) : operand(0);
      break;
    case IntExpr::Select:
      slots[i] = domain.equal(operand(0), domain.constant(0)) ? operand(2) : operand(1);
      break;
    case IntExpr::Less:
      slots[i] = domain.constant(domain.less(operand(0), operand(1)));
      break;
    case IntExpr::Equal:
      slots[i] = domain.constant(domain.equal(operand(0), operand(1)));
      break;
    case IntExpr::And:
      slots[i] = domain.mul(operand(0), operand(1));
      break;
    case IntExpr::Cut:
      slots[i] = cut(domain, operand(0));
      break;
    case IntExpr::Entry:
      slots[i] = domain.entry(instruction.node->symbol.index, operand(0));
      break;
    case IntExpr::Search:
      slots[i] = domain.search(instruction.node->symbol.index, operand(0), operand(1));
      break;
    }
  }
}

} // namespace heddle::attn
