#include "dialect/IR/Sizes.h"

using namespace mlir;

namespace heddle::attn {

static ParseResult parseSize(OpAsmParser &parser, SmallVectorImpl<OpAsmParser::UnresolvedOperand> &dynamic,
                             SmallVectorImpl<int64_t> &values) {
  OpAsmParser::UnresolvedOperand operand;
  OptionalParseResult isOperand = parser.parseOptionalOperand(operand);
  if (!isOperand.has_value())
    return parser.parseInteger(values.emplace_back());
  if (failed(*isOperand))
    return failure();
  dynamic.push_back(operand);
  values.push_back(ShapedType::kDynamic);
  return success();
}

static void printSize(OpAsmPrinter &printer, int64_t size, OperandRange::iterator &next) {
  if (ShapedType::isDynamic(size))
    printer << *next++;
  else
    printer << size;
}

ParseResult parseSizes(OpAsmParser &parser, SmallVectorImpl<OpAsmParser::UnresolvedOperand> &dynamic,
                       DenseI64ArrayAttr &sizes) {
  SmallVector<int64_t> values;
  auto parseOne = [&] { return parseSize(parser, dynamic, values); };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, parseOne, " in a list of sizes"))
    return failure();
  sizes = parser.getBuilder().getDenseI64ArrayAttr(values);
  return success();
}

void printSizes(OpAsmPrinter &printer, Operation *, OperandRange dynamic, DenseI64ArrayAttr sizes) {
  auto next = dynamic.begin();
  printer << '[';
  llvm::interleaveComma(sizes.asArrayRef(), printer, [&](int64_t size) { printSize(printer, size, next); });
  printer << ']';
}

ParseResult parseCountAndSeed(OpAsmParser &parser, SmallVectorImpl<OpAsmParser::UnresolvedOperand> &dynamic,
                              DenseI64ArrayAttr &sizes) {
  SmallVector<int64_t> values;
  if (parser.parseKeyword("count") || parseSize(parser, dynamic, values) || parser.parseKeyword("seed") ||
      parseSize(parser, dynamic, values))
    return failure();
  sizes = parser.getBuilder().getDenseI64ArrayAttr(values);
  return success();
}

void printCountAndSeed(OpAsmPrinter &printer, Operation *, OperandRange dynamic, DenseI64ArrayAttr sizes) {
  auto next = dynamic.begin();
  for (auto [word, size] : llvm::zip(ArrayRef<StringRef>{"count ", " seed "}, sizes.asArrayRef())) {
    printer << word;
    printSize(printer, size, next);
  }
}

Value Sizes::dynamicSize(unsigned index) const {
  if (!ShapedType::isDynamic(values[index]))
    return {};
  return dynamic[llvm::count_if(values.take_front(index), ShapedType::isDynamic)];
}

IntExpr Sizes::expr(unsigned index) const {
  if (Value size = dynamicSize(index))
    return symbol(Symbol::Parameter, cast<BlockArgument>(size).getArgNumber());
  return values[index];
}

Value Sizes::value(unsigned index, const PredicateFrame &frame) const {
  if (Value size = dynamicSize(index))
    return frame.arguments->values.lookup(size);
  return frame.constant(values[index]);
}

SizeBound Sizes::bound(unsigned index) const {
  if (Value size = dynamicSize(index))
    return {1, cast<BlockArgument>(size).getArgNumber(), 0};
  return {0, 0, values[index]};
}

LogicalResult verifySizes(Operation *op, Sizes sizes, ArrayRef<StringRef> names, int64_t minimum) {
  if (sizes.values.size() != names.size())
    return op->emitOpError("expected ") << names.size() << " sizes (" << llvm::join(names, ", ") << "), got "
                                        << sizes.values.size();
  if (static_cast<size_t>(llvm::count_if(sizes.values, ShapedType::isDynamic)) != sizes.dynamic.size())
    return op->emitOpError("expected one operand for each run-time size");
  for (auto [index, name] : llvm::enumerate(names)) {
    int64_t size = sizes.values[index];
    if (Value dynamic = sizes.dynamicSize(index)) {
      auto argument = dyn_cast<BlockArgument>(dynamic);
      if (!argument || !isa<PatternOp>(argument.getOwner()->getParentOp()))
        return op->emitOpError("expected ") << name << " to be a number or an argument of the pattern";
    } else if (size < minimum) {
      return op->emitOpError("expected ") << name << " >= " << minimum << ", got " << size;
    } else if (size > std::numeric_limits<int32_t>::max()) {
      return op->emitOpError("expected ") << name << " to fit in 32 bits, got " << size;
    }
  }
  return success();
}

} // namespace heddle::attn
