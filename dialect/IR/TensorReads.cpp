#include "dialect/IR/Operands.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
namespace arith = mlir::arith;

namespace heddle::attn {

constexpr StringLiteral kSearch = "last_not_above";

Value loadEntry(OpBuilder &builder, Location loc, Value tensor, Value index) {
  Value place = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), index);
  return memref::LoadOp::create(builder, loc, tensor, place);
}

/// The entry is one of the `size` from `low` on; as many rounds as halve `count` to one. A counted loop, in which
/// `size` takes the same values in all lanes of a warp, costs kernels no registers.
static void buildSearch(func::FuncOp function) {
  OpBuilder builder = OpBuilder::atBlockBegin(function.addEntryBlock());
  Location loc = function.getLoc();
  Value tensor = function.getArgument(0), value = function.getArgument(1), count = function.getArgument(2);
  auto constant = [&](int32_t number) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(number));
  };
  Value zero = constant(0), one = constant(1), bits = constant(32);
  Value most = arith::SubIOp::create(builder, loc, arith::MaxSIOp::create(builder, loc, count, one), one);
  Value zeros = math::CountLeadingZerosOp::create(builder, loc, most),
        rounds = arith::SubIOp::create(builder, loc, bits, zeros);
  auto loop = scf::ForOp::create(builder, loc, zero, rounds, one, ValueRange{zero, count});
  builder.setInsertionPointToStart(loop.getBody());
  Value low = loop.getRegionIterArg(0), size = loop.getRegionIterArg(1);
  Value half = arith::ShRSIOp::create(builder, loc, size, one), middle = arith::AddIOp::create(builder, loc, low, half);
  Value entry = loadEntry(builder, loc, tensor, middle);
  Value isAbove = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, value, entry);
  Value next = arith::SelectOp::create(builder, loc, isAbove, low, middle),
        rest = arith::SubIOp::create(builder, loc, size, half);
  scf::YieldOp::create(builder, loc, ValueRange{next, rest});
  builder.setInsertionPointAfter(loop);
  func::ReturnOp::create(builder, loc, loop.getResult(0));
}

Value callSearch(OpBuilder &builder, Location loc, Value tensor, Value value, Value count) {
  auto module = builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  auto function = module.lookupSymbol<func::FuncOp>(kSearch);
  if (!function) {
    Type i32 = builder.getI32Type();
    OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
    function = func::FuncOp::create(top, loc, kSearch, builder.getFunctionType({tensor.getType(), i32, i32}, i32));
    function.setPrivate();
    buildSearch(function);
  }
  return func::CallOp::create(builder, loc, function, ValueRange{tensor, value, count}).getResult(0);
}

} // namespace heddle::attn
