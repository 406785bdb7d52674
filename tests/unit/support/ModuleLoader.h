//===- ModuleLoader.h - a module from text ----------------------------------===//
// Owns a context with the dialects of generated functions and the module that was parsed in it, and
// collects the diagnostics instead of printing them.
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_MODULELOADER_H
#define HEDDLE_TESTS_UNIT_SUPPORT_MODULELOADER_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "support/HandPatterns.h"
#include <string>

namespace heddle {
class JitPattern;
}

namespace heddle::test {

class ModuleLoader {
public:
  // Throws std::runtime_error when the text does not parse.
  explicit ModuleLoader(const std::string &text);

  mlir::ModuleOp get() { return *module; }
  // "line:column: message" of every error so far, one per line.
  const std::string &errors() const { return collected; }

private:
  mlir::MLIRContext context;
  std::string collected;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

// Throws std::runtime_error with the diagnostics when compilation fails.
JitPattern compileForCpu(const HandPattern &pattern);
std::string emitText(const HandPattern &pattern);

} // namespace heddle::test

#endif
