#include "dialect/IR/ListCalls.h"
#include "dialect/Geometry/CellList.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace heddle::attn {
namespace {

StringRef fileOf(const ListRule &rule) { return rule.deviceFile() ? StringRef(rule.deviceFile()) : StringRef(); }

int32_t largestOfWarp(int32_t value) { return value; }
int32_t laneOfWarp() { return 0; }
int32_t lanesOfWarp() { return 1; }

/// The declaration of `symbol` in the module that is being built.
func::FuncOp declare(OpBuilder &builder, Location loc, StringRef symbol, FunctionType type, StringRef file) {
  auto module = builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  if (auto known = module.lookupSymbol<func::FuncOp>(symbol))
    return known;
  OpBuilder top = OpBuilder::atBlockEnd(module.getBody());
  auto function = func::FuncOp::create(top, loc, symbol, type);
  function.setPrivate();
  if (file.empty()) // the caller defines it
    return function;
  function->setAttr(kDeviceFunction, builder.getStringAttr("heddle::" + symbol));
  function->setAttr(kDeviceFile, builder.getStringAttr(file));
  return function;
}

/// What is asked of a list.
struct Question {
  StringRef rule, role, file;
  ValueRange operands;
  Type result;
};

func::FuncOp declareOf(OpBuilder &builder, Location loc, const Question &asked) {
  const auto &[rule, role, file, operands, result] = asked;
  auto type = builder.getFunctionType(operands.getTypes(), result);
  auto function = declare(builder, loc, (rule + "_" + role).str(), type, file);
  function->setAttr(kListName, builder.getStringAttr(rule));
  if (file.empty() && function.isExternal()) {
    assert((rule == kCsrCells || rule == kCsrCellsTransposed) && "no other rule is defined here");
    defineCsrFunction(function, rule == kCsrCells ? role : StringRef(kCsrRowWith));
  }
  return function;
}

Value call(OpBuilder &builder, Location loc, func::FuncOp function, ValueRange operands) {
  return func::CallOp::create(builder, loc, function, operands).getResult(0);
}

Value callPart(OpBuilder &builder, Operation *has, StringRef role, ValueRange operands) {
  auto file = has->getAttrOfType<StringAttr>(kDeviceFile);
  auto function = declareOf(builder, has->getLoc(),
                            {has->getAttrOfType<StringAttr>(kListName), role, file ? file.getValue() : StringRef(),
                             operands, builder.getI32Type()});
  return call(builder, has->getLoc(), function, operands);
}

/// What needs no arguments.
Value callOfWarp(OpBuilder &builder, Location loc, StringRef symbol) {
  auto type = builder.getFunctionType({}, builder.getI32Type());
  return call(builder, loc, declare(builder, loc, symbol, type, kWarpFile), {});
}

} // namespace

Value callNext(OpBuilder &builder, Location loc, const ListRule &rule, ValueRange operands) {
  auto function = declareOf(builder, loc, {rule.name(), "next", fileOf(rule), operands, builder.getI32Type()});
  return call(builder, loc, function, operands);
}

Value callHas(OpBuilder &builder, Location loc, const ListRule &rule, ValueRange operands) {
  auto function = declareOf(builder, loc, {rule.name(), "has", fileOf(rule), operands, builder.getI1Type()});
  return call(builder, loc, function, operands);
}

Value callLength(OpBuilder &builder, Operation *has, ValueRange operands) {
  return callPart(builder, has, "length", operands);
}
Value callEntry(OpBuilder &builder, Operation *has, ValueRange operands) {
  return callPart(builder, has, "entry", operands);
}

Value callLargestOfWarp(OpBuilder &builder, Location loc, Value value) {
  auto type = builder.getFunctionType(value.getType(), value.getType());
  return call(builder, loc, declare(builder, loc, "largest_of_warp", type, kWarpFile), value);
}

Value callLaneOfWarp(OpBuilder &builder, Location loc) { return callOfWarp(builder, loc, "lane_of_warp"); }
Value callLanesOfWarp(OpBuilder &builder, Location loc) { return callOfWarp(builder, loc, "lanes_of_warp"); }

ArrayRef<HostFunction> hostFunctions() {
  static const HostFunction functions[] = {
      {"largest_of_warp", reinterpret_cast<void *>(&largestOfWarp)},
      {"lane_of_warp", reinterpret_cast<void *>(&laneOfWarp)},
      {"lanes_of_warp", reinterpret_cast<void *>(&lanesOfWarp)},
      {"near_cells_next", reinterpret_cast<void *>(&nearCellsNext)},
      {"strided_cells_next", reinterpret_cast<void *>(&stridedCellsNext)},
      {"random_cells_next", reinterpret_cast<void *>(&randomCellsNext)},
      {"random_cells_transposed_next", reinterpret_cast<void *>(&randomCellsTransposedNext)},
      {"random_cells_has", reinterpret_cast<void *>(&randomCellsHas)},
      {"random_cells_length", reinterpret_cast<void *>(&randomCellsLength)},
      {"random_cells_entry", reinterpret_cast<void *>(&randomCellsEntry)},
  };
  return functions;
}

} // namespace heddle::attn
