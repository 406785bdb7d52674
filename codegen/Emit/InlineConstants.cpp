// Rewrites integer emitc.constant ops as emitc.literal ops. Only integers: their text is exact, while
// a float would need a round-trip spelling of its own.
#include "codegen/Emit/Passes.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace heddle {
namespace {

// The C++ spelling of an integer constant, or nothing where a literal would change its type. The
// smallest i32 has no literal of type int: -2147483648 is the negation of a long.
std::optional<std::string> spell(emitc::ConstantOp constant) {
  auto value = dyn_cast<IntegerAttr>(constant.getValue());
  if (!value)
    return std::nullopt;
  Type type = constant.getType();
  if (type.isInteger(1))
    return value.getValue().isZero() ? "false" : "true";
  if (isa<emitc::SizeTType>(type))
    return std::to_string(value.getValue().getZExtValue());
  if (!type.isSignlessInteger(32))
    return std::nullopt;
  if (value.getValue().isMinSignedValue())
    return "(-2147483647 - 1)";
  return std::to_string(value.getValue().getSExtValue());
}

class InlineConstantsPass : public PassWrapper<InlineConstantsPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InlineConstantsPass)

  llvm::StringRef getArgument() const override { return "heddle-inline-constants"; }
  llvm::StringRef getDescription() const override {
    return "Print integer constants in place instead of through a variable";
  }
  void runOnOperation() override {
    getOperation().walk([](emitc::ConstantOp constant) {
      std::optional<std::string> text = spell(constant);
      if (!text)
        return;
      OpBuilder builder(constant);
      auto literal = emitc::LiteralOp::create(builder, constant.getLoc(), constant.getType(), *text);
      constant.replaceAllUsesWith(literal.getResult());
      constant.erase();
    });
  }
};

} // namespace

std::unique_ptr<Pass> createInlineConstantsPass() { return std::make_unique<InlineConstantsPass>(); }

} // namespace heddle
