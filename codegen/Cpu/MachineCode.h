//===- MachineCode.h - a module as code of this machine ----------------------===//
// Owns the way from a module of generated functions to addresses, with LLVM ORC.
#pragma once

#include "llvm/Support/Error.h"
#include "llvm/Support/LogicalResult.h"
#include <memory>
#include <string>

namespace mlir {
class ExecutionEngine;
class MLIRContext;
class ModuleOp;
} // namespace mlir

namespace heddle {

// The dialects that compilation goes through. Not while another thread uses the context.
void loadMachineDialects(mlir::MLIRContext *context);

// Lowers the module, in place, to the LLVM dialect. Failures are diagnostics at its ops.
llvm::LogicalResult lowerToLlvm(mlir::ModuleOp module);

// Owns the code; addresses are good while it lives.
class MachineCode {
public:
  // Of a module that lowerToLlvm has lowered.
  static llvm::Expected<MachineCode> compile(mlir::ModuleOp lowered);
  MachineCode(MachineCode &&) noexcept;
  ~MachineCode();

  llvm::Expected<void *> address(const std::string &symbol) const;

private:
  explicit MachineCode(std::unique_ptr<mlir::ExecutionEngine> engine);
  std::unique_ptr<mlir::ExecutionEngine> engine;
};

} // namespace heddle
