// A sink is a key without a value.
#include "dialect/IR/Sizes.h"
#include "dialect/IR/Attn.h"
#include "dialect/IR/Reals.h"
#include "dialect/IR/ScoreChain.h"

using namespace mlir;

namespace heddle::attn {

ParseResult parseSink(OpAsmParser &parser, std::optional<OpAsmParser::UnresolvedOperand> &dynamic, Type &type,
                      FloatAttr &number) {
  if (parseReal(parser, dynamic, number))
    return failure();
  if (!dynamic)
    return success();
  type = parser.getBuilder().getF32Type();
  return succeeded(parser.parseOptionalColon()) ? parser.parseType(type) : ParseResult(success());
}

void printSink(OpAsmPrinter &printer, Operation *op, Value dynamic, Type type, FloatAttr number) {
  printReal(printer, op, dynamic, number);
  if (dynamic && !type.isF32())
    printer << " : " << type;
}

LogicalResult verifySink(SoftmaxOp softmax) {
  if (!softmax.hasSink())
    return success();
  Value dynamic = softmax.getDynamicSink();
  auto type = dynamic ? dyn_cast<MemRefType>(dynamic.getType()) : MemRefType();
  if (!type)
    return verifyReal(softmax, {dynamic, softmax.getSinkAttr()}, "sink");
  bool isHeads =
      isOperandType(type) && type.getRank() == 1 && type.isDynamicDim(0) && !type.getElementType().isInteger();
  if (!isHeads)
    return softmax.emitOpError("expected the sink to be a number or a memref<?x> of ")
           << elementList(&ElementTraits::isReal, &ElementTraits::mlirName) << " with one for each head, got " << type;
  return success();
}

OperandUse SoftmaxOp::getOperandUse(unsigned) { return {{Extent::Heads}}; }

Value SoftmaxOp::buildSink(const ScoreFrame &frame) {
  Value dynamic = getDynamicSink();
  if (!dynamic || !isa<MemRefType>(dynamic.getType()))
    return Real{dynamic, getSinkAttr()}.value(frame);
  Value head = arith::IndexCastOp::create(frame.builder, frame.loc, frame.builder.getIndexType(), frame.head);
  return loadOperand(frame.builder, frame.loc, dynamic, *frame.arguments, head);
}

std::string SoftmaxOp::scoresInWords() {
  const std::string chain = chainInWords(getScores());
  if (!hasSink())
    return chain;
  return chain + (chain.empty() ? "" : ", ") + "sink " + Real{getDynamicSink(), getSinkAttr()}.inWords();
}

} // namespace heddle::attn
