#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Pattern/Suggest.h"
#include "compiler/Io/Memory.h"
#include "compiler/Io/Safetensors.h"
#include "codegen/Choose/RatesOf.h"
#include "dialect/IR/PatternOperands.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>

using namespace mlir;

namespace heddle {
namespace {

constexpr int64_t kMadeLength = 255; // of a table that is made for tests

attn::TensorCall tensorCallOf(attn::PatternOp pattern, const ProblemShape &shape) {
  return {shape.batchOfTensors(),      shape.heads,   shape.seqlenQ,    shape.seqlenK,
          queryOrigin(pattern, shape), shape.kOrigin, shape.parameters, tensorDataOf(shape.operands)};
}

/// True if every tensor of integers that the op reads is given.
bool hasIntegers(Operation *op, const attn::TensorData &tensors) {
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    auto type = dyn_cast<MemRefType>(operand.getType());
    return !type || !type.getElementType().isInteger() ||
           attn::holds(&tensors, cast<BlockArgument>(operand).getArgNumber());
  });
}

/// Sizes of the pattern and lengths of the tensors that are there.
Status checkWords(attn::PatternOp pattern, const ProblemShape &shape) {
  LaunchSymbols symbols;
  symbols[LaunchSymbol::batch] = shape.batch;
  symbols[LaunchSymbol::sequences] = shape.sequences;
  symbols[LaunchSymbol::heads] = shape.heads;
  symbols[LaunchSymbol::seqlenQ] = shape.seqlenQ;
  symbols[LaunchSymbol::seqlenK] = shape.seqlenK;
  symbols[LaunchSymbol::qOrigin] = queryOrigin(pattern, shape);
  symbols.params = shape.parameters.data();
  symbols.paramCount = int64_t(shape.parameters.size());
  uint64_t given = 0;
  std::vector<std::string> names;
  for (unsigned i = 0; i < pattern.getNumArguments(); ++i) {
    given |= uint64_t(!pattern.isOperand(i) || shape.operands[i]) << i;
    names.push_back(pattern.getParameterName(i).str());
  }
  std::vector<ArgumentBound> bounds = argumentBounds(pattern);
  llvm::erase_if(bounds, [&](const ArgumentBound &bound) { return (given >> bound.argument & 1) == 0; });
  return checkBounds(bounds, symbols, given, names);
}

/// Judges the tensors that were bound by what the pattern says.
Status checkBound(const PatternFile &file, const ProblemShape &shape) {
  HEDDLE_TRY(checkWords(file.pattern(), shape));
  return checkIntegers(file, tensorCallOf(file.pattern(), shape));
}

/// One tensor of the pattern, for one call.
class OperandBinder {
public:
  OperandBinder(attn::PatternOp pattern, unsigned argument, ProblemShape &shape)
      : pattern(pattern), argument(argument), shape(shape), name(pattern.getParameterName(argument).str()),
        type(cast<MemRefType>(pattern.getArgumentTypes()[argument])),
        use(attn::operandUses(pattern, argument).front()) {}

  Status bind(OperandTensor tensor) {
    HEDDLE_TRY(checkType(tensor));
    if (auto dimension = attn::lengthDimension(pattern, argument))
      shape.parameters[argument] = tensor.shape[*dimension];
    shape.operands[argument] = std::move(tensor);
    return {};
  }

  bool isOfMask() const {
    return llvm::any_of(pattern.getArgument(argument).getUsers(),
                        [](Operation *user) { return isa<attn::MaskOpInterface>(user); });
  }

  /// The first op that reads it, as patterns spell it.
  std::string reader() const {
    std::string first;
    for (Operation &op : pattern.getBody().front())
      if (first.empty() && llvm::is_contained(op.getOperands(), pattern.getArgument(argument)))
        first = op.getName().stripDialect().str();
    return first;
  }

  Status missing() {
    return Status::invalidArgument("tensor '" + name + "' of pattern '" + pattern.getSymName().str() +
                                   "' is not given: give it with --operand " + name + "=FILE:TENSOR");
  }

  /// The first reader that says what it wants decides.
  Result<OperandTensor> make(uint64_t seed) const {
    const attn::TensorCall call = tensorCallOf(pattern, shape);
    for (OpOperand &use : pattern.getArgument(argument).getUses())
      if (auto reader = dyn_cast<attn::OperandOpInterface>(use.getOwner()))
        if (std::vector<int64_t> made = reader.makeTensor(use.getOperandNumber(), call, seed); !made.empty())
          return madeOf(made);
    const DType element = *attn::elementOf(type.getElementType());
    std::vector<int64_t> extents;
    double elements = 1;
    for (unsigned dimension = 0; dimension < type.getRank(); ++dimension)
      elements *= double(extents.emplace_back(extentOf(dimension).value_or(madeLength(dimension))));
    // Integers are made in 64 bits before they are narrowed.
    HEDDLE_TRY(checkMemory("tensor '" + name + "' " + shapeText(extents),
                           elements * (!traitsOf(element).isReal() ? 12 : dtypeBytes(element)),
                           "choose smaller sizes, or give the tensor with --operand " + name + "=FILE:TENSOR"));
    if (!traitsOf(element).isReal())
      return madeOf(std::vector<int64_t>(size_t(elements), 0));
    return OperandTensor::randomNormal(element, extents, seed, name);
  }

private:
  int64_t madeLength(unsigned dimension) const {
    return use.extents[dimension] == attn::Extent::Rows ? shape.seqlenQ : kMadeLength;
  }

  OperandTensor madeOf(const std::vector<int64_t> &values) const {
    const std::vector<int64_t> extents = shapeOf(int64_t(values.size()));
    return type.getElementType().isInteger(64) ? OperandTensor::wideIntegers(extents, values)
                                               : OperandTensor::integers(extents, {values.begin(), values.end()});
  }

  /// The length of a tensor with so many elements follows from its other extents.
  std::vector<int64_t> shapeOf(int64_t elements) const {
    std::vector<int64_t> extents;
    int64_t others = 1;
    for (unsigned dimension = 0; dimension < type.getRank(); ++dimension)
      others *= extents.emplace_back(extentOf(dimension).value_or(1));
    for (unsigned dimension = 0; dimension < type.getRank(); ++dimension)
      if (!extentOf(dimension))
        extents[dimension] = elements / std::max<int64_t>(others, 1);
    return extents;
  }

  /// What the call says of a dimension; nothing: the tensor says it.
  std::optional<int64_t> extentOf(unsigned dimension) const {
    if (!type.isDynamicDim(dimension))
      return type.getDimSize(dimension);
    switch (use.extents[dimension]) {
    case attn::Extent::Batch:
      return shape.batchOfTensors();
    case attn::Extent::Heads:
      return shape.heads;
    case attn::Extent::SeqlenQ:
      return shape.seqlenQ;
    case attn::Extent::SeqlenK:
      return shape.seqlenK;
    case attn::Extent::Columns:
      return shape.parameters[attn::columnsArgument(pattern)];
    case attn::Extent::Length:
    case attn::Extent::Rows:
      break;
    }
    return std::nullopt;
  }

  std::string expectedShape() const {
    std::string text;
    for (unsigned dimension = 0; dimension < type.getRank(); ++dimension) {
      std::optional<int64_t> extent = extentOf(dimension);
      text += dimension ? ", " : "[";
      text += extent ? std::to_string(*extent) : "any";
      if (type.isDynamicDim(dimension))
        text += std::string(" (") + attn::extentName(use.extents[dimension]) + ")";
    }
    return text + "]";
  }

  Status checkType(const OperandTensor &tensor) const {
    bool fits =
        tensor.element == attn::elementOf(type.getElementType()) && int64_t(tensor.shape.size()) == type.getRank();
    for (unsigned dimension = 0; fits && dimension < type.getRank(); ++dimension)
      fits = extentOf(dimension).value_or(tensor.shape[dimension]) == tensor.shape[dimension];
    if (!fits)
      return Status::invalidArgument(
          "tensor '" + name + "': expected " + traitsOf(*attn::elementOf(type.getElementType())).mlirName + " " +
          expectedShape() + ", got " + traitsOf(tensor.element).mlirName + " " + shapeText(tensor.shape));
    return {};
  }

  mutable attn::PatternOp pattern;
  unsigned argument;
  ProblemShape &shape;
  std::string name;
  MemRefType type;
  attn::OperandUse use;
};

/// What follows "NAME=" in "NAME=FILE:TENSOR": a colon in the name of the file is part of it unless it is the last
/// one.
std::string fileOf(const std::string &place) { return place.substr(0, place.rfind(':')); }

Result<OperandTensor> readAssigned(const std::string &name, const std::string &place) {
  size_t colon = place.rfind(':');
  HEDDLE_ASSIGN(SafetensorsFile file, SafetensorsFile::open(fileOf(place)));
  return file.readOperand(colon == std::string::npos ? name : place.substr(colon + 1));
}

/// The last assignment to `name`, what follows "NAME=".
std::optional<std::string> assignedTo(const std::string &name, const std::vector<std::string> &assignments) {
  for (auto assignment = assignments.rbegin(); assignment != assignments.rend(); ++assignment)
    if (assignment->compare(0, name.size() + 1, name + "=") == 0)
      return assignment->substr(name.size() + 1);
  return std::nullopt;
}

} // namespace

std::string fileOfAssignment(const std::string &assignment) {
  const size_t equals = assignment.find('=');
  return equals == std::string::npos ? "" : fileOf(assignment.substr(equals + 1));
}

Status checkIntegers(const PatternFile &file, const attn::TensorCall &call) {
  attn::PatternOp pattern = file.pattern();
  for (Operation &op : pattern.getBody().front())
    if (auto reader = dyn_cast<attn::OperandOpInterface>(op); reader && hasIntegers(&op, call.tensors))
      if (std::string wrong = reader.checkTensors(call); !wrong.empty())
        return Status::invalidArgument(wrong);
  return {};
}

Status checkOperandNames(const PatternFile &file, const std::vector<std::string> &assignments) {
  attn::PatternOp pattern = file.pattern();
  std::vector<std::string> known;
  for (unsigned i = 0; i < pattern.getNumArguments(); ++i)
    if (pattern.isOperand(i))
      known.push_back(pattern.getParameterName(i).str());
  for (const std::string &assignment : assignments) {
    const std::string name = assignment.substr(0, assignment.find('='));
    if (!llvm::is_contained(known, name) || name.size() + 1 >= assignment.size())
      return Status::invalidArgument(
          "pattern '" + pattern.getSymName().str() + "' takes no '" + assignment + "'" +
          (llvm::is_contained(known, name) ? "" : didYouMean(name, known)) + ": expected NAME=FILE:TENSOR, " +
          (known.empty() ? "but it reads no tensors" : "NAME one of " + llvm::join(known, ", ")));
  }
  return {};
}

Status bindOperands(const PatternFile &file, const OperandSources &sources, ProblemShape &shape,
                    std::vector<MadeOperand> *made) {
  attn::PatternOp pattern = file.pattern();
  HEDDLE_TRY(checkOperandNames(file, sources.assignments));
  shape.operands.assign(pattern.getNumArguments(), {});
  std::optional<SafetensorsFile> inputs;
  for (unsigned i = 0; i < pattern.getNumArguments(); ++i) {
    if (!pattern.isOperand(i))
      continue;
    OperandBinder binder(pattern, i, shape);
    const std::string name = pattern.getParameterName(i).str();
    if (!sources.inputs.empty() && !inputs) {
      HEDDLE_ASSIGN(inputs, SafetensorsFile::open(sources.inputs));
    }
    OperandTensor tensor;
    if (auto place = assignedTo(name, sources.assignments)) {
      HEDDLE_ASSIGN(tensor, readAssigned(name, *place));
    } else if (inputs && inputs->entries().count(name)) {
      HEDDLE_ASSIGN(tensor, inputs->readOperand(name));
    } else if (sources.missing == OperandSources::Missing::make ||
               (sources.missing == OperandSources::Missing::makeForMasks && binder.isOfMask())) {
      HEDDLE_ASSIGN(tensor, binder.make(sources.seed));
      if (made)
        made->push_back({name, binder.reader()});
    } else if (sources.missing == OperandSources::Missing::refuse) {
      return binder.missing();
    }
    if (tensor)
      HEDDLE_TRY(binder.bind(std::move(tensor)));
  }
  return checkBound(file, shape);
}

Status checkOperands(const PatternFile &file, const Operands &operands, ProblemShape &shape) {
  attn::PatternOp pattern = file.pattern();
  shape.operands.assign(pattern.getNumArguments(), {});
  for (unsigned i = 0; i < operands.size(); ++i)
    if (operands[i])
      HEDDLE_TRY(OperandBinder(pattern, i, shape).bind(operands[i]));
  return checkBound(file, shape);
}

} // namespace heddle
