#include "compiler/Library/CompiledPattern.h"

#include "codegen/Choose/RatesOf.h"
#include "codegen/Cpu/JitPattern.h"
#include "compiler/Pattern/BindWords.h"
#include "compiler/Pattern/CallRows.h"
#include "compiler/Session/CompileForCpu.h"
#include "compiler/Session/CompileSession.h"
#include "dialect/Geometry/Counts.h"
#include "dialect/IR/Operands.h"
#include "dialect/IR/PatternOperands.h"
#include "dialect/IR/RealWord.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace heddle {
namespace {

constexpr size_t kMostBuckets = 4096; // then all are forgotten: programs may never call twice with one length

std::string typeText(mlir::Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

} // namespace

Result<std::shared_ptr<CompiledPattern>> CompiledPattern::create(const std::string &text, const std::string &label,
                                                                 const std::string &name) {
  std::shared_ptr<CompiledPattern> made(new CompiledPattern);
  Result<std::unique_ptr<PatternFile>> parsed = PatternFile::parse(text, label, name);
  if (parsed.status().code() == StatusCode::notFound) // the name: heddle_compiler.h has one code for all that is passed
    return Status::invalidArgument(parsed.status().message());
  HEDDLE_TRY(parsed.status());
  made->file = parsed.take();
  HEDDLE_ASSIGN(std::string digest, made->file->digest());
  made->facts.digest = made->keep(std::move(digest));
  made->label = label;
  made->describe();
  return made;
}

Result<std::shared_ptr<CompiledPattern>> CompiledPattern::part() {
  std::lock_guard<std::mutex> lock(mutex);
  HEDDLE_ASSIGN(const std::string text, file->partText());
  return create(text, label, facts.name);
}

void CompiledPattern::describeDimensions(unsigned argument) {
  Tensor &tensor = tensors.emplace_back();
  attn::PatternOp pattern = file->pattern();
  if (!pattern.isOperand(argument))
    return;
  const auto type = llvm::cast<mlir::MemRefType>(pattern.getArgumentTypes()[argument]);
  const attn::OperandUse use = attn::operandUses(pattern, argument).front();
  for (unsigned i = 0; i < type.getRank(); ++i)
    tensor.dimensions.push_back(type.isDynamicDim(i) ? Dimension(use.extents[i]) : Dimension(type.getDimSize(i)));
  tensor.elementBytes = type.getElementTypeBitWidth() / 8;
  tensor.isOfIntegers = type.getElementType().isInteger();
}

void CompiledPattern::describe() {
  attn::PatternOp pattern = file->pattern();
  facts.struct_size = sizeof(facts);
  facts.argument_count = int32_t(pattern.getNumArguments());
  origin = originRuleOf(pattern);
  bounds = argumentBounds(pattern);
  noPages = whyNoPages(pattern);
  wholeArguments = wholesOf(pattern);
  facts.takes_q_origin = origin == QOriginRule::given;
  facts.name = keep(pattern.getSymName().str());
  facts.text = keep(file->text());
  facts.notes = keep(file->notes());
  for (unsigned i = 0; i < pattern.getNumArguments(); ++i) {
    heddle_pattern_argument &argument = described.emplace_back();
    describeDimensions(i);
    const bool isTensor = pattern.isOperand(i), isNumber = !isTensor && pattern.isRealParameter(i);
    argument.struct_size = sizeof(argument);
    argument.id = int32_t(i);
    argument.kind = isTensor ? HEDDLE_OPERAND_POINTER : isNumber ? HEDDLE_OPERAND_FLOAT : HEDDLE_OPERAND_INT;
    argument.takes_length = isTensor && attn::lengthDimension(pattern, i).has_value();
    argument.of_whole = llvm::is_contained(wholeArguments, int64_t(i));
    argument.name = keep(pattern.getParameterName(i).str());
    argument.type = keep(typeText(pattern.getArgumentTypes()[i]));
    argument.doc = keep(pattern.getParameterDoc(i).str());
    const std::optional<int64_t> word = isTensor ? std::nullopt : pattern.getParameterDefault(i);
    argument.has_default = word.has_value();
    if (isNumber) {
      argument.default_float = word ? attn::realOfWord(*word) : 0;
      argument.min_float = pattern.getRealMinimum(i);
      argument.max_float = pattern.getRealMaximum(i);
    } else if (!isTensor) {
      argument.default_int = word.value_or(0);
      argument.min_int = pattern.getParameterMinimum(i);
    }
  }
}

static bool isLength(const heddle_pattern_argument &argument, const heddle_operand &operand) {
  return argument.takes_length && operand.kind == HEDDLE_OPERAND_INT;
}

Result<int64_t> CompiledPattern::wordOf(const heddle_operand &operand) const {
  const std::string who = std::string("pattern '") + facts.name + "': operand " + std::to_string(operand.id) + ": ";
  if (operand.id < 0 || operand.id >= facts.argument_count)
    return Status::invalidArgument(who + "it has " + std::to_string(facts.argument_count) + " arguments");
  const heddle_pattern_argument &argument = described[size_t(operand.id)];
  const std::string name = std::string("'") + argument.name + "'", got = ", got " + std::to_string(operand.value.i64);
  if (isLength(argument, operand)) {
    if (operand.value.i64 < 0 || operand.value.i64 > INT32_MAX)
      return Status::invalidArgument(who + "length of " + name + ": expected 0 to 2^31 - 1" + got);
    return operand.value.i64;
  }
  if (operand.kind != argument.kind)
    return Status::invalidArgument(who + name + " is a " + argument.type + ", the operand is of kind " +
                                   std::to_string(operand.kind));
  if (operand.kind == HEDDLE_OPERAND_INT) {
    if (operand.value.i64 > INT32_MAX)
      return Status::invalidArgument(who + name + ": expected at most 2^31 - 1" + got);
    return operand.value.i64;
  }
  const float number = float(operand.value.f64);
  if (!std::isfinite(number))
    return Status::invalidArgument(who + name + ": expected a finite fp32 number, got " +
                                   std::to_string(operand.value.f64));
  return attn::wordOfReal(number);
}

Result<std::vector<int64_t>> CompiledPattern::parameters(const heddle_operand *operands, uint64_t count,
                                                         bool needsLengths, std::optional<int64_t> whole) {
  if (count > 0 && !operands)
    return Status::invalidArgument("operands: expected an address, got null");
  std::vector<std::optional<int64_t>> given(described.size());
  for (uint64_t i = 0; i < count; ++i)
    if (operands[i].kind != HEDDLE_OPERAND_POINTER) {
      HEDDLE_ASSIGN(const int64_t word, wordOf(operands[i]));
      given[size_t(operands[i].id)] = word;
    }
  for (int64_t argument : wholeArguments)
    if (std::optional<int64_t> &word = given[size_t(argument)]; !word)
      word = whole;
  std::lock_guard<std::mutex> lock(mutex);
  HEDDLE_ASSIGN(std::vector<int64_t> words, bindWords(file->pattern(), given));
  for (const heddle_pattern_argument &argument : described) {
    const std::optional<int64_t> length = given[size_t(argument.id)];
    if (argument.takes_length && needsLengths && !length)
      return Status::invalidArgument(std::string("pattern '") + facts.name + "': the length of tensor '" +
                                     argument.name + "' is missing: operand " + std::to_string(argument.id) +
                                     " of kind int");
    if (argument.takes_length && length)
      words[size_t(argument.id)] = *length;
  }
  return words;
}

int64_t CompiledPattern::queryOrigin(int64_t given, int64_t seqlenQ, int64_t seqlenK) const {
  return origin == QOriginRule::start ? 0 : origin == QOriginRule::end ? seqlenK - seqlenQ : given;
}

OperandNumbers CompiledPattern::operandNumbers(const Kind &kind) const {
  OperandNumbers numbers;
  for (const heddle_pattern_argument &argument : described) {
    const uint64_t bit = uint64_t(1) << argument.id;
    const bool isTensor = argument.kind == HEDDLE_OPERAND_POINTER;
    numbers.pointers |= isTensor ? bit : 0;
    numbers.sizes |= !isTensor || argument.takes_length ? bit : 0;
    numbers.neededSizes |= argument.takes_length || (!isTensor && !argument.has_default) ? bit : 0;
  }
  if (kind.hasPartsOfSequences())
    for (int64_t argument : wholeArguments) {
      numbers.sizes &= ~(uint64_t(1) << argument);
      numbers.neededSizes &= numbers.sizes;
    }
  numbers.neededPointers = numbers.pointers;
  return numbers;
}

Status CompiledPattern::checkWords(const LaunchSymbols &symbols) const {
  std::vector<std::string> names;
  for (const heddle_pattern_argument &argument : described)
    names.push_back(argument.name);
  const Status status = checkBounds(bounds, symbols, ~uint64_t(0), names);
  return status.isOk() ? status : badArguments("operands: " + status.message());
}

/// Queries in rows of several sequences are a batch of one.
static int64_t batchOfTensors(const CpuCall &call) { return call.sequences ? call.sequences : call.batch; }

int64_t CompiledPattern::extentOf(const Dimension &dimension, int32_t argument, const CpuCall &call) const {
  const attn::Extent *extent = std::get_if<attn::Extent>(&dimension);
  if (!extent)
    return std::get<int64_t>(dimension);
  switch (*extent) {
  case attn::Extent::Batch:
    return batchOfTensors(call);
  case attn::Extent::Heads:
    return call.heads;
  case attn::Extent::SeqlenQ:
    return call.seqlenQ;
  case attn::Extent::SeqlenK:
    return call.seqlenK;
  case attn::Extent::Columns:
    return call.params[size_t(wholeArguments.back())];
  case attn::Extent::Length:
  case attn::Extent::Rows:
    break;
  }
  return call.params[size_t(argument)];
}

/// One beyond the last element that the call reads: of rows of queries that a tensor has it reads its own, the first ones.
int64_t CompiledPattern::elementsOf(int32_t argument, const CpuCall &call) const {
  int64_t last = 0, step = 1;
  const std::vector<Dimension> &dimensions = tensors[size_t(argument)].dimensions;
  for (auto dimension = dimensions.rbegin(); dimension != dimensions.rend(); ++dimension) {
    const int64_t extent = extentOf(*dimension, argument, call);
    const int64_t read = isExtent(*dimension, attn::Extent::Rows) ? call.seqlenQ : extent;
    if (read == 0)
      return 0;
    last += (read - 1) * step;
    step *= extent;
  }
  return last + 1;
}

int64_t CompiledPattern::bytesOf(int32_t argument, const CpuCall &call) const {
  return elementsOf(argument, call) * tensors[size_t(argument)].elementBytes;
}

static std::shared_ptr<const std::vector<int64_t>> integersAt(const void *address, int64_t count, int64_t bytes) {
  std::vector<int64_t> integers(size_t(count), 0);
  for (int64_t i = 0; i < count; ++i) {
    int32_t narrow = 0;
    const char *place = static_cast<const char *>(address) + i * bytes;
    if (bytes == sizeof(int64_t))
      std::memcpy(&integers[size_t(i)], place, sizeof(int64_t));
    else
      std::memcpy(&narrow, place, sizeof narrow), integers[size_t(i)] = narrow;
  }
  return std::make_shared<const std::vector<int64_t>>(std::move(integers));
}

Status CompiledPattern::checkIntegers(const CpuCall &call) {
  attn::TensorCall asked;
  asked.batch = batchOfTensors(call), asked.heads = call.heads, asked.seqlenQ = call.seqlenQ,
  asked.seqlenK = call.seqlenK;
  asked.qOrigin = call.qOrigin, asked.kOrigin = call.kOrigin;
  asked.keysMayBePart = true;
  if (call.sequences)
    asked.element = call.sequence;
  asked.parameters.assign(call.params.begin(), call.params.end());
  asked.tensors.resize(described.size());
  size_t operand = 0;
  bool isAnyOfIntegers = false;
  for (const heddle_pattern_argument &argument : described) {
    if (argument.kind != HEDDLE_OPERAND_POINTER)
      continue;
    const Tensor &tensor = tensors[size_t(argument.id)];
    if (tensor.isOfIntegers)
      asked.tensors[size_t(argument.id)] =
          integersAt(call.operands[operand], elementsOf(argument.id, call), tensor.elementBytes);
    isAnyOfIntegers |= tensor.isOfIntegers;
    ++operand;
  }
  if (!isAnyOfIntegers)
    return {};
  std::lock_guard<std::mutex> lock(mutex);
  const Status status = heddle::checkIntegers(*file, asked);
  return status.isOk() ? status : badArguments("operands: " + status.message());
}

/// The tensors of integers among the operands of a call.
attn::TensorData CompiledPattern::integersOf(const heddle_operand *operands, uint64_t count,
                                             const CpuCall &call) const {
  attn::TensorData data(described.size());
  for (uint64_t i = 0; i < count; ++i)
    if (operands[i].kind == HEDDLE_OPERAND_POINTER && operands[i].value.ptr && operands[i].id >= 0 &&
        size_t(operands[i].id) < tensors.size())
      if (const Tensor &tensor = tensors[size_t(operands[i].id)]; tensor.isOfIntegers)
        data[size_t(operands[i].id)] =
            integersAt(operands[i].value.ptr, elementsOf(operands[i].id, call), tensor.elementBytes);
  return data;
}

Result<CpuCall::ArgumentGradient> CompiledPattern::gradientOf(const heddle_gradient &wanted,
                                                              const CpuCall &call) const {
  const std::string who = "attention arguments: gradients: argument " + std::to_string(wanted.id) + ": ";
  if (wanted.id < 0 || wanted.id >= facts.argument_count)
    return Status::invalidArgument(who + "pattern '" + facts.name + "' has " + std::to_string(facts.argument_count));
  CpuCall::ArgumentGradient gradient = {wanted.id, wanted.ptr, elementsOf(wanted.id, call), false};
  for (const Dimension &dimension : tensors[size_t(wanted.id)].dimensions)
    gradient.hasQueryRows |= isExtent(dimension, attn::Extent::SeqlenQ) || isExtent(dimension, attn::Extent::Rows);
  return gradient;
}

Result<std::shared_ptr<const PreparedPattern>> CompiledPattern::prepared(Walk walk) {
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<const PreparedPattern> &known = preparedOnce[walk];
  if (!known) {
    HEDDLE_ASSIGN(PreparedPattern made, preparePattern(*file, PassFunctions::ofAll, walk));
    known = std::make_shared<const PreparedPattern>(std::move(made));
  }
  return known;
}

Result<std::shared_ptr<const JitPattern>> CompiledPattern::machineCode(Walk walk) {
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<const JitPattern> &known = machineCodeOnce[walk];
  if (!known) {
    HEDDLE_ASSIGN(known, compileForCpu(*file, walk));
  }
  return known;
}

Result<ProblemBucket> CompiledPattern::bucket(const ProblemShape &shape, const CallShape &call, int64_t smCount) {
  std::vector<int64_t> asked = {
      shape.batch,   shape.heads,   shape.kvHeads,
      shape.seqlenQ, shape.seqlenK, shape.qOrigin,
      shape.kOrigin, smCount,       ProblemBucket::rowsBucket(queryRowsOf(shape, call), call)};
  asked.insert(asked.end(), shape.parameters.begin(), shape.parameters.end());
  std::lock_guard<std::mutex> lock(mutex);
  if (auto known = buckets.find(asked); known != buckets.end())
    return known->second;
  HEDDLE_TRY(checkShape(*file, shape));
  if (buckets.size() >= kMostBuckets)
    buckets.clear();
  return buckets.emplace(std::move(asked), problemBucket(*file, shape, smCount, call)).first->second;
}

Result<int64_t> CompiledPattern::keptPairs(const ProblemShape &shape) {
  std::lock_guard<std::mutex> lock(mutex);
  HEDDLE_TRY(checkShape(*file, shape));
  const std::string who = "pairs: pattern '" + std::string(facts.name) + "': ";
  if (!file->analysis().maskTensors.empty())
    return Status::unsupported(who + "tensors say what it keeps, and they are not given");
  const std::optional<attn::WideInt> pairs = attn::countPairs(file->analysis(), sizesOf(*file, shape));
  if (!pairs || *pairs * shape.batch > std::numeric_limits<int64_t>::max())
    return Status::unsupported(
        who + (pairs ? "2^63 and more" : "it has no closed form for them; `heddle explain` counts them one by one"));
  return int64_t(*pairs * shape.batch);
}

Result<std::unique_ptr<PatternFile>> CompiledPattern::copyForThread() const {
  return PatternFile::parse(facts.text, label, facts.name);
}

} // namespace heddle
