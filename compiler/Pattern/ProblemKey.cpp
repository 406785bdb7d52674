#include "compiler/Pattern/ProblemKey.h"
#include "codegen/Choose/RatesOf.h"
#include "compiler/Pattern/CallRows.h"
#include "dialect/IR/ScoreChain.h"
#include "runtime/Core/Digest.h"
#include "runtime/Core/Positions.h"

#include <algorithm>
#include <limits>
#include <set>

namespace heddle {

ProblemShape shapeOf(const AttentionSizes &sizes) {
  ProblemShape shape;
  shape.batch = sizes.batch;
  shape.heads = sizes.heads;
  shape.kvHeads = sizes.kvHeads;
  shape.seqlenQ = sizes.seqlenQ;
  shape.seqlenK = sizes.seqlenK;
  shape.sequences = sizes.sequences;
  return shape;
}

std::vector<int64_t> gradientShape(const ProblemShape &shape, unsigned argument) {
  const bool isTensor = argument < shape.operands.size() && shape.operands[argument];
  return isTensor ? shape.operands[argument].shape : std::vector<int64_t>{1};
}

/// What scores, and the sink, have derivatives by, in the order of their places.
static std::vector<unsigned> differentiable(attn::PatternOp pattern) {
  attn::SoftmaxOp softmax = pattern.getSoftmax();
  std::set<unsigned> numbers;
  for (mlir::BlockArgument argument : attn::argumentsOfScores(softmax.getScores()))
    numbers.insert(argument.getArgNumber());
  if (mlir::Value sink = softmax.getDynamicSink())
    numbers.insert(llvm::cast<mlir::BlockArgument>(sink).getArgNumber());
  return {numbers.begin(), numbers.end()};
}

Result<std::vector<int64_t>> gradientArguments(const PatternFile &file, const std::vector<std::string> &names,
                                               const Kind &kind) {
  if (!names.empty() && !kind.isBackward())
    return Status::invalidArgument("expected a kind of gradients beside it, such as backward, got " + kind.name());
  attn::PatternOp pattern = file.pattern();
  std::vector<int64_t> found;
  std::string known;
  for (unsigned argument : differentiable(pattern)) {
    const std::string name = pattern.getParameterName(argument).str();
    known += (known.empty() ? "" : ", ") + name;
    if (llvm::is_contained(names, name))
      found.push_back(argument);
  }
  for (const std::string &name : names)
    if (llvm::none_of(found, [&](int64_t number) { return pattern.getParameterName(unsigned(number)) == name; }))
      return Status::invalidArgument("expected what scores of pattern '" + pattern.getSymName().str() +
                                     "' have a derivative by (" + (known.empty() ? "nothing" : known) + "), got '" +
                                     name + "'");
  return found;
}

attn::TensorData tensorDataOf(const Operands &operands) {
  attn::TensorData tensors(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i] || traitsOf(operands[i].element).isReal())
      continue;
    std::vector<int64_t> entries(size_t(operands[i].elements()));
    for (size_t place = 0; place < entries.size(); ++place)
      entries[place] = operands[i].integer(int64_t(place));
    tensors[i] = std::make_shared<const std::vector<int64_t>>(std::move(entries));
  }
  return tensors;
}

Status checkMaskTensors(const PatternFile &file, const attn::ProblemSizes &sizes) {
  attn::PatternOp pattern = file.pattern();
  auto isMissing = [&](unsigned argument) { return !attn::holds(&sizes.tensors, argument); };
  const std::vector<unsigned> &read = file.analysis().maskTensors;
  const auto missing = std::find_if(read.begin(), read.end(), isMissing);
  if (missing == read.end())
    return {};
  const std::string name = pattern.getParameterName(*missing).str();
  return Status::invalidArgument("tensor '" + name + "', which says what pattern '" + pattern.getSymName().str() +
                                 "' keeps, is not given: give it with --operand " + name + "=FILE:TENSOR");
}

static int64_t queryOrigin(QOriginRule rule, const ProblemShape &shape) {
  return rule == QOriginRule::start ? 0 : rule == QOriginRule::end ? shape.seqlenK - shape.seqlenQ : shape.qOrigin;
}

int64_t queryOrigin(attn::PatternOp pattern, const ProblemShape &shape) {
  return queryOrigin(originRuleOf(pattern), shape);
}

attn::ProblemSizes sizesOf(QOriginRule rule, const ProblemShape &shape) {
  attn::ProblemSizes sizes;
  sizes.heads = shape.heads;
  sizes.seqlenQ = shape.seqlenQ;
  sizes.seqlenK = shape.seqlenK;
  sizes.kOrigin = shape.kOrigin;
  sizes.parameters = shape.parameters;
  sizes.tensors = tensorDataOf(shape.operands);
  sizes.qOrigin = queryOrigin(rule, shape);
  return sizes;
}

attn::ProblemSizes sizesOf(const PatternFile &file, const ProblemShape &shape) {
  return sizesOf(originRuleOf(file.pattern()), shape);
}

static Status checkRange(const char *name, int64_t value, int64_t least) {
  if (value >= least && value <= std::numeric_limits<int32_t>::max())
    return {};
  return Status::invalidArgument("expected " + std::string(name) + " >= " + std::to_string(least) +
                                 " and below 2^31, got " + std::to_string(value));
}

Status checkShape(const PatternFile &file, const ProblemShape &shape) {
  HEDDLE_TRY(checkRange("batch", shape.batch, 1));
  HEDDLE_TRY(checkRange("heads", shape.heads, 1));
  HEDDLE_TRY(checkRange("kv heads", shape.kvHeads, 1));
  HEDDLE_TRY(checkRange("seqlen", shape.seqlenQ, 0));
  HEDDLE_TRY(checkRange("seqlen-k", shape.seqlenK, 0));
  HEDDLE_TRY(checkPositions({queryOrigin(file.pattern(), shape), shape.seqlenQ, shape.kOrigin, shape.seqlenK}));
  if (shape.heads % shape.kvHeads != 0)
    return Status::invalidArgument("expected heads to be a multiple of kv heads, got " + std::to_string(shape.heads) +
                                   " and " + std::to_string(shape.kvHeads));
  attn::PatternOp pattern = file.pattern();
  if (shape.parameters.size() != pattern.getNumArguments())
    return Status::invalidArgument("expected " + std::to_string(pattern.getNumArguments()) +
                                   " sizes of the pattern, got " + std::to_string(shape.parameters.size()));
  return {};
}

static int64_t clamp(attn::WideInt value) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  return value > most ? most : int64_t(value);
}

ProblemBucket problemBucket(const PatternFile &file, const ProblemShape &shape, int64_t smCount,
                            const CallShape &call) {
  constexpr int64_t block = ProblemBucket::kTile;
  attn::ProblemSizes sizes = sizesOf(file, shape);
  sizes.tensors.clear();
  const attn::PatternAnalysis &analysis = file.analysis();
  attn::WideInt items = 0;
  for (int64_t head = 0; head < shape.heads; ++head) {
    unsigned variant = attn::variantOf(analysis, sizes, head);
    items += attn::countRowTiles(shape.seqlenQ, analysis.variants[variant].forward.rowRate, block);
  }
  attn::WideInt visited =
      attn::countTiles(analysis, sizes, attn::TileShape{block, block}, attn::Direction::Forward).visited;
  const int64_t rows = queryRowsOf(shape, call);
  return ProblemBucket::of(clamp(items * shape.batch), smCount, clamp(visited * shape.batch),
                           shape.heads / shape.kvHeads, ProblemBucket::rowsBucket(rows, call));
}

ExactProblem exactProblem(const ProblemShape &shape) {
  ExactProblem problem{shape.batch,   shape.heads,   shape.kvHeads, shape.seqlenQ,
                       shape.seqlenK, shape.qOrigin, shape.kOrigin, ""};
  auto append = [&](const std::string &word) { problem.arguments += (problem.arguments.empty() ? "" : " ") + word; };
  for (int64_t value : shape.parameters)
    append(std::to_string(value));
  for (size_t i = 0; i < shape.operands.size(); ++i) {
    const OperandTensor &tensor = shape.operands[i];
    if (tensor && !traitsOf(tensor.element).isReal())
      append(std::to_string(i) + ":" +
             sha256Hex({reinterpret_cast<const char *>(tensor.data->data()), tensor.data->size()}).substr(0, 12));
  }
  return problem;
}

WinnerKey winnerKey(const PatternFile &file, const ProblemShape &shape, const KernelFamily &family,
                    const DeviceIdentity &device) {
  const Result<CallShape> call = family.shape();
  return WinnerKey(family, problemBucket(file, shape, device.smCount, call ? *call : CallShape()), device,
                   exactProblem(shape));
}

} // namespace heddle
