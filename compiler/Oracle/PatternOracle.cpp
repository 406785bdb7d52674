// One case per op, in the words of the op's description (dialect/IR/MaskOps.td) and in nobody else's.
#include "compiler/Oracle/PatternOracle.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <stdexcept>

namespace heddle::oracle {

static int64_t floorOf(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return a % b < 0 ? quotient - 1 : quotient;
}
static int64_t remainder(int64_t a, int64_t b) { return a - floorOf(a, b) * b; }

PatternOracle::PatternOracle(attn::PatternOp pattern, Problem problem) : pattern(pattern), problem(std::move(problem)) {
  const Problem &p = this->problem;
  const std::optional<unsigned> queries = pattern.getWholeArgument(attn::WholeAxis::Queries),
                                keys = pattern.getWholeArgument(attn::WholeAxis::Keys);
  extentQ = queries ? p.parameters[*queries] : p.qOrigin + p.seqlenQ;
  extentK = keys ? p.parameters[*keys] : p.kOrigin + p.seqlenK;
}

static bool isUnion(attn::SoftmaxOp softmax) { return softmax.getCombine() == attn::Combine::set_union; }

bool PatternOracle::isThreadSafe() const {
  bool hasPredicate = false;
  pattern.walk([&](mlir::Operation *op) { hasPredicate |= llvm::isa<attn::PredicateOp, attn::ScoreMapOp>(op); });
  return !hasPredicate || pattern.getContext()->isMultithreadingEnabled();
}

unsigned PatternOracle::branchCount() const {
  attn::SoftmaxOp softmax = pattern.getSoftmax();
  return isUnion(softmax) ? 1 : softmax.getBranches().size();
}

bool PatternOracle::keeps(unsigned branch, int64_t head, int64_t i, int64_t j, int64_t batch) const {
  Local at{problem.qOrigin + i, problem.kOrigin + j, extentQ, extentK, batch, head, 0};
  attn::SoftmaxOp softmax = pattern.getSoftmax();
  if (!isUnion(softmax))
    return evaluate(softmax.getBranches()[branch], at);
  return llvm::any_of(softmax.getBranches(), [&](mlir::Value mask) { return evaluate(mask, at); });
}

int64_t PatternOracle::size(mlir::OperandRange dynamic, llvm::ArrayRef<int64_t> sizes, unsigned index) const {
  if (!mlir::ShapedType::isDynamic(sizes[index]))
    return sizes[index];
  unsigned operand = 0;
  for (unsigned i = 0; i < index; ++i)
    operand += mlir::ShapedType::isDynamic(sizes[i]);
  return problem.parameters.at(llvm::cast<mlir::BlockArgument>(dynamic[operand]).getArgNumber());
}

template <class Op> int64_t PatternOracle::offset(Op op, const Local &at) const {
  int64_t rate = op.getRate();
  if (op.getAt())
    return *op.getAt();
  switch (*op.getRule()) {
  case attn::OffsetRule::modulo:
    return at.head % rate;
  case attn::OffsetRule::block:
    return at.head / ((problem.heads + rate - 1) / rate);
  case attn::OffsetRule::group:
    return at.group % rate;
  case attn::OffsetRule::every:
    return remainder(at.q, rate);
  }
  throw std::logic_error("offset rule without a meaning");
}

int64_t PatternOracle::groupOf(int64_t head, int64_t groups) const {
  int64_t first = 0;
  for (int64_t group = 0; group < groups; ++group) {
    first += problem.heads / groups + (group < problem.heads % groups);
    if (head < first)
      return group;
  }
  throw std::logic_error("head without a group");
}

bool evaluatePredicate(attn::PredicateOp op, llvm::ArrayRef<int64_t> arguments) {
  llvm::SmallDenseMap<mlir::Value, mlir::Attribute, 16> values;
  mlir::Block &block = op.getBody().front();
  for (auto [argument, value] : llvm::zip_equal(block.getArguments(), arguments))
    values[argument] = mlir::IntegerAttr::get(argument.getType(), value);
  for (mlir::Operation &inner : block) {
    if (auto yield = llvm::dyn_cast<attn::YieldOp>(inner))
      return !llvm::cast<mlir::IntegerAttr>(values.lookup(yield.getValue())).getValue().isZero();
    llvm::SmallVector<mlir::Attribute, 4> operands;
    for (mlir::Value operand : inner.getOperands())
      operands.push_back(values.lookup(operand));
    llvm::SmallVector<mlir::OpFoldResult, 2> results;
    if (mlir::failed(inner.fold(operands, results)) || results.size() != inner.getNumResults())
      throw std::logic_error("'" + inner.getName().getStringRef().str() + "' has no value for these arguments");
    for (auto [result, folded] : llvm::zip_equal(inner.getResults(), results)) {
      mlir::Attribute constant = llvm::dyn_cast_if_present<mlir::Attribute>(folded);
      values[result] = constant ? constant : values.lookup(llvm::cast<mlir::Value>(folded));
      if (!values[result])
        throw std::logic_error("'" + inner.getName().getStringRef().str() + "' did not fold to a value");
    }
  }
  throw std::logic_error("predicate without a yield");
}

bool PatternOracle::evaluate(mlir::Value mask, const Local &at) const {
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
  if (auto box = llvm::dyn_cast<attn::BoxOp>(op)) {
    auto bound = [&](unsigned index) { return size(box.getDynamicSizes(), box.getSizes(), index); };
    return bound(0) <= at.q && at.q < bound(1) && bound(2) <= at.k && at.k < bound(3);
  }
  if (auto prefix = llvm::dyn_cast<attn::PrefixOp>(op))
    return at.k <= at.q || at.k < size(prefix.getDynamicSizes(), prefix.getSizes(), 0);
  if (auto stride = llvm::dyn_cast<attn::StrideOp>(op))
    return remainder(stride.getAxis() == attn::Axis::q ? at.q : at.k, stride.getRate()) == offset(stride, at);
  if (auto random = llvm::dyn_cast<attn::RandomOp>(op))
    return evaluateRandom(random, at);
  if (auto csr = llvm::dyn_cast<attn::CsrOp>(op))
    return evaluateCsr(csr, at);
  if (auto tree = llvm::dyn_cast<attn::TreeOp>(op))
    return evaluateTree(tree, at);
  if (auto predicate = llvm::dyn_cast<attn::PredicateOp>(op))
    return evaluatePredicate(predicate, {at.batch, at.head, at.q, at.k});
  return evaluateComposite(op, at);
}

bool PatternOracle::evaluateComposite(mlir::Operation *op, const Local &at) const {
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
  if (auto segment = llvm::dyn_cast<attn::SegmentOp>(op))
    return evaluateSegment(segment, at);
  if (auto dilate = llvm::dyn_cast<attn::DilateOp>(op))
    return evaluateDilate(dilate, at);
  if (auto documents = llvm::dyn_cast<attn::DocumentsOp>(op))
    return evaluateDocuments(documents, at);
  if (auto blocks = llvm::dyn_cast<attn::BlocksOp>(op)) {
    int64_t length = size(blocks.getDynamicSizes(), blocks.getSizes(), 0);
    Local inner = at;
    inner.q = floorOf(at.q, length);
    inner.k = floorOf(at.k, length);
    inner.extentQ = floorOf(at.extentQ + length - 1, length);
    inner.extentK = floorOf(at.extentK + length - 1, length);
    return evaluate(blocks.getOperand(), inner);
  }
  throw std::logic_error("op '" + op->getName().getStringRef().str() + "' has no definition in the oracle");
}

bool PatternOracle::evaluateSegment(attn::SegmentOp op, const Local &at) const {
  int64_t length = size(op.getDynamicSizes(), op.getSizes(), 0);
  int64_t index = floorOf(at.q, length);
  if (index != floorOf(at.k, length))
    return false;
  Local inner = at;
  inner.q -= index * length;
  inner.k -= index * length;
  inner.extentQ = std::min(length, at.extentQ - index * length);
  inner.extentK = std::min(length, at.extentK - index * length);
  return evaluate(op.getOperand(), inner);
}

const OperandTensor &PatternOracle::tensorOf(mlir::Value argument) const {
  const OperandTensor &tensor = problem.operands.at(llvm::cast<mlir::BlockArgument>(argument).getArgNumber());
  if (!tensor)
    throw std::logic_error("a mask without its tensor");
  return tensor;
}

bool PatternOracle::evaluateCsr(attn::CsrOp op, const Local &at) const {
  const OperandTensor &offsets = tensorOf(op.getOffsets()), &indices = tensorOf(op.getIndices());
  if (at.q < 0 || at.q >= offsets.shape[2] - 1)
    return false;
  const int64_t batch = offsets.shape[0] > 1 ? at.batch : 0, head = offsets.shape[1] > 1 ? at.head : 0;
  const int64_t place = (batch * offsets.shape[1] + head) * offsets.shape[2] + at.q;
  for (int64_t i = offsets.integer(place); i < offsets.integer(place + 1); ++i)
    if (indices.integer(i) == at.k)
      return true;
  return false;
}

bool PatternOracle::evaluateTree(attn::TreeOp op, const Local &at) const {
  const OperandTensor &ancestors = tensorOf(op.getAncestors());
  const bool isBatch = ancestors.shape.size() == 2;
  const int64_t n = ancestors.shape.back(), tree = isBatch && ancestors.shape[0] > 1 ? at.batch : 0;
  int64_t drafts = n;
  if (op.getDrafts()) {
    const OperandTensor &numbers = tensorOf(op.getDrafts());
    drafts = numbers.integer(numbers.elements() > 1 ? at.batch : 0);
  }
  const int64_t i = at.q - (at.extentQ - drafts), j = at.k - (at.extentK - drafts);
  if (i < 0)
    return isBatch ? j <= i : j < 0;
  return j < 0 || (uint64_t(ancestors.integer(tree * n + i)) >> j) % 2 == 1;
}

bool PatternOracle::evaluateDocuments(attn::DocumentsOp op, const Local &at) const {
  const OperandTensor &ofQueries = tensorOf(op.getOffsetsQ());
  const OperandTensor &ofKeys = op.getOffsetsK() ? tensorOf(op.getOffsetsK()) : ofQueries;
  const bool isEnd = op.getOffsetsK() && attn::PatternOp(pattern).getQOrigin() == attn::Origin::end;
  const int64_t row = isEnd ? at.q - problem.qOrigin : at.q;
  for (int64_t s = 0; s + 1 < ofQueries.elements(); ++s) {
    const int64_t queries = ofQueries.integer(s + 1) - ofQueries.integer(s);
    const int64_t keys = op.getUsed() ? tensorOf(op.getUsed()).integer(s) : ofKeys.integer(s + 1) - ofKeys.integer(s);
    Local inner = at;
    inner.q = row - ofQueries.integer(s);
    inner.k = at.k - ofKeys.integer(s);
    if (inner.q < 0 || inner.q >= queries || inner.k < 0 || inner.k >= keys)
      continue;
    inner.q += isEnd ? keys - queries : 0;
    inner.extentQ = isEnd ? keys : queries;
    inner.extentK = keys;
    return evaluate(op.getOperand(), inner);
  }
  return false;
}

bool PatternOracle::evaluateDilate(attn::DilateOp op, const Local &at) const {
  int64_t rate = op.getRate(), kept = offset(op, at);
  if (remainder(at.q, rate) != kept || remainder(at.k, rate) != kept)
    return false;
  auto thinned = [&](int64_t extent) { return floorOf(extent - kept + rate - 1, rate); };
  Local inner = at;
  inner.q = floorOf(at.q - kept, rate);
  inner.k = floorOf(at.k - kept, rate);
  inner.extentQ = thinned(at.extentQ);
  inner.extentK = thinned(at.extentK);
  return evaluate(op.getOperand(), inner);
}

bool PatternOracle::evaluateRandom(attn::RandomOp op, const Local &at) const {
  int64_t count = size(op.getDynamicSizes(), op.getSizes(), 0), seed = size(op.getDynamicSizes(), op.getSizes(), 1);
  int64_t extent = std::max(at.extentQ, at.extentK);
  if (at.q < 0 || at.q >= extent)
    return false;
  for (int64_t t = 0; t < std::min(count, extent); ++t)
    if (randomCell(seed, op.getPerHead() ? at.head : -1, t, extent, at.q) == at.k)
      return true;
  return false;
}

} // namespace heddle::oracle
