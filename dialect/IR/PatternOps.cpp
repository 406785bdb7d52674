// The ops attn.pattern and attn.softmax.
#include "dialect/IR/Attn.h"
#include "dialect/IR/Limits.h"
#include "dialect/IR/PatternOperands.h"
#include "dialect/IR/ScoreDocuments.h"
#include "dialect/IR/RealWord.h"
#include "dialect/IR/Reals.h"
#include "dialect/IR/Sizes.h"

#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;

#define GET_OP_CLASSES
#include "dialect/IR/AttnOps.cpp.inc"

namespace heddle::attn {
namespace {

constexpr StringLiteral kName = "attn.name", kDefault = "attn.default", kMinimum = "attn.min", kMaximum = "attn.max",
                        kDoc = "attn.doc";

/// Keeps the name that the author gave an argument, so that `--set left=7` can find it.
void rememberName(OpAsmParser::Argument &argument, MLIRContext *context) {
  NamedAttrList attributes(argument.attrs);
  attributes.set(kName, StringAttr::get(context, argument.ssaName.name.drop_front()));
  argument.attrs = attributes.getDictionary(context);
}

/// An attribute of an argument, if there is one, has the argument's type.
LogicalResult verifyBoundTypes(PatternOp pattern, unsigned index) {
  for (StringRef name : {kDefault, kMinimum, kMaximum}) {
    Attribute bound = pattern.getArgAttr(index, name);
    auto typed = dyn_cast_if_present<TypedAttr>(bound);
    if (bound && (!typed || typed.getType() != pattern.getArgumentTypes()[index]))
      return pattern.emitOpError("expected ") << name << " of '" << pattern.getParameterName(index) << "' to be "
                                              << pattern.getArgumentTypes()[index] << ", got " << bound;
  }
  return success();
}

LogicalResult verifyRealDefault(PatternOp pattern, unsigned index) {
  if (std::optional<int64_t> word = pattern.getParameterDefault(index)) {
    double value = realOfWord(*word);
    if (!(value >= pattern.getRealMinimum(index) && value <= pattern.getRealMaximum(index)) || !std::isfinite(value))
      return pattern.emitOpError("expected a finite attn.default of '")
             << pattern.getParameterName(index) << "' between attn.min and attn.max, got " << value;
  }
  return success();
}

LogicalResult verifyTensor(PatternOp pattern, unsigned index) {
  if (!isOperandType(pattern.getArgumentTypes()[index]))
    return pattern.emitOpError("expected tensor '")
           << pattern.getParameterName(index) << "' to be a row-major memref of "
           << elementList(&ElementTraits::isKnown, &ElementTraits::mlirName) << " with at least one dimension, got "
           << pattern.getArgumentTypes()[index];
  for (int64_t extent : cast<MemRefType>(pattern.getArgumentTypes()[index]).getShape())
    if (!ShapedType::isDynamic(extent) && extent > std::numeric_limits<int32_t>::max())
      return pattern.emitOpError("expected extents of tensor '")
             << pattern.getParameterName(index) << "' to fit in 32 bits, got " << extent;
  return success();
}

/// An attribute that nobody reads would only look as if it did something.
LogicalResult verifyAttributes(PatternOp pattern, unsigned index) {
  static constexpr StringLiteral ofReals[] = {kDefault, kMinimum, kMaximum, kDoc},
                                 ofSizes[] = {kDefault, kMinimum, kDoc, kWhole}, ofTensors[] = {kDoc};
  const bool isReal = pattern.isRealParameter(index), isTensor = pattern.isOperand(index);
  const ArrayRef<StringLiteral> known = isReal ? ArrayRef(ofReals) : isTensor ? ArrayRef(ofTensors) : ArrayRef(ofSizes);
  for (NamedAttribute attribute : function_interface_impl::getArgAttrs(pattern, index))
    if (StringRef name = attribute.getName().getValue();
        name.starts_with("attn.") && name != kName && !llvm::is_contained(known, name)) {
      InFlightDiagnostic error = pattern.emitOpError("expected no ")
                                 << name << " of "
                                 << (isReal     ? "f32"
                                     : isTensor ? "tensor"
                                                : "i32")
                                 << " '" << pattern.getParameterName(index) << "', which takes ";
      llvm::interleaveComma(known, error);
      return error;
    }
  if (Attribute doc = pattern.getArgAttr(index, kDoc); doc && !isa<StringAttr>(doc))
    return pattern.emitOpError("expected attn.doc of '")
           << pattern.getParameterName(index) << "' to be a string, got " << doc;
  return success();
}

LogicalResult verifyParameter(PatternOp pattern, unsigned index) {
  if (pattern.isOperand(index))
    return verifyTensor(pattern, index);
  if (!pattern.isRealParameter(index) && !pattern.getArgumentTypes()[index].isInteger(32))
    return pattern.emitOpError("expected arguments to be i32, f32 or a memref, argument ")
           << index << " is " << pattern.getArgumentTypes()[index];
  if (failed(verifyBoundTypes(pattern, index)))
    return failure();
  if (pattern.isRealParameter(index))
    return verifyRealDefault(pattern, index);
  std::optional<int64_t> value = pattern.getParameterDefault(index);
  if (value && *value < pattern.getParameterMinimum(index))
    return pattern.emitOpError("expected attn.default >= attn.min of '")
           << pattern.getParameterName(index) << "', got " << *value << " < " << pattern.getParameterMinimum(index);
  return success();
}

constexpr const char *kNoSoftmax = "expected the pattern to end with attn.softmax";

/// Asked while parsing, because MLIR's own check of blocks comes before every verifier and only misses "a terminator".
ParseResult requireSoftmax(OpAsmParser &parser, Region &body) {
  if (body.empty() || body.front().empty())
    return emitError(parser.getEncodedSourceLoc(parser.getNameLoc()), kNoSoftmax) << ", the body is empty";
  Operation &last = body.front().back();
  if (isa<SoftmaxOp>(last))
    return success();
  return emitError(last.getLoc(), kNoSoftmax) << " union(%mask), found '" << last.getName() << "' last";
}

} // namespace

//===-- pattern ---------------------------------------------------------------===//

ParseResult PatternOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  if (parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(), result.attributes))
    return failure();
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Type> resultTypes;
  SmallVector<DictionaryAttr> resultAttrs;
  bool isVariadic = false;
  if (function_interface_impl::parseFunctionSignatureWithArguments(parser, /*allowVariadic=*/false, arguments,
                                                                   isVariadic, resultTypes, resultAttrs))
    return failure();
  SmallVector<Type> types;
  for (OpAsmParser::Argument &argument : arguments) {
    if (argument.ssaName.name.empty()) // MLIR's signatures of declarations have none
      return parser.emitError(parser.getNameLoc(), "expected a name for every argument, as in %left: i32, got ")
             << argument.type << " alone";
    rememberName(argument, parser.getContext());
    types.push_back(argument.type);
  }
  result.addAttribute(getFunctionTypeAttrName(result.name),
                      TypeAttr::get(FunctionType::get(parser.getContext(), types, resultTypes)));
  if (succeeded(parser.parseOptionalKeyword("q_origin"))) {
    StringRef word;
    if (parser.parseLParen() || parser.parseKeyword(&word) || parser.parseRParen())
      return failure();
    std::optional<Origin> origin = symbolizeOrigin(word);
    if (!origin)
      return parser.emitError(parser.getCurrentLocation(), "expected q_origin(start), (end) or (given), got ") << word;
    result.addAttribute(getQOriginAttrName(result.name), OriginAttr::get(parser.getContext(), *origin));
  }
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  call_interface_impl::addArgAndResultAttrs(parser.getBuilder(), result, arguments, resultAttrs,
                                            getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
  Region &body = *result.addRegion();
  if (parser.parseRegion(body, arguments))
    return failure();
  return requireSoftmax(parser, body);
}

void PatternOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(';
  llvm::interleaveComma(getBody().getArguments(), printer, [&](BlockArgument argument) {
    NamedAttrList attributes(getArgAttrDict(argument.getArgNumber()));
    attributes.erase(kName);
    printer.printRegionArgument(argument, attributes);
  });
  printer << ')';
  if (getQOrigin() != Origin::start)
    printer << " q_origin(" << stringifyOrigin(getQOrigin()) << ')';
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {getSymNameAttrName(), getFunctionTypeAttrName(), getQOriginAttrName(),
                                            getArgAttrsAttrName(), getResAttrsAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/true);
}

void PatternOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  for (BlockArgument argument : region.getArguments())
    if (StringRef name = getParameterName(argument.getArgNumber()); !name.empty())
      setName(argument, name);
}

/// Names stand in files, databases, sources of kernels and on screens.
static LogicalResult verifyName(PatternOp pattern, StringRef name) {
  constexpr size_t kMaxNameBytes = 256;
  if (name.size() > kMaxNameBytes)
    return pattern.emitOpError("expected names of at most ") << kMaxNameBytes << " bytes, got " << name.size();
  if (llvm::any_of(name, [](char c) { return llvm::isASCII(c) && !llvm::isPrint(c); }))
    return pattern.emitOpError("expected names without control characters");
  return success();
}

LogicalResult PatternOp::verify() {
  if (failed(verifyName(*this, getSymName())))
    return failure();
  if (!getResultTypes().empty())
    return emitOpError("expected no results");
  for (unsigned index = 0; index < getArgumentTypes().size(); ++index)
    if (failed(verifyName(*this, getParameterName(index))) || failed(verifyParameter(*this, index)) ||
        failed(verifyAttributes(*this, index)))
      return failure();
  return verifyWhole(*this);
}

/// Asked here, as MLIR asks it only behind all verifiers of ops: chains of masks and scores end at their first op.
static LogicalResult verifyOrder(Block &block) {
  for (Operation &op : block)
    for (OpOperand &operand : op.getOpOperands())
      if (Operation *made = operand.get().getDefiningOp();
          made && (made->getBlock() != &block || !made->isBeforeInBlock(&op)))
        return op.emitError("operand #") << operand.getOperandNumber() << " does not dominate this use";
  return success();
}

LogicalResult PatternOp::verifyRegions() {
  Block &block = getBody().front();
  if (block.empty() || !isa<SoftmaxOp>(block.back()))
    return emitOpError(kNoSoftmax);
  for (Operation &op : block.without_terminator())
    if (!isa<MaskOpInterface, ScoreOpInterface>(op))
      return op.emitOpError("expected a mask op or a score op in attn.pattern");
  return failure(failed(verifyOrder(block)) || failed(verifyLimits(*this)) || failed(verifyOperands(*this)) ||
                 failed(verifyWholePositions(*this)) || failed(verifyScoreDocuments(*this)));
}

SoftmaxOp PatternOp::getSoftmax() { return cast<SoftmaxOp>(getBody().front().back()); }

StringRef PatternOp::getParameterName(unsigned index) {
  auto name = getArgAttrOfType<StringAttr>(index, kName);
  return name ? name.getValue() : StringRef();
}
std::optional<int64_t> PatternOp::getParameterDefault(unsigned index) {
  if (auto value = getArgAttrOfType<FloatAttr>(index, kDefault))
    return wordOfReal(value.getValue().convertToFloat());
  if (auto value = getArgAttrOfType<IntegerAttr>(index, kDefault))
    return value.getInt();
  return std::nullopt;
}
bool PatternOp::isOperand(unsigned index) { return isa<BaseMemRefType>(getArgumentTypes()[index]); }
bool PatternOp::isRealParameter(unsigned index) { return getArgumentTypes()[index].isF32(); }
double PatternOp::getRealMinimum(unsigned index) {
  auto value = getArgAttrOfType<FloatAttr>(index, kMinimum);
  return value ? value.getValueAsDouble() : -std::numeric_limits<double>::infinity();
}
double PatternOp::getRealMaximum(unsigned index) {
  auto value = getArgAttrOfType<FloatAttr>(index, kMaximum);
  return value ? value.getValueAsDouble() : std::numeric_limits<double>::infinity();
}
std::string PatternOp::getParameterText(unsigned index, int64_t word) {
  if (isOperand(index))
    return lengthDimension(*this, index) ? "length " + std::to_string(word) : "tensor";
  if (!isRealParameter(index))
    return std::to_string(word);
  SmallString<16> text;
  APFloat(realOfWord(word)).toString(text);
  return text.str().str();
}
int64_t PatternOp::getParameterMinimum(unsigned index) {
  if (isOperand(index))
    return 0;
  int64_t least = 0;
  for (Operation *user : getArgument(index).getUsers())
    if (auto mask = dyn_cast<MaskOpInterface>(user))
      least = std::max(least, mask.leastSize());
  if (auto value = getArgAttrOfType<IntegerAttr>(index, kMinimum))
    least = std::max(least, value.getInt());
  return least;
}
StringRef PatternOp::getParameterDoc(unsigned index) {
  auto doc = getArgAttrOfType<StringAttr>(index, kDoc);
  return doc ? doc.getValue() : StringRef();
}

//===-- softmax ---------------------------------------------------------------===//

LogicalResult SoftmaxOp::verify() {
  if (getBranches().empty())
    return emitOpError("expected at least one branch");
  return verifySink(*this);
}

} // namespace heddle::attn
