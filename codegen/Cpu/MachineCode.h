// Owns the way from a module of generated functions to addresses, with LLVM ORC.
#pragma once

#include "llvm/Support/Error.h"
#include "llvm/Support/LogicalResult.h"
#include <memory>
#include <string>
#include <vector>

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
  // Takes a module that lowerToLlvm has lowered. Functions that are asked once a tile or a partial row cost less than their
  // optimisation, which takes four times as long as all else of a compilation; `loops` over pairs that compute scores, and
  // what they call, are worth it (alibi, 4k keys: 1.2 s of a core against 2.8 s).
  static llvm::Expected<MachineCode> compile(mlir::ModuleOp lowered, const std::vector<std::string> &loops);
  MachineCode(MachineCode &&) noexcept;
  ~MachineCode();

  llvm::Expected<void *> address(const std::string &symbol) const;

private:
  explicit MachineCode(std::unique_ptr<mlir::ExecutionEngine> engine);
  std::unique_ptr<mlir::ExecutionEngine> engine;
};

} // namespace heddle
