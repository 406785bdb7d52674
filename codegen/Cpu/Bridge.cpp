// Pointers are memrefs of static shape, because only those become bare pointers; the shape of an
// output line is an upper bound, nothing is allocated.
#include "codegen/Cpu/Bridge.h"
#include "codegen/Cpu/BridgeMemory.h"
#include "codegen/Emit/PatternInfo.h"
#include "codegen/Emit/PatternModule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace heddle {
namespace {

constexpr int64_t maxLineLength = int64_t(1) << 31;

class BridgeBuilder {
public:
  BridgeBuilder(ModuleOp module, const PatternInfo &info)
      : module(module), info(info), builder(module.getBodyRegion()), loc(module.getLoc()),
        contextWords(contextWordNames(info).size()) {
    builder.setInsertionPointToEnd(module.getBody());
  }

  void addEntry(const PatternFunction &function);
  void addKeepLine(const char *symbol, bool alongKeys);
  void addLine(const std::string &symbol, const std::string &callee, bool alongKeys);
  void addPairEntry(const PatternFunction &function);
  void addScoreLines();

private:
  Type i32() { return builder.getI32Type(); }
  Type contextType() { return MemRefType::get({contextWords}, i32()); }
  Block *startFunction(const std::string &symbol, ArrayRef<Type> inputs, ArrayRef<Type> results);
  SmallVector<Value> loadContext(Value words);
  Value loadOperand(Value contextAddress, size_t index);
  Value callKeep(SmallVector<Value> context, ArrayRef<Value> rest);
  Value scoreDocument(SmallVector<Value> context, Value q);

  ModuleOp module;
  const PatternInfo &info;
  OpBuilder builder;
  Location loc;
  int64_t contextWords;
};

Block *BridgeBuilder::startFunction(const std::string &symbol, ArrayRef<Type> inputs, ArrayRef<Type> results) {
  builder.setInsertionPointToEnd(module.getBody());
  auto function = func::FuncOp::create(builder, loc, symbol, builder.getFunctionType(inputs, results));
  Block *entry = function.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  return entry;
}

SmallVector<Value> BridgeBuilder::loadContext(Value words) {
  SmallVector<Value> values;
  for (int64_t i = 0; i < contextWords; ++i) {
    Value index = arith::ConstantIndexOp::create(builder, loc, i);
    values.push_back(memref::LoadOp::create(builder, loc, words, index));
  }
  if (info.operands.empty())
    return values;
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, words);
  Value address = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), base);
  for (size_t i = 0; i < info.operands.size(); ++i)
    values.push_back(loadOperand(address, i));
  return values;
}

Value BridgeBuilder::loadOperand(Value contextAddress, size_t index) {
  Value offset =
      arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(contextPointerOffset + 8 * int64_t(index)));
  Value place = arith::AddIOp::create(builder, loc, contextAddress, offset);
  return loadTensor(builder, loc, place, operandTypeOf(module.getContext(), info.operands[index]));
}

void BridgeBuilder::addEntry(const PatternFunction &function) {
  auto callee = module.lookupSymbol<func::FuncOp>(function.symbol);
  SmallVector<Type> inputs;
  if (function.takesContext)
    inputs.push_back(contextType());
  ArrayRef<Type> rest = callee.getArgumentTypes().take_back(function.extra().size());
  inputs.append(rest.begin(), rest.end());
  SmallVector<Type> results;
  if (function.result != PatternResult::none)
    results.push_back(function.result == PatternResult::f32 ? Type(builder.getF32Type()) : i32());
  Block *entry = startFunction(bridgeSymbol(function.symbol), inputs, results);

  SmallVector<Value> operands;
  if (function.takesContext)
    operands = loadContext(entry->getArgument(0));
  auto passed = entry->getArguments().take_back(function.extra().size());
  operands.append(passed.begin(), passed.end());
  auto call = func::CallOp::create(builder, loc, callee, operands);
  SmallVector<Value> values(call.getResults());
  if (function.result == PatternResult::i1)
    values[0] = arith::ExtUIOp::create(builder, loc, i32(), values[0]);
  func::ReturnOp::create(builder, loc, values);
}

// What pattern_score and its like take of the document of query q.
Value BridgeBuilder::scoreDocument(SmallVector<Value> context, Value q) {
  auto callee = module.lookupSymbol<func::FuncOp>(patternFunction(Generated::ScoreDocument).symbol);
  if (!callee)
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
  context.push_back(q);
  return func::CallOp::create(builder, loc, callee, context).getResult(0);
}

// (context, q, k, score) -> f32, of a function that takes the document of q too.
void BridgeBuilder::addPairEntry(const PatternFunction &function) {
  auto callee = module.lookupSymbol<func::FuncOp>(function.symbol);
  Type f32 = builder.getF32Type();
  Block *entry = startFunction(bridgeSymbol(function.symbol), {contextType(), i32(), i32(), f32}, {f32});
  const SmallVector<Value> context = loadContext(entry->getArgument(0));
  Value q = entry->getArgument(1);
  SmallVector<Value> operands = context;
  operands.append({q, entry->getArgument(2), scoreDocument(context, q), entry->getArgument(3)});
  func::ReturnOp::create(builder, loc, func::CallOp::create(builder, loc, callee, operands).getResults());
}

Value BridgeBuilder::callKeep(SmallVector<Value> context, ArrayRef<Value> rest) {
  context.append(rest.begin(), rest.end());
  auto callee = module.lookupSymbol<func::FuncOp>(patternFunction(Generated::Keep).symbol);
  return func::CallOp::create(builder, loc, callee, context).getResult(0);
}

// (context, branch, q, k, step, count, out): one loop that LLVM vectorises after inlining keep.
void BridgeBuilder::addKeepLine(const char *symbol, bool alongKeys) {
  Type out = MemRefType::get({maxLineLength}, builder.getI8Type());
  Block *entry = startFunction(symbol, {contextType(), i32(), i32(), i32(), i32(), i32(), out}, {});
  SmallVector<Value> context = loadContext(entry->getArgument(0));
  Value branch = entry->getArgument(1), q = entry->getArgument(2), k = entry->getArgument(3);
  Value step = entry->getArgument(4);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value count = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), entry->getArgument(5));
  auto loop = scf::ForOp::create(builder, loc, zero, count, one);
  builder.setInsertionPointToStart(loop.getBody());
  Value i = arith::IndexCastOp::create(builder, loc, i32(), loop.getInductionVar());
  Value offset = arith::MulIOp::create(builder, loc, step, i);
  Value moved = arith::AddIOp::create(builder, loc, alongKeys ? k : q, offset);
  Value kept = callKeep(context, {branch, alongKeys ? q : moved, alongKeys ? moved : k});
  Value byte = arith::ExtUIOp::create(builder, loc, builder.getI8Type(), kept);
  memref::StoreOp::create(builder, loc, byte, entry->getArgument(6), loop.getInductionVar());
  builder.setInsertionPointToEnd(entry);
  func::ReturnOp::create(builder, loc);
}

// (context, q, k, step, count, line): puts in the place of line[i], that of (q + step * i, k) or (q, k + step * i), what
// function `callee` makes of it, or of the pair alone.
void BridgeBuilder::addLine(const std::string &symbol, const std::string &callee, bool alongKeys) {
  auto function = module.lookupSymbol<func::FuncOp>(callee);
  Type element = function.getResultTypes().front();
  Type line = MemRefType::get({maxLineLength}, element);
  Block *entry = startFunction(symbol, {contextType(), i32(), i32(), i32(), i32(), line}, {});
  const SmallVector<Value> context = loadContext(entry->getArgument(0));
  Value q = entry->getArgument(1), k = entry->getArgument(2);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value count = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), entry->getArgument(4));
  Value documentOfAll = alongKeys ? scoreDocument(context, q) : Value();
  auto loop = scf::ForOp::create(builder, loc, zero, count, one);
  builder.setInsertionPointToStart(loop.getBody());
  Value i = arith::IndexCastOp::create(builder, loc, i32(), loop.getInductionVar());
  Value offset = arith::MulIOp::create(builder, loc, entry->getArgument(3), i);
  Value moved = arith::AddIOp::create(builder, loc, alongKeys ? k : q, offset);
  SmallVector<Value> operands = context;
  operands.append({alongKeys ? q : moved, alongKeys ? moved : k});
  operands.push_back(alongKeys ? documentOfAll : scoreDocument(context, moved));
  if (operands.size() < function.getNumArguments())
    operands.push_back(memref::LoadOp::create(builder, loc, entry->getArgument(5), loop.getInductionVar()));
  Value changed = func::CallOp::create(builder, loc, function, operands).getResult(0);
  memref::StoreOp::create(builder, loc, changed, entry->getArgument(5), loop.getInductionVar());
  builder.setInsertionPointToEnd(entry);
  func::ReturnOp::create(builder, loc);
}

void BridgeBuilder::addScoreLines() {
  const PatternFunction &score = patternFunction(Generated::Score),
                        &gradient = patternFunction(Generated::ScoreGradient);
  if (info.hasScore) {
    addPairEntry(score);
    addLine(scoreColumnSymbol, score.symbol, /*alongKeys=*/false);
  }
  if (hasFunction(module, Generated::ScoreGradient)) {
    addPairEntry(gradient);
    addLine(scoreRowSymbol, score.symbol, /*alongKeys=*/true);
    addLine(scoreGradientColumnSymbol, gradient.symbol, /*alongKeys=*/false);
    addLine(scoreGradientRowSymbol, gradient.symbol, /*alongKeys=*/true);
  }
  for (int argument = 0; argument < info.paramCount; ++argument)
    for (Generated which : {Generated::ArgumentGradient, Generated::ArgumentPlace})
      if (module.lookupSymbol(symbolOf(which, argument)))
        addLine(columnSymbol(which, argument), symbolOf(which, argument), /*alongKeys=*/false);
}

} // namespace

std::string bridgeSymbol(const char *patternFunction) { return std::string("heddle_jit_") + patternFunction; }
std::string columnSymbol(Generated which, int argument) {
  return bridgeSymbol(symbolOf(which, argument).c_str()) + "_column";
}

void addBridgeFunctions(ModuleOp module, const PatternInfo &info) {
  const Attribute internal = internalLinkage(module.getContext());
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal())
      function->setAttr("llvm.linkage", internal);
  BridgeBuilder bridge(module, info);
  const bool walksKeyTiles = hasKeyTiles(module);
  for (const PatternFunction &function : patternFunctions())
    if (isRequired(function, info, walksKeyTiles) && function.presence != FunctionPresence::WithScore)
      bridge.addEntry(function);
  bridge.addKeepLine(keepRowSymbol, /*alongKeys=*/true);
  bridge.addKeepLine(keepColumnSymbol, /*alongKeys=*/false);
  bridge.addScoreLines();
}

} // namespace heddle
