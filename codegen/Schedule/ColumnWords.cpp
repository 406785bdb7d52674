// Walks the predicate once. A value is the same for all columns (and is copied), a line over the columns, a quotient
// of a line, or a condition, which becomes a word.
#include "codegen/Schedule/RangeFunction.h"
#include "codegen/Schedule/FunctionBuilder.h"
#include "codegen/Schedule/WordBuilder.h"
#include "dialect/IR/ListCalls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
namespace arith = mlir::arith;
using Predicate = mlir::arith::CmpIPredicate;

namespace heddle {
namespace {

constexpr int64_t kMaxSlope = 1 << 12;

std::optional<int64_t> constantOf(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

/// Reads the predicate op by op; `false` and null say that there is no word.
class ColumnWords {
public:
  ColumnWords(OpBuilder &builder, func::FuncOp predicate, ValueRange arguments, ArrayRef<int64_t> lowestParameters)
      : builder(builder), words(builder, predicate.getLoc()), predicate(predicate), lowest(lowestParameters) {
    uniform.map(predicate.getArguments().drop_back(), arguments);
    lines[predicate.getArguments().back()] = {1, words.constant(0), {}};
  }

  Value build() {
    Block &body = predicate.getBody().front();
    for (Operation &op : body.without_terminator())
      if (op.getNumResults() != 1 || op.getNumRegions() != 0 || !translate(op))
        return {};
    return words.bits(wordOf(body.getTerminator()->getOperand(0)));
  }

private:
  bool isUniform(Value value) const { return uniform.contains(value); }

  bool translate(Operation &op) {
    if (llvm::all_of(op.getOperands(), [&](Value operand) { return isUniform(operand); })) {
      builder.clone(op, uniform);
      return true;
    }
    Value result = op.getResult(0);
    if (result.getType().isInteger(1))
      return translateCondition(op, result);
    if (!result.getType().isInteger(32))
      return false;
    return llvm::TypeSwitch<Operation *, bool>(&op)
        .Case<arith::AddIOp, arith::SubIOp>([&](auto sum) {
          const bool isDifference = isa<arith::SubIOp>(op);
          if (isDifference && setStepsBetween(result, op.getOperand(0), op.getOperand(1)))
            return true;
          return setSum(result, lineOf(op.getOperand(0)), lineOf(op.getOperand(1)), isDifference);
        })
        .Case<arith::MulIOp>([&](auto product) { return setProduct(result, product.getLhs(), product.getRhs()); })
        .Case<arith::FloorDivSIOp>([&](auto quotient) {
          return setQuotient(result, quotient.getLhs(), quotient.getRhs(), constantOf(quotient.getRhs()));
        })
        .Case<arith::ShRSIOp>([&](auto shift) {
          auto places = constantOf(shift.getRhs());
          if (!places || *places < 0 || *places > 30)
            return false;
          return setQuotient(result, shift.getLhs(), {}, int64_t(1) << *places);
        })
        .Case<arith::AndIOp>([&](auto mask) { return setRemainder(result, mask.getLhs(), mask.getRhs()); })
        .Default([](Operation *) { return false; });
  }

  /// A value without a divisor; null if there is none. The same value for all columns has slope 0.
  std::optional<Line> lineOf(Value value) const {
    if (isUniform(value))
      return Line{0, uniform.lookup(value), {}};
    auto found = lines.find(value);
    if (found == lines.end() || found->second.divisor)
      return std::nullopt;
    return found->second;
  }

  bool setLine(Value result, int64_t slope, Value base) {
    if (slope == 0)
      uniform.map(result, base);
    else
      lines[result] = {slope, base, {}};
    return std::abs(slope) <= kMaxSlope;
  }

  bool setSum(Value result, std::optional<Line> a, std::optional<Line> b, bool isDifference) {
    if (!a || !b)
      return false;
    if (isDifference)
      return setLine(result, a->slope - b->slope, words.sub(a->base, b->base));
    return setLine(result, a->slope + b->slope, words.add(a->base, b->base));
  }

  /// floor(x / divisor) - floor(y / divisor), the second one the same for all columns, is floor((x - y') / divisor), y'
  /// a multiple of the divisor; that does not overflow.
  bool setStepsBetween(Value result, Value a, Value b) {
    auto found = lines.find(a);
    if (found == lines.end() || !found->second.divisor || !isUniform(b) || !haveOneDivisor(a, b))
      return false;
    const Line &line = found->second;
    Value origin = words.mul(uniform.lookup(b), line.divisor);
    Line rest{line.slope, words.sub(line.base, origin), line.divisor};
    lines[result] = rest;
    return true;
  }

  bool setProduct(Value result, Value a, Value b) {
    if (constantOf(a))
      std::swap(a, b);
    auto factor = constantOf(b);
    auto line = lineOf(a);
    if (!factor || !line || std::abs(*factor) > kMaxSlope)
      return false;
    return setLine(result, line->slope * *factor, words.mul(line->base, words.constant(*factor)));
  }

  /// `divisor` is null if it is the constant `number`.
  bool setQuotient(Value result, Value dividend, Value divisor, std::optional<int64_t> number) {
    auto line = lineOf(dividend);
    if (!line)
      return false;
    if (number && *number > 0 && line->slope % *number == 0)
      return setLine(result, line->slope / *number, floorDivision(line->base, *number));
    if (number ? *number <= 0 : !isUniform(divisor) || lowestOf(divisor) < 0) // none divides by 0
      return false;
    lines[result] = {line->slope, line->base, number ? words.constant(*number) : uniform.lookup(divisor)};
    return true;
  }

  Value floorDivision(Value value, int64_t number) {
    return attn::buildFloorDiv(builder, predicate.getLoc(), value, words.constant(number));
  }

  /// value and (2^n - 1), where all columns agree in the lowest n bits.
  bool setRemainder(Value result, Value value, Value mask) {
    if (constantOf(value))
      std::swap(value, mask);
    auto bits = constantOf(mask);
    auto line = lineOf(value);
    if (!bits || !line || *bits < 0 || !llvm::isPowerOf2_64(*bits + 1) || line->slope % (*bits + 1) != 0)
      return false;
    Value rest = arith::AndIOp::create(builder, predicate.getLoc(), line->base, words.constant(*bits));
    uniform.map(result, rest);
    return true;
  }

  /// A value that is known not to be less; of the predicate, the same for all columns.
  int64_t lowestOf(Value value) const {
    constexpr int64_t unknown = std::numeric_limits<int32_t>::min();
    if (auto number = constantOf(value))
      return *number;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      unsigned index = argument.getArgNumber() - FunctionBuilder::FirstParameter;
      return index < lowest.size() ? lowest[index] : unknown;
    }
    if (auto most = value.getDefiningOp<arith::MaxSIOp>())
      return std::max(lowestOf(most.getLhs()), lowestOf(most.getRhs()));
    if (auto least = value.getDefiningOp<arith::MinSIOp>())
      return std::min(lowestOf(least.getLhs()), lowestOf(least.getRhs()));
    return unknown;
  }

  bool isCondition(Value value) const { return isUniform(value) || conditions.count(value); }

  Word wordOf(Value condition) const {
    if (!isUniform(condition))
      return conditions.lookup(condition);
    return {{}, {}, {}, uniform.lookup(condition)};
  }

  bool translateCondition(Operation &op, Value result) {
    if (auto comparison = dyn_cast<arith::CmpIOp>(op))
      if (!comparison.getLhs().getType().isInteger(1))
        return compare(comparison);
    if (auto call = dyn_cast<func::CallOp>(op))
      return findListed(call, result);
    if (!llvm::all_of(op.getOperands(), [&](Value operand) { return isCondition(operand); }))
      return false;
    auto operand = [&](unsigned index) { return wordOf(op.getOperand(index)); };
    auto set = [&](const Word &word) { return conditions[result] = word, true; };
    return llvm::TypeSwitch<Operation *, bool>(&op)
        .Case<arith::AndIOp>([&](auto) { return set(words.both(operand(0), operand(1))); })
        .Case<arith::OrIOp>([&](auto) { return set(words.either(operand(0), operand(1))); })
        .Case<arith::XOrIOp>([&](auto) { return set(words.differ(operand(0), operand(1))); })
        .Case<arith::SelectOp>([&](arith::SelectOp select) {
          if (isUniform(select.getCondition()))
            return set(words.pick(uniform.lookup(select.getCondition()), operand(1), operand(2)));
          const Word chosen = words.both(operand(0), operand(1)); // in this order, whatever compiles this
          return set(words.either(chosen, words.both(words.negation(operand(0)), operand(2))));
        })
        .Case<arith::CmpIOp>([&](arith::CmpIOp comparison) {
          bool isEqual = comparison.getPredicate() == Predicate::eq;
          if (!isEqual && comparison.getPredicate() != Predicate::ne)
            return false;
          if (auto right = constantOf(comparison.getRhs()))
            return set((*right != 0) == isEqual ? operand(0) : words.negation(operand(0)));
          Word differing = words.differ(operand(0), operand(1));
          return set(isEqual ? words.negation(differing) : differing);
        })
        .Default([](Operation *) { return false; });
  }

  bool compare(arith::CmpIOp op) {
    Value left = op.getLhs(), right = op.getRhs();
    Predicate relation = op.getPredicate();
    if (isUniform(left)) {
      std::swap(left, right);
      relation = swapped(relation);
    }
    auto found = lines.find(left);
    if (found == lines.end() || !isUniform(right))
      return false;
    Value bound = uniform.lookup(right);
    auto word = found->second.divisor  ? compareQuotient(op, found->second, relation, bound, lowestOf(right))
                : isUnsigned(relation) ? compareUnsigned(found->second, relation, bound, lowestOf(right))
                                       : compareLine(found->second, relation, bound);
    if (word)
      conditions[op.getResult()] = *word;
    return word.has_value();
  }

  static Predicate swapped(Predicate relation) {
    constexpr Predicate other[] = {Predicate::eq,  Predicate::ne,  Predicate::sgt, Predicate::sge, Predicate::slt,
                                   Predicate::sle, Predicate::ugt, Predicate::uge, Predicate::ult, Predicate::ule};
    return other[size_t(relation)];
  }

  static bool isUnsigned(Predicate relation) { return relation >= Predicate::ult; }

  Word within(const Line &line, Value low, Value high, bool includesHigh) {
    const Word isBelow = words.less(line, high, includesHigh);
    return words.both(isBelow, words.negation(words.less(line, low, false)));
  }

  std::optional<Word> compareLine(const Line &line, Predicate relation, Value bound) {
    switch (relation) {
    case Predicate::slt:
      return words.less(line, bound, false);
    case Predicate::sle:
      return words.less(line, bound, true);
    case Predicate::sgt:
      return words.negation(words.less(line, bound, true));
    case Predicate::sge:
      return words.negation(words.less(line, bound, false));
    case Predicate::eq:
      return within(line, bound, bound, true);
    case Predicate::ne:
      return words.negation(within(line, bound, bound, true));
    default:
      return std::nullopt;
    }
  }

  /// 0 <= line < bound, for a bound that is known not to be negative.
  std::optional<Word> compareUnsigned(const Line &line, Predicate relation, Value bound, int64_t lowestBound) {
    if (lowestBound < 0)
      return std::nullopt;
    bool includesBound = relation == Predicate::ule || relation == Predicate::ugt;
    Word word = within(line, words.constant(0), bound, includesBound);
    return relation == Predicate::ult || relation == Predicate::ule ? word : words.negation(word);
  }

  static bool haveOneDivisor(Value a, Value b) {
    Operation *first = a.getDefiningOp(), *second = b.getDefiningOp();
    if (!first || !second || first->getName() != second->getName() || !isa<arith::FloorDivSIOp, arith::ShRSIOp>(first))
      return false;
    auto number = constantOf(first->getOperand(1));
    return first->getOperand(1) == second->getOperand(1) || (number && number == constantOf(second->getOperand(1)));
  }

  /// floor(x / divisor) = bound is 0 <= x - bound * divisor < divisor. The product does not overflow if the bound is
  /// a quotient by the same number; for others it is cut, which takes a number.
  std::optional<Word> compareQuotient(arith::CmpIOp op, const Line &line, Predicate relation, Value bound,
                                      int64_t lowestBound) {
    const bool isEquality = relation == Predicate::eq || relation == Predicate::ne;
    if (isEquality && haveOneDivisor(op.getLhs(), op.getRhs())) {
      Word word = equalTo(line, bound);
      return relation == Predicate::eq ? word : words.negation(word);
    }
    auto divisor = constantOf(line.divisor);
    if (!divisor || (isUnsigned(relation) && lowestBound < 0))
      return std::nullopt;
    const Line dividend{line.slope, line.base, {}};
    auto below = [&](bool includesBound) {
      Value end = endOfQuotient(bound, *divisor, includesBound);
      return words.less(dividend, end, false);
    };
    switch (relation) {
    case Predicate::slt:
      return below(false);
    case Predicate::sle:
      return below(true);
    case Predicate::sgt:
      return words.negation(below(true));
    case Predicate::sge:
      return words.negation(below(false));
    default:
      break;
    }
    Word before = isEquality ? below(false) : words.less(dividend, words.constant(0), false);
    Word end = below(relation != Predicate::ult && relation != Predicate::uge);
    Word between = words.both(end, words.negation(before));
    const bool isInside = relation == Predicate::eq || relation == Predicate::ult || relation == Predicate::ule;
    return isInside ? between : words.negation(between);
  }

  /// The least i32 whose quotient by the divisor, which is more than 1, is not below `bound`, or is above it; the
  /// largest i32 if there is none.
  Value endOfQuotient(Value bound, int64_t divisor, bool includesBound) {
    constexpr int64_t lowest = std::numeric_limits<int32_t>::min(), highest = std::numeric_limits<int32_t>::max();
    // the product fits
    const int64_t step = includesBound, least = lowest / divisor - step, most = highest / divisor - step;
    Location loc = predicate.getLoc();
    Value next = includesBound ? words.add(bound, words.constant(1)) : bound;
    Value end = words.mul(next, words.constant(divisor));
    Value isAbove = arith::CmpIOp::create(builder, loc, Predicate::sgt, bound, words.constant(most));
    Value upper = arith::SelectOp::create(builder, loc, isAbove, words.constant(highest), end);
    Value isUnder = arith::CmpIOp::create(builder, loc, Predicate::slt, bound, words.constant(least));
    return arith::SelectOp::create(builder, loc, isUnder, words.constant(lowest), upper);
  }

  /// The columns in the cells of a list, one entry of the list after the other.
  bool findListed(func::CallOp call, Value result) {
    auto has = predicate->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>(call.getCallee());
    auto found = lines.find(call.getOperands().back());
    ValueRange others = call.getOperands().drop_back();
    if (!has->hasAttr(attn::kListName) || found == lines.end() ||
        !llvm::all_of(others, [&](Value operand) { return isUniform(operand); }))
      return false;
    SmallVector<Value> operands;
    for (Value operand : others)
      operands.push_back(uniform.lookup(operand));
    Value zero = words.constant(0), one = words.constant(1), length = attn::callLength(builder, has, operands);
    auto loop = mlir::scf::ForOp::create(builder, predicate.getLoc(), zero, length, one, zero);
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(loop.getBody());
      operands.push_back(loop.getInductionVar());
      Value cell = attn::callEntry(builder, has, operands);
      Value inCell = words.bits(equalTo(found->second, cell));
      Value joined = arith::OrIOp::create(builder, predicate.getLoc(), loop.getRegionIterArg(0), inCell);
      mlir::scf::YieldOp::create(builder, predicate.getLoc(), joined);
    }
    conditions[result] = {{}, {}, loop.getResult(0), {}};
    return true;
  }

  /// line = cell, or floor(line / divisor) = cell. Cells times the divisor do not overflow.
  Word equalTo(const Line &line, Value cell) {
    if (!line.divisor)
      return within(line, cell, cell, true);
    Line rest{line.slope, words.sub(line.base, words.mul(cell, line.divisor)), {}};
    return within(rest, words.constant(0), line.divisor, false);
  }

  OpBuilder &builder;
  WordBuilder words;
  func::FuncOp predicate;
  ArrayRef<int64_t> lowest;
  IRMapping uniform;
  DenseMap<Value, Line> lines;
  DenseMap<Value, Word> conditions;
};

} // namespace

Value buildColumnWord(OpBuilder &builder, func::FuncOp predicate, ValueRange arguments,
                      ArrayRef<int64_t> lowestParameters) {
  Block *block = builder.getInsertionBlock();
  Operation *last = block->empty() ? nullptr : &block->back();
  if (Value word = ColumnWords(builder, predicate, arguments, lowestParameters).build())
    return word;
  while (!block->empty() && &block->back() != last)
    block->back().erase();
  return {};
}

} // namespace heddle
