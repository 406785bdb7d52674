//===- CallColumns.cpp - limits of columns become words of the skeleton -----===//
// Gives the calls of columns_below the name that the skeleton defines. How the columns of a tile lie in the bits of a
// word is the skeleton's choice, so the function behind the name is no part of a pattern's module.
#include "codegen/Emit/Passes.h"
#include "codegen/Emit/PatternModule.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"

using namespace mlir;

namespace heddle {
namespace {

class CallColumnsPass : public PassWrapper<CallColumnsPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CallColumnsPass)

  llvm::StringRef getArgument() const override { return "heddle-call-columns"; }
  llvm::StringRef getDescription() const override { return "Call the skeleton's words of columns"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<emitc::EmitCDialect>(); }
  void runOnOperation() override {
    getOperation().walk([](func::CallOp call) {
      if (call.getCallee() != kColumnsBelowSymbol)
        return;
      OpBuilder builder(call);
      auto named = emitc::CallOpaqueOp::create(builder, call.getLoc(), call.getResultTypes(), "Columns::below",
                                               call.getOperands());
      call.replaceAllUsesWith(named.getResults());
      call.erase();
    });
    if (auto declaration = getOperation().lookupSymbol<func::FuncOp>(kColumnsBelowSymbol))
      declaration.erase();
  }
};

} // namespace

std::unique_ptr<Pass> createCallColumnsPass() { return std::make_unique<CallColumnsPass>(); }

} // namespace heddle
