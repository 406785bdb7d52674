// Owns how a tile of rows walks the tiles of columns that a branch visits, for both passes.
#pragma once

#include "codegen/Cpu/CpuCall.h"
#include "codegen/Cpu/JitPattern.h"

#include <algorithm>

namespace heddle {

inline int64_t offsetOf(const CpuStrides &stride, int32_t batch, int64_t row, int32_t head) {
  return batch * stride[0] + row * stride[1] + head * stride[2];
}

/// Those that a branch visits: every `rate`-th from `residue` on.
struct Columns {
  int32_t branch, rate, residue, count;

  Columns(int32_t branch, int32_t rate, int32_t residue, int32_t existing)
      : branch(branch), rate(rate), residue(residue),
        count(int32_t(std::max<int64_t>(int64_t(existing) - residue + rate - 1, 0) / rate)) {}

  int64_t index(int32_t column) const { return residue + int64_t(rate) * column; }
  /// How many a tile of at most `block` of them has.
  int32_t countFrom(int32_t first, int32_t block) const { return std::min(block, count - first); }
};

/// Calls visit(first column, isFull) for the tiles of the ranges that nextRange(from) names.
template <class NextRange, class Visit>
void forEachTile(const Columns &columns, int32_t block, NextRange nextRange, Visit visit) {
  const int32_t tiles = int32_t((int64_t(columns.count) + block - 1) / block);
  for (int32_t from = 0; from < tiles;) {
    const JitKeyRange range = nextRange(from);
    for (int32_t tile = range.begin, end = std::min(range.end, tiles); tile < end; ++tile)
      visit(tile * block, tile >= range.fullBegin && tile < range.fullEnd);
    from = std::max(range.end, from + 1);
  }
}

} // namespace heddle
