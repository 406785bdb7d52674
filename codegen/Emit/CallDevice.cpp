// Gives calls of declarations the name that device code defines. How the columns of a tile lie in the bits of a word is
// the skeleton's choice, and the lists of cells are asked by a whole warp, so the functions behind these names are no
// part of a pattern's module.
#include "codegen/Emit/Passes.h"
#include "codegen/Emit/PatternModule.h"
#include "dialect/IR/ListCalls.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"

using namespace mlir;

namespace heddle {
namespace {

/// Empty for a function that the text defines itself.
llvm::StringRef deviceNameOf(func::FuncOp function) {
  if (function.getName() == kColumnsBelow)
    return "Columns::below";
  auto name = function->getAttrOfType<StringAttr>(attn::kDeviceFunction);
  return name ? name.getValue() : llvm::StringRef();
}

class CallDevicePass : public PassWrapper<CallDevicePass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CallDevicePass)

  llvm::StringRef getArgument() const override { return "heddle-call-device"; }
  llvm::StringRef getDescription() const override { return "Call the functions that device code defines"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<emitc::EmitCDialect>(); }
  void runOnOperation() override {
    getOperation().walk([&](func::CallOp call) {
      auto callee = getOperation().lookupSymbol<func::FuncOp>(call.getCallee());
      if (!callee || deviceNameOf(callee).empty())
        return;
      OpBuilder builder(call);
      auto named = emitc::CallOpaqueOp::create(builder, call.getLoc(), call.getResultTypes(), deviceNameOf(callee),
                                               call.getOperands());
      call.replaceAllUsesWith(named.getResults());
      call.erase();
    });
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (!deviceNameOf(function).empty())
        function.erase();
  }
};

} // namespace

std::unique_ptr<Pass> createCallDevicePass() { return std::make_unique<CallDevicePass>(); }

} // namespace heddle
