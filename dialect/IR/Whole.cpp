#include "dialect/IR/Whole.h"
#include "dialect/IR/Attn.h"

using namespace mlir;

namespace heddle::attn {

StringRef wholeName(WholeAxis axis) {
  switch (axis) {
  case WholeAxis::Queries:
    return "queries";
  case WholeAxis::Keys:
    return "keys";
  case WholeAxis::Columns:
    return "columns";
  }
  return "";
}

static std::optional<WholeAxis> axisOf(PatternOp pattern, unsigned argument) {
  auto name = pattern.getArgAttrOfType<StringAttr>(argument, kWhole);
  for (WholeAxis axis : kWholeAxes)
    if (name && name.getValue() == wholeName(axis))
      return axis;
  return std::nullopt;
}

std::optional<unsigned> PatternOp::getWholeArgument(WholeAxis axis) {
  for (unsigned argument = 0; argument < getNumArguments(); ++argument)
    if (axisOf(*this, argument) == axis)
      return argument;
  return std::nullopt;
}

bool areParts(PatternOp pattern) {
  return pattern.getWholeArgument(WholeAxis::Queries) && pattern.getWholeArgument(WholeAxis::Keys);
}

unsigned columnsArgument(PatternOp pattern) {
  const std::optional<unsigned> columns = pattern.getWholeArgument(WholeAxis::Columns);
  return columns ? *columns : *pattern.getWholeArgument(WholeAxis::Keys);
}

LogicalResult verifyWhole(PatternOp pattern) {
  for (unsigned argument = 0; argument < pattern.getNumArguments(); ++argument) {
    Attribute given = pattern.getArgAttr(argument, kWhole);
    if (!given)
      continue;
    const std::optional<WholeAxis> axis = axisOf(pattern, argument);
    auto error = [&] {
      return pattern.emitOpError("expected ") << kWhole << " of '" << pattern.getParameterName(argument) << "' ";
    };
    if (!axis)
      return error() << "to be \"queries\", \"keys\" or \"columns\", got " << given;
    if (*pattern.getWholeArgument(*axis) != argument)
      return error() << "to be the only one of " << wholeName(*axis);
    if (pattern.getQOrigin() != Origin::given)
      return error() << "in a pattern with q_origin(given) only: calls are parts, and say where they stand";
  }
  return success();
}

IntExpr endOf(PatternOp pattern, WholeAxis axis) {
  if (std::optional<unsigned> argument = pattern.getWholeArgument(axis))
    return symbol(Symbol::Parameter, *argument);
  return axis == WholeAxis::Queries ? symbol(Symbol::QOrigin) + symbol(Symbol::SeqlenQ)
                                    : symbol(Symbol::KOrigin) + symbol(Symbol::SeqlenK);
}

int64_t endOf(PatternOp pattern, WholeAxis axis, const TensorCall &call) {
  if (std::optional<unsigned> argument = pattern.getWholeArgument(axis))
    return call.parameters[*argument];
  return axis == WholeAxis::Queries ? call.qOrigin + call.seqlenQ : call.kOrigin + call.seqlenK;
}

} // namespace heddle::attn
