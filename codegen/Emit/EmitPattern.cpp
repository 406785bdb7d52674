// Fixes the order of the passes. Expressions are never formed: EmitC would duplicate shared values,
// and one local variable per operation compiles just as fast.
#include "codegen/Emit/EmitPattern.h"
#include "codegen/Emit/Passes.h"
#include "codegen/Emit/PatternInfo.h"
#include "codegen/Emit/SourceWriter.h"
#include "dialect/IR/ListCalls.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/Cpp/CppEmitter.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/raw_ostream.h"
#include <set>

using namespace mlir;

namespace heddle {

static LogicalResult lowerToEmitC(ModuleOp module, BoundedScores bounded) {
  PassManager passes(module.getContext());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  if (bounded == BoundedScores::fast)
    passes.addPass(createFastTanhPass());
  passes.addPass(arith::createArithExpandOpsPass());
  passes.addPass(createCSEPass());
  passes.addPass(createCallDevicePass());
  passes.addPass(createConvertPatternToEmitCPass());
  passes.addPass(createInlineConstantsPass());
  passes.addPass(createKeepLoopsRolledPass());
  return passes.run(module);
}

// The printed arguments are v1, v2, ...; the comment above each function says what they are.
static std::string describeArguments(const PatternFunction &function, const PatternInfo &info) {
  std::vector<std::string> items;
  for (const std::string &name : argumentNames(function, info))
    items.push_back(name + " v" + std::to_string(items.size() + 1));
  return joinComma(items);
}

static LogicalResult printFunction(emitc::FuncOp function, const PatternInfo &info, SourceWriter &writer) {
  for (const PatternFunction &known : patternFunctions())
    if (function.getName() == known.symbol) {
      writer.comment(describeArguments(known, info));
      if (known.isTemplate)
        writer.line("template <class Columns>");
    }
  std::string body;
  llvm::raw_string_ostream stream(body);
  if (failed(emitc::translateToCpp(function, stream)))
    return failure();
  writer.text(body);
  writer.line();
  return success();
}

// The files of the lists that the functions ask; the first is what all of them need.
static std::vector<std::string> deviceFilesOf(ModuleOp module) {
  std::set<std::string> files;
  for (auto function : module.getOps<func::FuncOp>())
    if (auto file = function->getAttrOfType<StringAttr>(attn::kDeviceFile))
      files.insert(file.str());
  if (files.empty())
    return {};
  files.erase(attn::kWarpFile);
  std::vector<std::string> ordered = {attn::kWarpFile};
  ordered.insert(ordered.end(), files.begin(), files.end());
  return ordered;
}

static bool readsArgument(emitc::FuncOp function, unsigned fromLast) {
  return !function.getArgument(function.getNumArguments() - 1 - fromLast).use_empty();
}

static std::vector<ArgumentGradientTraits> argumentGradientsOf(ModuleOp lowered, const PatternInfo &info) {
  std::vector<ArgumentGradientTraits> gradients;
  for (int argument = 0; argument < info.paramCount; ++argument) {
    auto derivative = lowered.lookupSymbol<emitc::FuncOp>(symbolOf(Generated::ArgumentGradient, argument));
    auto place = lowered.lookupSymbol<emitc::FuncOp>(symbolOf(Generated::ArgumentPlace, argument));
    if (derivative && place)
      gradients.push_back({argument, readsArgument(derivative, 0), readsArgument(place, 2), readsArgument(place, 1)});
  }
  return gradients;
}

FailureOr<std::string> emitPatternFunctions(ModuleOp module, const PatternInfo &info, BoundedScores bounded) {
  if (failed(verifyPatternModule(module, info)))
    return failure();
  OwningOpRef<ModuleOp> lowered = module.clone();
  if (failed(lowerToEmitC(*lowered, bounded)))
    return failure();
  SourceWriter writer;
  const std::vector<std::string> files = deviceFilesOf(module);
  for (const std::string &file : files)
    writer.include(file);
  for (auto function : lowered->getOps<emitc::FuncOp>())
    if (failed(printFunction(function, info, writer)))
      return failure();
  PatternTraits traits;
  traits.branchesWithWords = branchesWithKeptColumns(module, info, kQueryTiles.keptColumns);
  traits.hasBandColumns = hasFunction(module, kQueryTiles.bandColumns);
  traits.hasDocumentRows = hasFunction(module, Generated::DocumentRow);
  traits.isTransposed = hasKeyTiles(module);
  traits.transposedBranchesWithWords = branchesWithKeptColumns(module, info, kKeyTiles.keptColumns);
  traits.hasTransposedBandColumns = hasFunction(module, kKeyTiles.bandColumns);
  traits.hasScoreDocument = hasFunction(module, Generated::ScoreDocument);
  traits.hasScoreGradient = hasFunction(module, Generated::ScoreGradient);
  traits.argumentGradients = argumentGradientsOf(*lowered, info);
  traits.asksTogether = !files.empty();
  writer.text(patternWrapperText(info, traits));
  return writer.take();
}

} // namespace heddle
