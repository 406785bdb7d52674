#include "dialect/IR/PatternOperands.h"

using namespace mlir;

namespace heddle::attn {

SmallVector<OperandUse, 2> operandUses(PatternOp pattern, unsigned argument) {
  SmallVector<OperandUse, 2> uses;
  for (Operation &op : pattern.getBody().front())
    for (OpOperand &operand : op.getOpOperands())
      if (auto reader = dyn_cast<OperandOpInterface>(op); reader && operand.get() == pattern.getArgument(argument))
        uses.push_back(reader.getOperandUse(operand.getOperandNumber()));
  return uses;
}

/// The dimension whose `?` stands for `extent`; nothing for a tensor that no op reads.
static std::optional<unsigned> dimensionOf(PatternOp pattern, unsigned argument, Extent extent) {
  auto type = cast<MemRefType>(pattern.getArgumentTypes()[argument]);
  const SmallVector<OperandUse, 2> uses = operandUses(pattern, argument);
  for (unsigned dimension = 0; !uses.empty() && dimension < type.getRank(); ++dimension)
    if (type.isDynamicDim(dimension) && uses.front().extents[dimension] == extent)
      return dimension;
  return std::nullopt;
}

std::optional<unsigned> lengthDimension(PatternOp pattern, unsigned argument) {
  const std::optional<unsigned> length = dimensionOf(pattern, argument, Extent::Length);
  return length ? length : dimensionOf(pattern, argument, Extent::Rows);
}

bool hasExtent(PatternOp pattern, unsigned argument, Extent extent) {
  return dimensionOf(pattern, argument, extent).has_value();
}

bool hasQueries(PatternOp pattern, unsigned argument) {
  return hasExtent(pattern, argument, Extent::SeqlenQ) || hasExtent(pattern, argument, Extent::Rows);
}

bool hasKeys(PatternOp pattern, unsigned argument) {
  return hasExtent(pattern, argument, Extent::SeqlenK) || hasExtent(pattern, argument, Extent::Columns);
}

static LogicalResult verifyOperand(PatternOp pattern, unsigned argument) {
  const std::string name = "operand '" + pattern.getParameterName(argument).str() + "'";
  auto type = cast<MemRefType>(pattern.getArgumentTypes()[argument]);
  SmallVector<OperandUse, 2> uses = operandUses(pattern, argument); // none where folding took the op that read it
  for (const OperandUse &use : uses) {
    if (static_cast<int64_t>(use.extents.size()) != type.getRank())
      return pattern.emitOpError("expected ")
             << name << " to have " << use.extents.size() << " dimensions, got " << type;
    for (unsigned dimension = 0; dimension < type.getRank(); ++dimension)
      if (type.isDynamicDim(dimension) && use.extents[dimension] != uses.front().extents[dimension])
        return pattern.emitOpError("expected one meaning of dimension ")
               << dimension << " of " << name << ", got " << extentName(uses.front().extents[dimension]) << " and "
               << extentName(use.extents[dimension]);
  }
  return success();
}

LogicalResult verifyOperands(PatternOp pattern) {
  for (unsigned argument = 0; argument < pattern.getNumArguments(); ++argument)
    if (pattern.isOperand(argument) && failed(verifyOperand(pattern, argument)))
      return failure();
  return success();
}

LogicalResult verifyOperandsAreRead(PatternOp pattern) {
  for (unsigned argument = 0; argument < pattern.getNumArguments(); ++argument)
    if (pattern.isOperand(argument) && operandUses(pattern, argument).empty())
      return pattern.emitOpError("expected an op that reads operand '")
             << pattern.getParameterName(argument) << "', its shape has no meaning without one";
  return success();
}

std::vector<unsigned> maskTensorsOf(PatternOp pattern) {
  std::vector<unsigned> arguments;
  for (Operation &op : pattern.getBody().front())
    if (isa<MaskOpInterface>(op) && isa<OperandOpInterface>(op))
      for (Value operand : op.getOperands())
        if (auto argument = dyn_cast<BlockArgument>(operand); argument && pattern.isOperand(argument.getArgNumber()))
          arguments.push_back(argument.getArgNumber());
  return arguments;
}

LogicalResult verifyWholePositions(PatternOp pattern) {
  DenseMap<Value, Operation *> readers; // of masks: an op among their own that reads positions of the call
  for (Operation &op : pattern.getBody().front().without_terminator()) {
    auto tensors = dyn_cast<OperandOpInterface>(op);
    Operation *reader = isa<MaskOpInterface>(op) && tensors && tensors.countsPositions() ? &op : nullptr;
    for (Value operand : op.getOperands())
      if (Operation *inside = readers.lookup(operand)) {
        if (isa<PullbackOpInterface>(op))
          return (inside->emitOpError("expected to be outside of pullbacks, its tensor counts positions of the call")
                      .attachNote(op.getLoc())
                  << "'" << op.getName() << "' is one"),
                 failure();
        reader = inside;
      }
    for (Value result : op.getResults())
      readers[result] = reader;
  }
  return success();
}

} // namespace heddle::attn
