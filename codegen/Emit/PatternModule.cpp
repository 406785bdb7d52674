//===- PatternModule.cpp - the generated functions of one pattern -----------===//
// The list of generated functions and the check of a module against it. Change the list together
// with docs/architecture.md and with the wrapper text in PatternWrapper.cpp.
#include "codegen/Emit/PatternModule.h"
#include "codegen/Emit/PatternInfo.h"
#include "dialect/IR/Operands.h"

using namespace mlir;

namespace heddle {

llvm::ArrayRef<PatternFunction> patternFunctions() {
  static const std::vector<PatternFunction> functions = {
      {"pattern_variant", true, {}, PatternResult::i32},
      {"pattern_query_rate", false, {"variant"}, PatternResult::i32},
      {"pattern_key_rate", false, {"variant", "branch"}, PatternResult::i32},
      {"pattern_key_residue", true, {"variant", "branch", "tile_first"}, PatternResult::i32},
      {"pattern_next_range",
       true,
       {"variant", "branch", "tile_first", "tile_last", "block_n", "from", "out"},
       PatternResult::none},
      {"pattern_keep", true, {"branch", "q_position", "k_position"}, PatternResult::i1},
  };
  return functions;
}

const PatternFunction &keptColumnsFunction() {
  static const PatternFunction function = {
      "pattern_kept_columns", true, {"variant", "branch", "q_position", "first_position"}, PatternResult::i32};
  return function;
}

const PatternFunction &bandColumnsFunction() {
  static const PatternFunction function = {
      "pattern_band_columns", true, {"variant", "branch", "q_position", "first_position"}, PatternResult::i32};
  return function;
}

bool hasBandColumns(ModuleOp module, const PatternFunction &words) {
  return bool(module.lookupSymbol<func::FuncOp>(words.symbol));
}

llvm::ArrayRef<PatternFunction> transposedFunctions() {
  static const std::vector<PatternFunction> functions = {
      {"pattern_transposed_key_rate", false, {"variant"}, PatternResult::i32},
      {"pattern_transposed_query_rate", false, {"variant", "branch"}, PatternResult::i32},
      {"pattern_transposed_query_residue", true, {"variant", "branch", "tile_first"}, PatternResult::i32},
      {"pattern_transposed_next_range",
       true,
       {"variant", "branch", "tile_first", "tile_last", "block_m", "from", "out"},
       PatternResult::none},
  };
  return functions;
}

const PatternFunction &transposedKeptColumnsFunction() {
  static const PatternFunction function = {"pattern_transposed_kept_columns",
                                           true,
                                           {"variant", "branch", "k_position", "first_position"},
                                           PatternResult::i32};
  return function;
}

const PatternFunction &transposedBandColumnsFunction() {
  static const PatternFunction function = {"pattern_transposed_band_columns",
                                           true,
                                           {"variant", "branch", "k_position", "first_position"},
                                           PatternResult::i32};
  return function;
}

bool hasTransposedFunctions(ModuleOp module) {
  return bool(module.lookupSymbol<func::FuncOp>(transposedFunctions().front().symbol));
}

std::vector<bool> branchesWithKeptColumns(ModuleOp module, const PatternInfo &info, const PatternFunction &words) {
  std::vector<bool> branches(info.branchCount, false);
  if (auto function = module.lookupSymbol<func::FuncOp>(words.symbol))
    if (auto answered = function->getAttrOfType<DenseBoolArrayAttr>("heddle.branches"))
      branches.assign(answered.asArrayRef().begin(), answered.asArrayRef().end());
  branches.resize(info.branchCount, false);
  return branches;
}

const PatternFunction &documentCountFunction() {
  static const PatternFunction function = {"pattern_document_count", true, {}, PatternResult::i32};
  return function;
}

const PatternFunction &documentRowFunction() {
  static const PatternFunction function = {"pattern_document_row", true, {"document"}, PatternResult::i32};
  return function;
}

bool hasDocumentRows(ModuleOp module) { return bool(module.lookupSymbol<func::FuncOp>(documentRowFunction().symbol)); }

// Those that a module may lack and only kernels ask for.
static const std::vector<const PatternFunction *> &textFunctions() {
  static const std::vector<const PatternFunction *> functions = {
      &keptColumnsFunction(), &bandColumnsFunction(),           &documentCountFunction(),
      &documentRowFunction(), &transposedKeptColumnsFunction(), &transposedBandColumnsFunction()};
  return functions;
}

void dropTextFunctions(ModuleOp module) {
  for (const PatternFunction *function : textFunctions())
    if (auto found = module.lookupSymbol<func::FuncOp>(function->symbol))
      found.erase();
  if (auto below = module.lookupSymbol<func::FuncOp>(kColumnsBelowSymbol))
    below.erase();
}

const PatternFunction &scoreDocumentFunction() {
  static const PatternFunction function = {"pattern_score_document", true, {"q_position"}, PatternResult::i32};
  return function;
}

bool hasScoreDocument(ModuleOp module) {
  return bool(module.lookupSymbol<func::FuncOp>(scoreDocumentFunction().symbol));
}

const PatternFunction &scoreFunction() {
  static const PatternFunction function = {
      "pattern_score", true, {"q_position", "k_position", kScoreDocument, "score"}, PatternResult::f32};
  return function;
}

const PatternFunction &scoreGradientFunction() {
  static const PatternFunction function = {
      "pattern_score_gradient", true, {"q_position", "k_position", kScoreDocument, "score"}, PatternResult::f32};
  return function;
}

bool hasScoreGradient(ModuleOp module) {
  return bool(module.lookupSymbol<func::FuncOp>(scoreGradientFunction().symbol));
}

std::string argumentGradientSymbol(int argument) { return "pattern_argument_gradient_" + std::to_string(argument); }
std::string argumentPlaceSymbol(int argument) { return "pattern_argument_place_" + std::to_string(argument); }

const PatternFunction &sinkFunction() {
  static const PatternFunction function = {"pattern_sink", true, {}, PatternResult::f32};
  return function;
}

std::vector<PatternFunction> functionsOf(const PatternInfo &info) {
  std::vector<PatternFunction> functions = patternFunctions().vec();
  if (info.hasScore)
    functions.push_back(scoreFunction());
  if (info.hasSink)
    functions.push_back(sinkFunction());
  return functions;
}

std::vector<std::string> contextWordNames(const PatternInfo &info) {
  std::vector<std::string> names = {"batch", "head", "heads", "seqlen_q", "seqlen_k", "q_origin", "k_origin"};
  for (int i = 0; i < info.paramCount; ++i)
    names.push_back("param_" + std::to_string(i));
  return names;
}

std::vector<std::string> contextArgumentNames(const PatternInfo &info) {
  std::vector<std::string> names = contextWordNames(info);
  for (const PatternOperand &operand : info.operands)
    names.push_back("operand_" + std::to_string(operand.argument));
  return names;
}

MemRefType operandTypeOf(MLIRContext *context, const PatternOperand &operand) {
  return attn::loweredOperandType(attn::typeOf(context, operand.element));
}

std::vector<std::string> argumentNames(const PatternFunction &function, const PatternInfo &info) {
  std::vector<std::string> names;
  if (function.takesContext)
    names = contextArgumentNames(info);
  names.insert(names.end(), function.arguments.begin(), function.arguments.end());
  return names;
}

static FunctionType expectedType(MLIRContext *context, const PatternFunction &function, const PatternInfo &info) {
  Type i32 = IntegerType::get(context, 32), f32 = Float32Type::get(context);
  llvm::SmallVector<Type> inputs;
  if (function.takesContext) {
    inputs.assign(contextWordNames(info).size(), i32);
    for (const PatternOperand &operand : info.operands)
      inputs.push_back(operandTypeOf(context, operand));
  }
  for (llvm::StringRef name : function.arguments)
    inputs.push_back(name == "out" ? Type(MemRefType::get({5}, i32)) : name == "score" ? f32 : i32);
  llvm::SmallVector<Type> results;
  switch (function.result) {
  case PatternResult::none:
    break;
  case PatternResult::i32:
    results.push_back(i32);
    break;
  case PatternResult::i1:
    results.push_back(IntegerType::get(context, 1));
    break;
  case PatternResult::f32:
    results.push_back(f32);
    break;
  }
  return FunctionType::get(context, inputs, results);
}

static LogicalResult verifyFunction(func::FuncOp found, const PatternFunction &function, const PatternInfo &info) {
  FunctionType expected = expectedType(found.getContext(), function, info);
  if (found.getFunctionType() != expected)
    return found.emitError() << "pattern '" << info.name << "': expected '" << function.symbol << "' of type "
                             << expected << ", got " << found.getFunctionType();
  if (found.isExternal())
    return found.emitError() << "pattern '" << info.name << "': '" << function.symbol << "' has no body";
  return success();
}

LogicalResult verifyPatternModule(ModuleOp module, const PatternInfo &info) {
  std::vector<PatternFunction> functions = functionsOf(info);
  if (hasTransposedFunctions(module))
    llvm::append_range(functions, transposedFunctions());
  for (const PatternFunction &function : functions) {
    auto found = module.lookupSymbol<func::FuncOp>(function.symbol);
    if (!found)
      return module.emitError() << "pattern '" << info.name << "' has no function '" << function.symbol << "'";
    if (failed(verifyFunction(found, function, info)))
      return failure();
  }
  std::vector<const PatternFunction *> others = textFunctions();
  others.push_back(&scoreDocumentFunction());
  others.push_back(&scoreGradientFunction());
  for (const PatternFunction *function : others)
    if (auto found = module.lookupSymbol<func::FuncOp>(function->symbol);
        found && failed(verifyFunction(found, *function, info)))
      return failure();
  return success();
}

} // namespace heddle
