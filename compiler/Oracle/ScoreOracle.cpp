// One case per op, in the words of the op's description (dialect/IR/ScoreOps.td) and in nobody else's.
#include "compiler/Oracle/ScoreOracle.h"
#include "dialect/IR/RealWord.h"

#include <cmath>
#include <stdexcept>

namespace heddle::oracle {

ScoreOracle::ScoreOracle(attn::PatternOp pattern, const Problem &problem)
    : softmax(pattern.getSoftmax()), problem(problem) {
  for (mlir::Value last = softmax.getScores(); last;) {
    links.insert(links.begin(), last.getDefiningOp());
    last = llvm::isa<attn::ScaledOp>(links.front()) ? mlir::Value() : links.front()->getOperand(0);
  }
  documents = findDocuments(pattern);
}

/// Some mask among those that `mask` is made of, itself too.
static attn::DocumentsOp documentsIn(mlir::Value mask) {
  mlir::Operation *op = mask.getDefiningOp();
  if (!op || llvm::isa<attn::DocumentsOp>(op))
    return llvm::dyn_cast_or_null<attn::DocumentsOp>(op);
  for (mlir::Value operand : op->getOperands())
    if (attn::DocumentsOp found = documentsIn(operand))
      return found;
  return {};
}

std::optional<ScoreOracle::Documents> ScoreOracle::findDocuments(attn::PatternOp pattern) const {
  if (links.empty())
    return std::nullopt;
  const bool isEnd = pattern.getQOrigin() == attn::Origin::end;
  auto scaled = llvm::cast<attn::ScaledOp>(links.front());
  if (const auto offsets = scaled.getOffsets(); !offsets.empty())
    return Documents{offsets.front(), offsets.back(), scaled.getUsed(), isEnd && offsets.size() > 1};
  for (mlir::Value branch : attn::SoftmaxOp(softmax).getBranches())
    if (attn::DocumentsOp op = documentsIn(branch))
      return Documents{op.getOffsetsQ(), op.getOffsetsK() ? op.getOffsetsK() : op.getOffsetsQ(), op.getUsed(),
                       isEnd && op.getOffsetsK()};
  return std::nullopt;
}

std::vector<double> alibiSlopes(int64_t heads) {
  int64_t regular = 1;
  while (2 * regular <= heads)
    regular *= 2;
  std::vector<double> slopes;
  const double first = std::pow(2.0, -8.0 / double(regular));
  for (int64_t head = 0; head < regular; ++head)
    slopes.push_back(std::pow(first, double(head + 1)));
  if (regular < heads) {
    std::vector<double> finer = alibiSlopes(2 * regular);
    for (int64_t head = regular; head < heads; ++head)
      slopes.push_back(finer[2 * (head - regular)]);
  }
  return slopes;
}

double ScoreOracle::number(mlir::Value dynamic, mlir::FloatAttr constant) const {
  if (!dynamic)
    return constant.getValueAsDouble();
  return attn::realOfWord(problem.parameters.at(llvm::cast<mlir::BlockArgument>(dynamic).getArgNumber()));
}

using std::tanh; // that of Dual is found by its namespace

static const OperandTensor &operandOf(mlir::Value argument, const Problem &problem) {
  return problem.operands.at(llvm::cast<mlir::BlockArgument>(argument).getArgNumber());
}

ScorePlace ScoreOracle::counted(const ScorePlace &at) const {
  if (!documents)
    return at;
  const OperandTensor &ofQueries = operandOf(documents->ofQueries, problem);
  const OperandTensor &ofKeys = operandOf(documents->ofKeys, problem);
  const int64_t row = documents->isEnd ? at.q - problem.qOrigin : at.q;
  int64_t s = 0;
  while (s + 2 < ofQueries.elements() && ofQueries.integer(s + 1) <= row)
    ++s;
  const int64_t queries = ofQueries.integer(s + 1) - ofQueries.integer(s);
  const int64_t keys =
      documents->used ? operandOf(documents->used, problem).integer(s) : ofKeys.integer(s + 1) - ofKeys.integer(s);
  return {at.batch, at.head, row - ofQueries.integer(s) + (documents->isEnd ? keys - queries : 0),
          at.k - ofKeys.integer(s)};
}

int64_t ScoreOracle::biasPlace(attn::BiasOp op, const ScorePlace &at) const {
  const OperandTensor &tensor = operandOf(op.getTensor(), problem);
  const bool areParts = attn::areParts(op->getParentOfType<attn::PatternOp>()); // columns are then those of the whole
  const int64_t indices[] = {at.batch, at.head, at.q - problem.qOrigin, areParts ? at.k : at.k - problem.kOrigin};
  int64_t element = 0;
  for (size_t dimension = 0; dimension < 4; ++dimension)
    element = element * tensor.shape.at(dimension) + (tensor.shape[dimension] == 1 ? 0 : indices[dimension]);
  return element;
}

int64_t ScoreOracle::relativePlace(attn::RelativeOp op, const ScorePlace &pair) const {
  const ScorePlace at = counted(pair);
  const OperandTensor &table = operandOf(op.getTable(), problem);
  const int64_t offset =
      op.getDynamicSizes().empty()
          ? op.getSizes()[0]
          : problem.parameters.at(llvm::cast<mlir::BlockArgument>(op.getDynamicSizes()[0]).getArgNumber());
  const int64_t entries = table.shape.at(1), row = table.shape[0] == 1 ? 0 : at.head;
  return row * entries + std::min(std::max<int64_t>(at.q - at.k + offset, 0), entries - 1);
}

template <class Number>
Number ScoreOracle::change(mlir::Operation *op, const ScorePlace &at, Number score, int by) const {
  if (llvm::isa<attn::ScaledOp>(op))
    return score;
  if (auto softcap = llvm::dyn_cast<attn::SoftcapOp>(op)) {
    Number cap = numberOf<Number>(number(softcap.getDynamicCap(), softcap.getCapAttr()), softcap.getDynamicCap(), by);
    return cap * tanh(score / cap);
  }
  if (llvm::isa<attn::AlibiOp>(op)) {
    const ScorePlace inside = counted(at);
    return score - Number(alibiSlopes(problem.heads)[at.head]) * Number(std::abs(inside.q - inside.k));
  }
  auto element = [&](mlir::Value tensor, int64_t place) {
    return numberOf<Number>(operandOf(tensor, problem).real(place), tensor, by);
  };
  if (auto bias = llvm::dyn_cast<attn::BiasOp>(op))
    return score + element(bias.getTensor(), biasPlace(bias, at));
  if (auto relative = llvm::dyn_cast<attn::RelativeOp>(op))
    return score + element(relative.getTable(), relativePlace(relative, at));
  if (auto map = llvm::dyn_cast<attn::ScoreMapOp>(op))
    return evaluateScoreMap(map, counted(at), score, problem.parameters, by);
  throw std::logic_error("op '" + op->getName().getStringRef().str() + "' has no definition in the oracle");
}

template <class Number> Number ScoreOracle::score(const ScorePlace &at, Number scaled) const {
  for (mlir::Operation *link : links)
    scaled = change(link, at, scaled, -1);
  return scaled;
}
template float ScoreOracle::score(const ScorePlace &at, float scaled) const;
template double ScoreOracle::score(const ScorePlace &at, double scaled) const;

double ScoreOracle::slopeBy(unsigned argument, const ScorePlace &at, double scaled) const {
  Dual score = scaled;
  for (mlir::Operation *link : links)
    score = change(link, at, score, int(argument));
  return score.slope;
}

static bool reads(mlir::Operation *op, unsigned argument) {
  return llvm::any_of(op->getOperands(), [&](mlir::Value operand) {
    auto known = llvm::dyn_cast<mlir::BlockArgument>(operand);
    return known && known.getArgNumber() == argument;
  });
}

std::optional<int64_t> ScoreOracle::elementOf(unsigned argument, const ScorePlace &at) const {
  for (mlir::Operation *link : links)
    if (reads(link, argument)) {
      if (auto bias = llvm::dyn_cast<attn::BiasOp>(link))
        return biasPlace(bias, at);
      if (auto relative = llvm::dyn_cast<attn::RelativeOp>(link))
        return relativePlace(relative, at);
      return 0;
    }
  return std::nullopt;
}

bool ScoreOracle::isSink(unsigned argument) const {
  attn::SoftmaxOp op = softmax;
  auto known = llvm::dyn_cast_if_present<mlir::BlockArgument>(op.getDynamicSink());
  return known && known.getArgNumber() == argument;
}

std::optional<double> ScoreOracle::sink(int64_t head) const {
  attn::SoftmaxOp op = softmax;
  mlir::Value dynamic = op.getDynamicSink();
  if (!dynamic && !op.getSinkAttr())
    return std::nullopt;
  if (dynamic && llvm::isa<mlir::MemRefType>(dynamic.getType()))
    return operandOf(dynamic, problem).real(head);
  return number(dynamic, op.getSinkAttr());
}

double ScoreOracle::slope(const ScorePlace &at, double scaled) const { return score(at, Dual(scaled, 1)).slope; }

} // namespace heddle::oracle
