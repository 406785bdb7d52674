#include "codegen/Emit/PatternModule.h"
#include "codegen/Emit/PatternInfo.h"
#include "dialect/IR/Operands.h"

using namespace mlir;

namespace heddle {

bool hasKeyTiles(ModuleOp module) { return hasFunction(module, kKeyTiles.rowRate); }

bool isRequired(const PatternFunction &function, const PatternInfo &info, bool hasKeyTiles) {
  switch (function.presence) {
  case FunctionPresence::Always:
    return true;
  case FunctionPresence::WithScore:
    return info.hasScore;
  case FunctionPresence::WithSink:
    return info.hasSink;
  case FunctionPresence::WithKeyTiles:
    return hasKeyTiles;
  case FunctionPresence::Optional:
  case FunctionPresence::ForText:
  case FunctionPresence::ByArgument:
    break;
  }
  return false;
}

std::vector<bool> branchesWithKeptColumns(ModuleOp module, const PatternInfo &info, Generated words) {
  std::vector<bool> branches(info.branchCount, false);
  if (auto function = module.lookupSymbol<func::FuncOp>(patternFunction(words).symbol))
    if (auto answered = function->getAttrOfType<DenseBoolArrayAttr>(kBranches))
      branches.assign(answered.asArrayRef().begin(), answered.asArrayRef().end());
  branches.resize(info.branchCount, false);
  return branches;
}

void dropTextFunctions(ModuleOp module) {
  for (const PatternFunction &function : patternFunctions())
    if (function.presence == FunctionPresence::ForText)
      if (auto found = module.lookupSymbol<func::FuncOp>(function.symbol))
        found.erase();
  if (auto below = module.lookupSymbol<func::FuncOp>(kColumnsBelow))
    below.erase();
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
  llvm::append_range(names, function.extra());
  return names;
}

static FunctionType expectedType(MLIRContext *context, const PatternFunction &function, const PatternInfo &info) {
  llvm::SmallVector<Type> inputs;
  if (function.takesContext) {
    inputs.assign(contextWordNames(info).size(), IntegerType::get(context, 32));
    for (const PatternOperand &operand : info.operands)
      inputs.push_back(operandTypeOf(context, operand));
  }
  llvm::append_range(inputs, extraTypes(context, function));
  return FunctionType::get(context, inputs, resultTypes(context, function));
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
  const bool walksKeyTiles = hasKeyTiles(module);
  for (const PatternFunction &function : patternFunctions()) {
    auto found = module.lookupSymbol<func::FuncOp>(function.symbol);
    if (!found && isRequired(function, info, walksKeyTiles))
      return module.emitError() << "pattern '" << info.name << "' has no function '" << function.symbol << "'";
    if (found && failed(verifyFunction(found, function, info)))
      return failure();
  }
  return success();
}

} // namespace heddle
