//===- ModuleLoader.cpp - a module from text --------------------------------===//
#include "support/ModuleLoader.h"
#include "codegen/Cpu/JitPattern.h"
#include "codegen/Emit/EmitPattern.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include <stdexcept>

using namespace mlir;

namespace heddle::test {

static std::string positionOf(Location location) {
  auto file = dyn_cast<FileLineColLoc>(location);
  if (!file)
    return "unknown";
  return std::to_string(file.getLine()) + ":" + std::to_string(file.getColumn());
}

ModuleLoader::ModuleLoader(const std::string &text) {
  context.loadDialect<arith::ArithDialect, func::FuncDialect, memref::MemRefDialect, scf::SCFDialect>();
  context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      collected += positionOf(diagnostic.getLocation()) + ": " + diagnostic.str() + "\n";
  });
  module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    throw std::runtime_error("the module does not parse:\n" + collected);
}

JitPattern compileForCpu(const HandPattern &pattern) {
  ModuleLoader loader(pattern.module);
  FailureOr<JitPattern> compiled = JitPattern::create(loader.get(), *pattern.info);
  if (failed(compiled))
    throw std::runtime_error(pattern.name() + ": " + loader.errors());
  return *compiled;
}

std::string emitText(const HandPattern &pattern) {
  ModuleLoader loader(pattern.module);
  FailureOr<std::string> text = emitPatternFunctions(loader.get(), *pattern.info);
  if (failed(text))
    throw std::runtime_error(pattern.name() + ": " + loader.errors());
  return *text;
}

} // namespace heddle::test
