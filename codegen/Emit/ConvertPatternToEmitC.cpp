// Drives the EmitC conversion patterns of arith, scf, memref and func in one full conversion, so that
// no cast is left behind and nothing passes silently, and gives every function its device form.
#include "codegen/Emit/Passes.h"
#include "dialect/IR/Operands.h"
#include "mlir/Conversion/ArithToEmitC/ArithToEmitC.h"
#include "mlir/Conversion/FuncToEmitC/FuncToEmitC.h"
#include "mlir/Conversion/MemRefToEmitC/MemRefToEmitC.h"
#include "mlir/Conversion/SCFToEmitC/SCFToEmitC.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/EmitC/Transforms/TypeConversions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace heddle {
namespace {

// Appends `function` behind everything that it calls. Recursion is not possible in generated
// functions; if it occurs, the set ends it and the C++ compiler reports the missing declaration.
void appendCalleesFirst(func::FuncOp function, llvm::SmallPtrSetImpl<Operation *> &started,
                        llvm::SetVector<Operation *> &order) {
  if (!started.insert(function).second)
    return;
  function.walk([&](func::CallOp call) {
    auto module = function->getParentOfType<ModuleOp>();
    if (auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee()))
      appendCalleesFirst(callee, started, order);
  });
  order.insert(function);
}

void sortCalleesFirst(ModuleOp module) {
  llvm::SmallPtrSet<Operation *, 16> started;
  llvm::SetVector<Operation *> order;
  for (auto function : module.getOps<func::FuncOp>())
    appendCalleesFirst(function, started, order);
  for (Operation *function : order)
    function->moveBefore(module.getBody(), module.getBody()->end());
}

// Tensor operands are memrefs without an end: pointers in C++, and no arrays.
std::optional<Type> pointerTypeOf(MemRefType type) {
  if (type.getShape() != llvm::ArrayRef<int64_t>(attn::kEndlessOperand))
    return std::nullopt;
  Type element = type.getElementType();
  const std::string name = element.isF32() ? "float" : "int" + std::to_string(element.getIntOrFloatBitWidth()) + "_t";
  return emitc::OpaqueType::get(type.getContext(), "const " + name + " *");
}

struct LoadThroughPointer : OpConversionPattern<memref::LoadOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(memref::LoadOp load, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!isa<emitc::OpaqueType>(adaptor.getMemref().getType()))
      return rewriter.notifyMatchFailure(load, "an array");
    auto element = emitc::SubscriptOp::create(rewriter, load.getLoc(), emitc::LValueType::get(load.getType()),
                                              adaptor.getMemref(), adaptor.getIndices());
    rewriter.replaceOpWithNewOp<emitc::LoadOp>(load, load.getType(), element);
    return success();
  }
};

class ConvertPatternToEmitCPass : public PassWrapper<ConvertPatternToEmitCPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ConvertPatternToEmitCPass)

  llvm::StringRef getArgument() const override { return "heddle-convert-pattern-to-emitc"; }
  llvm::StringRef getDescription() const override {
    return "Convert the generated functions of a pattern to EmitC device functions";
  }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<emitc::EmitCDialect>(); }
  void runOnOperation() override {
    sortCalleesFirst(getOperation());
    if (failed(convert()))
      return signalPassFailure();
    OpBuilder builder(&getContext());
    ArrayAttr specifiers = builder.getStrArrayAttr({"static", "__device__", "__forceinline__"});
    for (auto function : getOperation().getOps<emitc::FuncOp>())
      function.setSpecifiersAttr(specifiers);
  }

private:
  LogicalResult convert() {
    TypeConverter converter;
    converter.addConversion([](Type type) -> std::optional<Type> {
      return emitc::isSupportedEmitCType(type) ? std::optional<Type>(type) : std::nullopt;
    });
    populateMemRefToEmitCTypeConversion(converter);
    converter.addConversion(pointerTypeOf); // before the one above: what is added last is asked first
    populateEmitCSizeTTypeConversions(converter);
    RewritePatternSet patterns(&getContext());
    populateArithToEmitCPatterns(converter, patterns);
    populateMathFunctionPatterns(converter, patterns);
    populateSCFToEmitCConversionPatterns(patterns, converter);
    populateMemRefToEmitCConversionPatterns(patterns, converter);
    patterns.add<LoadThroughPointer>(converter, &getContext(), /*benefit=*/2);
    populateFuncToEmitCPatterns(converter, patterns);
    ConversionTarget target(getContext());
    target.addLegalDialect<emitc::EmitCDialect>();
    target.addLegalOp<ModuleOp>();
    target.markUnknownOpDynamicallyLegal([](Operation *) { return false; });
    return applyFullConversion(getOperation(), target, std::move(patterns));
  }
};

} // namespace

std::unique_ptr<Pass> createConvertPatternToEmitCPass() { return std::make_unique<ConvertPatternToEmitCPass>(); }

} // namespace heddle
