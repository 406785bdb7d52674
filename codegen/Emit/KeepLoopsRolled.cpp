// Writes a pragma in front of every loop. Loops over cells run once or twice; unrolled, their copies only take
// registers from the warps that walk the tiles, and time of the device compiler.
#include "codegen/Emit/Passes.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace heddle {
namespace {

class KeepLoopsRolledPass : public PassWrapper<KeepLoopsRolledPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(KeepLoopsRolledPass)

  llvm::StringRef getArgument() const override { return "heddle-keep-loops-rolled"; }
  llvm::StringRef getDescription() const override { return "Forbid the device compiler to unroll loops"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<emitc::EmitCDialect>(); }
  void runOnOperation() override {
    getOperation().walk([](emitc::ForOp loop) {
      OpBuilder builder(loop);
      emitc::VerbatimOp::create(builder, loop.getLoc(), "#pragma unroll 1");
    });
  }
};

} // namespace

std::unique_ptr<Pass> createKeepLoopsRolledPass() { return std::make_unique<KeepLoopsRolledPass>(); }

} // namespace heddle
