// Builds the body of pattern_next_range for one branch from the ranges of the analysis, and of its transposed twin
// alike: the ranges say which axis the tile has.
#pragma once

#include "dialect/IR/Attn.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "codegen/Schedule/FunctionBuilder.h"
#include "dialect/Geometry/Ranges.h"

namespace heddle {

/// "No more tiles": begin and end of the run after the last one.
inline constexpr int64_t kNoTile = 0x7fffffff;

/// Arguments of pattern_next_range that describe the tile; blockN counts the columns of a tile of those.
struct TileArguments {
  mlir::Value tileFirst, tileLast, blockN, from;
};

/// begin, end, full_begin, full_end of the first run at or after `from`, and how far beyond its begin one piece visits
/// every tile: runs end where the set of pieces changes.
struct ColumnRun {
  mlir::Value begin, end, fullBegin, fullEnd, reach;
};

ColumnRun buildNextRange(FunctionBuilder &function, const attn::BranchRanges &branch, const TileArguments &tile);

// Turns a predicate that compares the key with bounds into one word for the columns of a tile, built from words of
// the form 'columns below a limit': what a masked tile costs then hardly depends on the predicate.

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

/// Appends both to the module of the pattern's functions; nothing if its rows lie in no documents, or in several ways.
void appendDocumentFunctions(mlir::ModuleOp module, attn::PatternOp pattern);

} // namespace heddle
