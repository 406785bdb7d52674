#include "dialect/IR/Reals.h"

using namespace mlir;

namespace heddle::attn {

ParseResult parseReal(OpAsmParser &parser, std::optional<OpAsmParser::UnresolvedOperand> &dynamic, FloatAttr &number) {
  OpAsmParser::UnresolvedOperand operand;
  OptionalParseResult isOperand = parser.parseOptionalOperand(operand);
  if (isOperand.has_value()) {
    dynamic = operand;
    return *isOperand;
  }
  double value = 0;
  if (parser.parseFloat(value))
    return failure();
  number = parser.getBuilder().getF32FloatAttr(static_cast<float>(value));
  return success();
}

void printReal(OpAsmPrinter &printer, Operation *, Value dynamic, FloatAttr number) {
  if (dynamic)
    printer << dynamic;
  else
    printer.printFloat(number.getValue());
}

static std::pair<PatternOp, unsigned> argumentOf(Value dynamic) {
  auto argument = dyn_cast<BlockArgument>(dynamic);
  auto pattern = argument ? dyn_cast<PatternOp>(argument.getOwner()->getParentOp()) : PatternOp();
  return {pattern, pattern ? argument.getArgNumber() : 0};
}

Value Real::value(const ScoreFrame &frame) const {
  return dynamic ? frame.arguments->values.lookup(dynamic) : frame.real(number.getValueAsDouble());
}
double Real::maximum() const {
  if (!dynamic)
    return number.getValueAsDouble();
  auto [pattern, index] = argumentOf(dynamic);
  return pattern.getRealMaximum(index);
}
double Real::minimum() const {
  if (!dynamic)
    return number.getValueAsDouble();
  auto [pattern, index] = argumentOf(dynamic);
  return pattern.getRealMinimum(index);
}
std::string Real::inWords() const {
  if (dynamic) {
    auto [pattern, index] = argumentOf(dynamic);
    return "%" + pattern.getParameterName(index).str();
  }
  SmallString<16> text;
  number.getValue().toString(text);
  return text.str().str();
}

LogicalResult verifyReal(Operation *op, Real real, StringRef name) {
  if (!real.dynamic == !real.number)
    return op->emitOpError("expected ") << name << " to be a number or an argument of the pattern";
  if (real.dynamic && !argumentOf(real.dynamic).first)
    return op->emitOpError("expected ") << name << " to be a number or an argument of the pattern";
  if (real.number && !real.number.getValue().isFinite())
    return op->emitOpError("expected a finite ") << name << ", got " << real.number.getValueAsDouble();
  return success();
}

} // namespace heddle::attn
