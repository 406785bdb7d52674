//===- RangeFunction.h - ranges as device code ------------------*- C++ -*-===//
// Builds the body of pattern_next_range for one branch from the ranges of the analysis, and of its transposed twin
// alike: the ranges say which axis the tile has.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_CODEGEN_SCHEDULE_RANGEFUNCTION_H
#define HEDDLE_CODEGEN_SCHEDULE_RANGEFUNCTION_H

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

} // namespace heddle

#endif
