//===- ColumnWords.h - a predicate for many keys at once --------*- C++ -*-===//
// Turns a predicate that compares the key with bounds into one word for the columns of a tile, built from words of
// the form 'columns below a limit': what a masked tile costs then hardly depends on the predicate.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_CODEGEN_SCHEDULE_COLUMNWORDS_H
#define HEDDLE_CODEGEN_SCHEDULE_COLUMNWORDS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace heddle {

/// `predicate` is a function (CONTEXT, q_position, first_position, column) -> i1 of one block. Builds, at the end of
/// the builder's block, the i32 word in which the bit of every column >= 0 says what the predicate says of it;
/// `arguments` stand for all arguments but the column. Null, with nothing built, if the predicate is not made of
/// comparisons of lines a * column + b (a static, b the same for all columns) with bounds, values that are the same
/// for all columns. A quotient of a line by a static number that divides a is a line; other quotients by static numbers
/// may be compared with bounds, and for equality with a bound that is a quotient by the same number, static or not, of
/// which they may also be so many steps away. Being in a list (dialect/IR/ListCalls.h) is a loop over its entries.
/// Lines must fit 32 bits from 1024 columns before the tile to 1024 columns after its first; bounds may be any i32.
/// `lowestParameters`: least values of the run-time sizes.
mlir::Value buildColumnWord(mlir::OpBuilder &builder, mlir::func::FuncOp predicate, mlir::ValueRange arguments,
                            llvm::ArrayRef<int64_t> lowestParameters);

} // namespace heddle

#endif
