// The target machine goes to the optimizer as well: without its cost model nothing is vectorised.
#include "codegen/Cpu/MachineCode.h"
#include "dialect/IR/ListCalls.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>

using namespace mlir;

namespace heddle {

void loadMachineDialects(MLIRContext *context) {
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, LLVM::LLVMDialect, memref::MemRefDialect, scf::SCFDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  context->appendDialectRegistry(registry);
  context->loadDialect<arith::ArithDialect, LLVM::LLVMDialect, memref::MemRefDialect, scf::SCFDialect>();
}

llvm::LogicalResult lowerToLlvm(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(arith::createArithExpandOpsPass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createConvertMathToLibmPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createFinalizeMemRefToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions barePointers;
  barePointers.useBarePtrCallConv = true;
  passes.addPass(createConvertFuncToLLVMPass(barePointers));
  passes.addPass(createReconcileUnrealizedCastsPass());
  return passes.run(module);
}

namespace {

/// The pass x86-compress-evex of LLVM 22 (llvm-project issues 198197 and 191304) makes `vmovmskps` of `vpmovd2m %xmm,
/// %k` and `kmov %k, %reg`, and deletes the mask although a `kand` that overwrites it still reads it. It looks at
/// vectors of 128 and 256 bits; without AVX-512VL these have no masks.
void leaveOutMiscompiledFeatures(llvm::orc::JITTargetMachineBuilder &builder) {
  if (builder.getTargetTriple().isX86())
    builder.addFeatures({"-avx512vl"});
}

enum class Effort { ofCalls, ofLoops };

llvm::CodeGenOptLevel codeGenLevel(Effort effort) {
  return effort == Effort::ofLoops ? llvm::CodeGenOptLevel::Aggressive : llvm::CodeGenOptLevel::None;
}

llvm::Expected<std::unique_ptr<llvm::TargetMachine>> hostTargetMachine(Effort effort) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    return builder.takeError();
  leaveOutMiscompiledFeatures(*builder);
  builder->setCodeGenOptLevel(codeGenLevel(effort));
  return builder->createTargetMachine();
}

llvm::orc::SymbolMap listFunctions(llvm::orc::MangleAndInterner interner) {
  llvm::orc::SymbolMap symbols;
  for (const attn::HostFunction &function : attn::hostFunctions())
    symbols[interner(function.symbol)] = {llvm::orc::ExecutorAddr::fromPtr(function.address),
                                          llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  return symbols;
}

/// Marks functions that none of the given ones calls: they are compiled as they are.
void leaveOthersAsTheyAre(ModuleOp module, const std::vector<std::string> &loops) {
  llvm::StringSet<> called;
  std::vector<std::string> open = loops;
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(name);
    if (function && called.insert(name).second)
      function.walk([&](LLVM::CallOp call) {
        if (const std::optional<StringRef> callee = call.getCallee())
          open.push_back(callee->str());
      });
  }
  Builder builder(module.getContext());
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (!function.isExternal() && !called.contains(function.getName()))
      function.setPassthroughAttr(builder.getStrArrayAttr({"noinline", "optnone"}));
}

} // namespace

MachineCode::MachineCode(std::unique_ptr<ExecutionEngine> engine) : engine(std::move(engine)) {}
MachineCode::MachineCode(MachineCode &&) noexcept = default;
MachineCode::~MachineCode() = default;

llvm::Expected<MachineCode> MachineCode::compile(ModuleOp module, const std::vector<std::string> &loops) {
  const Effort effort = loops.empty() ? Effort::ofCalls : Effort::ofLoops;
  if (!loops.empty())
    leaveOthersAsTheyAre(module, loops);
  auto machine = hostTargetMachine(effort);
  if (!machine)
    return machine.takeError();
  auto optimizerMachine = hostTargetMachine(effort);
  if (!optimizerMachine)
    return optimizerMachine.takeError();
  auto optimize = makeOptimizingTransformer(effort == Effort::ofLoops ? 3 : 0, 0, optimizerMachine->get());
  ExecutionEngineOptions options;
  options.transformer = optimize;
  options.jitCodeGenOptLevel = codeGenLevel(effort);
  options.enableGDBNotificationListener = false;
  options.enablePerfNotificationListener = false;
  auto engine = ExecutionEngine::create(module, options, std::move(*machine));
  if (!engine)
    return engine.takeError();
  (*engine)->registerSymbols(listFunctions);
  return MachineCode(std::move(*engine));
}

llvm::Expected<void *> MachineCode::address(const std::string &symbol) const { return engine->lookup(symbol); }

} // namespace heddle
