#include "dialect/IR/ListCalls.h"
#include "dialect/Geometry/CellList.h"
#include "dialect/IR/Operands.h"

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
    if (role == kCsrRowWith) {
      Value cell = argument(5), from = last(), first = firstRowWith(cell, from);
      func::ReturnOp::create(builder, loc, first);
      return;
    }
    const Row row = rowOf(argument(5));
    Value result = role == "length" ? sub(row.end, row.begin) : role == "entry" ? entryOf(row) : nextOf(row, last());
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
  Value compare(arith::CmpIPredicate relation, Value a, Value b) {
    return arith::CmpIOp::create(builder, loc, relation, a, b);
  }
  Value less(Value a, Value b) { return compare(arith::CmpIPredicate::slt, a, b); }
  Value select(Value condition, Value a, Value b) { return arith::SelectOp::create(builder, loc, condition, a, b); }
  Value load(Value tensor, Value index) { return loadEntry(builder, loc, tensor, index); }
  /// In [0, most], or 0.
  Value cut(Value value, Value most) {
    Value low = min(value, most);
    return max(low, zero);
  }

  Value entryOf(const Row &row) {
    Value lastPlace = sub(entries(), one), place = add(row.begin, last()), kept = cut(place, lastPlace);
    return load(indices(), kept);
  }

  Row rowOf(Value row) {
    Value list = argument(2), count = argument(3);
    Value first = arith::MulIOp::create(builder, loc, list, count);
    Value two = constant(2), lastRow = sub(count, two), known = cut(row, lastRow);
    Value place = add(first, known), next = add(place, one);
    Value begin = load(offsets(), place), end = load(offsets(), next);
    begin = cut(begin, entries());
    end = min(end, entries());
    // Not by row == known: ptxas 13.0 takes that for row == lastRow (docs/kernel-notes.md, "What ptxas gets wrong").
    Value rows = sub(count, one), isRow = compare(arith::CmpIPredicate::ult, row, rows);
    Value ordered = max(end, begin), ofRow = select(isRow, ordered, begin);
    return {begin, ofRow};
  }

  /// The first index of the row that is not below `from`: of `size` places from `low` on, or the one behind them.
  Value nextOf(const Row &row, Value from) {
    Value length = sub(row.end, row.begin), zeros = math::CountLeadingZerosOp::create(builder, loc, length);
    Value bits = constant(32), rounds = sub(bits, zeros), lastPlace = sub(entries(), one);
    auto loop = scf::ForOp::create(builder, loc, zero, rounds, one, ValueRange{row.begin, length});
    builder.setInsertionPointToStart(loop.getBody());
    Value low = loop.getRegionIterArg(0), size = loop.getRegionIterArg(1);
    Value half = arith::ShRSIOp::create(builder, loc, size, one), middle = add(low, half);
    Value probed = cut(middle, lastPlace), index = load(indices(), probed);
    Value isOpen = less(zero, size), isLess = less(index, from),
          isBelow = arith::AndIOp::create(builder, loc, isLess, isOpen);
    Value behind = add(middle, one), above = select(isBelow, behind, low);
    Value rest = sub(size, half), shorter = sub(rest, one), left = select(isBelow, shorter, half);
    scf::YieldOp::create(builder, loc, ValueRange{above, left});
    builder.setInsertionPointAfter(loop);
    Value place = loop.getResult(0), kept = cut(place, lastPlace), found = load(indices(), kept);
    Value none = constant(kNoCell), isFound = less(place, row.end);
    return select(isFound, found, none);
  }

  /// The first row at or after `from` that names the cell. Nothing orders the tensors by cells, so rows are asked one
  /// after the other, on a device by as many lanes at a time.
  Value firstRowWith(Value cell, Value from) {
    Value rows = sub(argument(3), one), first = max(from, zero), none = constant(kNoCell);
    Value lane = callLaneOfWarp(builder, loc), lanes = callLanesOfWarp(builder, loc);
    auto loop = scf::ForOp::create(builder, loc, first, rows, lanes, none);
    builder.setInsertionPointToStart(loop.getBody());
    Value found = loop.getRegionIterArg(0), isOpen = compare(arith::CmpIPredicate::eq, found, none);
    auto asked = scf::IfOp::create(builder, loc, builder.getI32Type(), isOpen, /*withElseRegion=*/true);
    scf::YieldOp::create(builder, loc, asked.getResult(0));
    builder.setInsertionPointToStart(asked.thenBlock());
    Value row = add(loop.getInductionVar(), lane), named = nextOf(rowOf(row), cell);
    Value isNamed = compare(arith::CmpIPredicate::eq, named, cell), before = sub(none, row);
    Value nearest = callLargestOfWarp(builder, loc, select(isNamed, before, zero));
    scf::YieldOp::create(builder, loc, sub(none, nearest));
    builder.setInsertionPointToStart(asked.elseBlock());
    scf::YieldOp::create(builder, loc, found);
    builder.setInsertionPointAfter(loop);
    return loop.getResult(0);
  }

  OpBuilder builder;
  Location loc;
  func::FuncOp function;
  Value zero, one;
};

} // namespace

void defineCsrFunction(func::FuncOp function, StringRef role) { CsrBuilder(function).build(role); }

} // namespace heddle::attn
