//===- CsrFunctions.cpp - lists in tensors, in generated functions ---------===//
#include "dialect/IR/CsrFunctions.h"
#include "dialect/Analysis/CellList.h"
#include "dialect/IR/TensorReads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
namespace arith = mlir::arith;

namespace heddle::attn {
namespace {

class CsrBuilder {
public:
  explicit CsrBuilder(func::FuncOp function)
      : builder(OpBuilder::atBlockBegin(function.addEntryBlock())), loc(function.getLoc()), function(function) {
    zero = constant(0);
    one = constant(1);
  }

  void build(StringRef role) {
    const Row row = rowOf();
    Value result = role == "length"  ? sub(row.end, row.begin)
                   : role == "entry" ? load(indices(), cut(add(row.begin, last()), sub(entries(), one)))
                                     : nextOf(row, last());
    if (role == "has")
      result = compare(arith::CmpIPredicate::eq, result, last());
    func::ReturnOp::create(builder, loc, result);
  }

private:
  /// Places of the row's indices, none of a row that there is not.
  struct Row {
    Value begin, end;
  };

  Value argument(unsigned index) { return function.getArgument(index); }
  Value offsets() { return argument(0); }
  Value indices() { return argument(1); }
  Value entries() { return argument(4); }
  Value last() { return argument(function.getNumArguments() - 1); }

  Value constant(int32_t value) { return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value)); }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) { return arith::SubIOp::create(builder, loc, a, b); }
  Value min(Value a, Value b) { return arith::MinSIOp::create(builder, loc, a, b); }
  Value max(Value a, Value b) { return arith::MaxSIOp::create(builder, loc, a, b); }
  Value compare(arith::CmpIPredicate relation, Value a, Value b) { return arith::CmpIOp::create(builder, loc, relation, a, b); }
  Value less(Value a, Value b) { return compare(arith::CmpIPredicate::slt, a, b); }
  Value select(Value condition, Value a, Value b) { return arith::SelectOp::create(builder, loc, condition, a, b); }
  Value load(Value tensor, Value index) { return loadEntry(builder, loc, tensor, index); }
  /// In [0, most], or 0.
  Value cut(Value value, Value most) {
    Value low = min(value, most);
    return max(low, zero);
  }

  Row rowOf() {
    Value list = argument(2), count = argument(3), row = argument(5);
    Value first = arith::MulIOp::create(builder, loc, list, count);
    Value known = cut(row, sub(count, constant(2)));
    Value place = add(first, known), begin = load(offsets(), place), end = load(offsets(), add(place, one));
    begin = cut(begin, entries());
    end = min(end, entries());
    Value isRow = compare(arith::CmpIPredicate::eq, row, known);
    return {begin, select(isRow, max(end, begin), begin)};
  }

  /// The first index of the row that is not below `from`: of `size` places from `low` on, or the one behind them.
  Value nextOf(const Row &row, Value from) {
    Value length = sub(row.end, row.begin), zeros = math::CountLeadingZerosOp::create(builder, loc, length);
    Value rounds = sub(constant(32), zeros), lastPlace = sub(entries(), one);
    auto loop = scf::ForOp::create(builder, loc, zero, rounds, one, ValueRange{row.begin, length});
    builder.setInsertionPointToStart(loop.getBody());
    Value low = loop.getRegionIterArg(0), size = loop.getRegionIterArg(1);
    Value half = arith::ShRSIOp::create(builder, loc, size, one), middle = add(low, half);
    Value index = load(indices(), cut(middle, lastPlace));
    Value isOpen = less(zero, size), isBelow = arith::AndIOp::create(builder, loc, less(index, from), isOpen);
    Value above = select(isBelow, add(middle, one), low), rest = sub(size, half);
    Value size2 = select(isBelow, sub(rest, one), half);
    scf::YieldOp::create(builder, loc, ValueRange{above, size2});
    builder.setInsertionPointAfter(loop);
    Value place = loop.getResult(0), found = load(indices(), cut(place, lastPlace));
    return select(less(place, row.end), found, constant(kNoCell));
  }

  OpBuilder builder;
  Location loc;
  func::FuncOp function;
  Value zero, one;
};

} // namespace

void defineCsrFunction(func::FuncOp function, StringRef role) { CsrBuilder(function).build(role); }

} // namespace heddle::attn
