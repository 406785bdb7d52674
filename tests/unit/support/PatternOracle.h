//===- PatternOracle.h - the definition of a pattern, pair by pair --------===//
// Decides kept pairs by walking the pattern's ops and evaluating each op's definition on 64-bit integers. Shares no
// code with the analysis or with buildPredicate: a disagreement is a bug in one of the three.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_TESTS_PATTERNORACLE_H
#define HEDDLE_TESTS_PATTERNORACLE_H

#include "dialect/IR/Attn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <map>
#include <stdexcept>

namespace heddle::oracle {

struct Problem {
  int64_t heads = 1, seqlenQ = 0, seqlenK = 0, qOrigin = 0, kOrigin = 0;
  std::vector<int64_t> parameters;
};

class PatternOracle {
public:
  PatternOracle(attn::PatternOp pattern, Problem problem) : pattern(pattern), problem(std::move(problem)) {}

  unsigned branchCount() { return isUnion() ? 1 : softmax().getBranches().size(); }

  /// Row i, key j (indices, not positions).
  bool keeps(unsigned branch, int64_t head, int64_t i, int64_t j) {
    Local at{problem.qOrigin + i, problem.kOrigin + j, problem.qOrigin + problem.seqlenQ,
             problem.kOrigin + problem.seqlenK, head, 0};
    if (!isUnion())
      return evaluate(softmax().getBranches()[branch], at);
    for (mlir::Value mask : softmax().getBranches())
      if (evaluate(mask, at))
        return true;
    return false;
  }

private:
  struct Local {
    int64_t q, k, extentQ, extentK, head, group;
  };

  attn::SoftmaxOp softmax() { return pattern.getSoftmax(); }
  bool isUnion() { return softmax().getCombine() == attn::Combine::set_union; }

  static int64_t floorOf(int64_t a, int64_t b) {
    int64_t quotient = a / b;
    return a % b < 0 ? quotient - 1 : quotient;
  }
  static int64_t remainder(int64_t a, int64_t b) { return a - floorOf(a, b) * b; }

  int64_t size(mlir::OperandRange dynamic, llvm::ArrayRef<int64_t> sizes, unsigned index) {
    if (!mlir::ShapedType::isDynamic(sizes[index]))
      return sizes[index];
    unsigned operand = 0;
    for (unsigned i = 0; i < index; ++i)
      operand += mlir::ShapedType::isDynamic(sizes[i]);
    return problem.parameters.at(llvm::cast<mlir::BlockArgument>(dynamic[operand]).getArgNumber());
  }

  template <class Op> int64_t offset(Op op, const Local &at) {
    int64_t rate = op.getRate();
    if (op.getAt())
      return *op.getAt();
    switch (*op.getRule()) {
    case attn::OffsetRule::modulo: return at.head % rate;
    case attn::OffsetRule::block: return at.head / ((problem.heads + rate - 1) / rate);
    case attn::OffsetRule::group: return at.group % rate;
    case attn::OffsetRule::every: return remainder(at.q, rate);
    }
    throw std::logic_error("offset rule");
  }

  int64_t groupOf(int64_t head, int64_t groups) {
    int64_t first = 0;
    for (int64_t group = 0; group < groups; ++group) {
      int64_t share = problem.heads / groups + (group < problem.heads % groups);
      if (head < first + share)
        return group;
      first += share;
    }
    throw std::logic_error("head without a group");
  }

  bool evaluatePredicate(attn::PredicateOp op, const Local &at) {
    llvm::DenseMap<mlir::Value, int64_t> values;
    mlir::Block &block = op.getBody().front();
    int64_t inputs[] = {0, at.head, at.q, at.k};
    for (auto [argument, input] : llvm::zip(block.getArguments(), inputs))
      values[argument] = input;
    for (mlir::Operation &inner : block) {
      if (auto constant = llvm::dyn_cast<mlir::arith::ConstantOp>(inner))
        values[constant] = llvm::cast<mlir::IntegerAttr>(constant.getValue()).getInt();
      else if (auto compare = llvm::dyn_cast<mlir::arith::CmpIOp>(inner))
        values[compare] = compareValues(compare.getPredicate(), values[compare.getLhs()], values[compare.getRhs()]);
      else if (auto rem = llvm::dyn_cast<mlir::arith::RemSIOp>(inner))
        values[rem] = values[rem.getLhs()] % values[rem.getRhs()];
      else if (auto sub = llvm::dyn_cast<mlir::arith::SubIOp>(inner))
        values[sub] = values[sub.getLhs()] - values[sub.getRhs()];
      else if (auto add = llvm::dyn_cast<mlir::arith::AddIOp>(inner))
        values[add] = values[add.getLhs()] + values[add.getRhs()];
      else if (auto both = llvm::dyn_cast<mlir::arith::AndIOp>(inner))
        values[both] = values[both.getLhs()] & values[both.getRhs()];
      else if (auto yield = llvm::dyn_cast<attn::YieldOp>(inner))
        return values[yield.getValue()];
      else
        throw std::logic_error("arith op without a meaning here");
    }
    throw std::logic_error("predicate without a yield");
  }

  static bool compareValues(mlir::arith::CmpIPredicate predicate, int64_t a, int64_t b) {
    using P = mlir::arith::CmpIPredicate;
    switch (predicate) {
    case P::eq: return a == b;
    case P::ne: return a != b;
    case P::slt: return a < b;
    case P::sle: return a <= b;
    case P::sgt: return a > b;
    case P::sge: return a >= b;
    default: throw std::logic_error("comparison without a meaning here");
    }
  }

  bool evaluate(mlir::Value mask, const Local &at) {
    mlir::Operation *op = mask.getDefiningOp();
    if (llvm::isa<attn::FullOp>(op))
      return true;
    if (llvm::isa<attn::CausalOp>(op))
      return at.k <= at.q;
    if (auto window = llvm::dyn_cast<attn::WindowOp>(op))
      return at.q - size(window.getDynamicSizes(), window.getSizes(), 0) <= at.k &&
             at.k <= at.q + size(window.getDynamicSizes(), window.getSizes(), 1);
    if (auto rows = llvm::dyn_cast<attn::RowsOp>(op))
      return at.q >= 0 && (at.q < size(rows.getDynamicSizes(), rows.getSizes(), 0) ||
             at.q >= at.extentQ - size(rows.getDynamicSizes(), rows.getSizes(), 1));
    if (auto cols = llvm::dyn_cast<attn::ColsOp>(op))
      return at.k >= 0 && (at.k < size(cols.getDynamicSizes(), cols.getSizes(), 0) ||
             at.k >= at.extentK - size(cols.getDynamicSizes(), cols.getSizes(), 1));
    if (auto stride = llvm::dyn_cast<attn::StrideOp>(op))
      return remainder(stride.getAxis() == attn::Axis::q ? at.q : at.k, stride.getRate()) == offset(stride, at);
    if (auto predicate = llvm::dyn_cast<attn::PredicateOp>(op))
      return evaluatePredicate(predicate, at);
    return evaluateComposite(op, at);
  }

  bool evaluateComposite(mlir::Operation *op, const Local &at) {
    if (llvm::isa<attn::AndOp>(op))
      return llvm::all_of(op->getOperands(), [&](mlir::Value mask) { return evaluate(mask, at); });
    if (llvm::isa<attn::OrOp>(op))
      return llvm::any_of(op->getOperands(), [&](mlir::Value mask) { return evaluate(mask, at); });
    if (llvm::isa<attn::NotOp>(op))
      return !evaluate(op->getOperand(0), at);
    if (llvm::isa<attn::HeadsOp>(op)) {
      Local inner = at;
      inner.group = groupOf(at.head, op->getNumOperands());
      return evaluate(op->getOperand(inner.group), inner);
    }
    if (auto segment = llvm::dyn_cast<attn::SegmentOp>(op)) {
      int64_t length = size(segment.getDynamicSizes(), segment.getSizes(), 0);
      int64_t index = floorOf(at.q, length);
      if (index != floorOf(at.k, length))
        return false;
      Local inner = at;
      inner.q -= index * length;
      inner.k -= index * length;
      inner.extentQ = std::min(length, at.extentQ - index * length);
      inner.extentK = std::min(length, at.extentK - index * length);
      return evaluate(segment.getOperand(), inner);
    }
    auto dilate = llvm::cast<attn::DilateOp>(op);
    int64_t rate = dilate.getRate(), kept = offset(dilate, at);
    if (remainder(at.q, rate) != kept || remainder(at.k, rate) != kept)
      return false;
    auto thinned = [&](int64_t extent) { return floorOf(extent - kept + rate - 1, rate); };
    return evaluate(dilate.getOperand(),
                    {floorOf(at.q - kept, rate), floorOf(at.k - kept, rate), thinned(at.extentQ), thinned(at.extentK),
                     at.head, at.group});
  }

  attn::PatternOp pattern;
  Problem problem;
};

} // namespace heddle::oracle

#endif
