// How the query gradient of a step reaches its sums (dq_accumulation.cuh): straight from registers.
#pragma once

#include "Backward/dq_accumulation.cuh"
#include "Backward/sm90_backward_shared.cuh"
#include "Backward/walk_items.cuh"
#include "Ptx/wide_memory.cuh"

namespace heddle {

// Consumers have rows of their own of the query gradient of a step, [block_m, head_dim], or columns where there are no
// more than 64 rows.
constexpr bool kSplitsColumns = kBlockM == kConsumerRows;
constexpr int kGradientTiles = kSumColumns / 8;
typedef float QueryGradient[kGradientTiles][4];

DEV int32_t splitOf(int32_t consumer) { return kSplitsColumns ? consumer : 0; }

// Row of a lane among the 64 of its warpgroup; the other is 8 further.
DEV int32_t laneRow() {
  const int32_t thread = threadIdx.x % kWarpgroupThreads;
  return thread / 32 * kWarpRows + thread % 32 / 4;
}

// dS of a slot, and the rows of it that part of the query gradient is made of: a part is what a consumer would have.
DEV uint32_t scoreTile(int32_t slot) { return kScoreTile + slot * kScoreTileBytes; }
DEV uint32_t scoreOperand(int32_t slot, int32_t part) {
  return scoreTile(slot) + (kSplitsColumns ? 0 : part * (kBlockN * kColumnRowBytes));
}
DEV uint32_t keyColumns(int32_t split) {
  const uint32_t first = split * kSumColumns;
  return kKeyTile + first / kColumnElements * (kBlockN * kColumnRowBytes) + first % kColumnElements * kElementBytes;
}

// Rows of a lane: first and first + 8 * rate of a head, whose sums begin at row `base` of all.
struct SumRows {
  int32_t base, first, rate, end;
};

DEV SumRows sumRowsOf(const KernelParams &p, const KeyItem &item, const QueryTileHeader &tile, int32_t rate,
                      int32_t part) {
  return {firstSumRow(item.batch, p.heads, tile.head, kSumSplits > 1 ? part : 0, p.seqlenQ),
          tile.firstRow + rate * ((kSplitsColumns ? 0 : part * kConsumerRows) + laneRow()), rate, p.seqlenQ};
}

// What a lane has of a row goes to it by `put`: pointer, whether the row exists, four floats.
template <class Put>
DEV void putQueryGradient(float *to, const QueryGradient &sums, const SumRows &rows, const Put &put) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int32_t row = rows.first + half * 8 * rows.rate;
    float *piece = to + sumPlace(rows.base + row) + threadIdx.x % 4 * kSumPieceFloats;
    const bool isPresent = row < rows.end;
#pragma unroll
    for (int n = 0; n < kGradientTiles; n += 2)
      put(piece + n / 2 * kSumGroupFloats, isPresent, sums[n][2 * half], sums[n][2 * half + 1], sums[n + 1][2 * half],
          sums[n + 1][2 * half + 1]);
  }
}

DEV void addQueryGradient(float *to, const QueryGradient &sums, const SumRows &rows) {
  putQueryGradient(to, sums, rows, [](float *at, bool isPresent, float a, float b, float c, float d) {
    ptx::addGlobal16(at, isPresent, a, b, c, d);
  });
}

// The first one that has any stores them.
DEV void storeQueryGradient(float *to, const QueryGradient &sums, const SumRows &rows) {
  putQueryGradient(to, sums, rows, [](float *at, bool isPresent, float a, float b, float c, float d) {
    ptx::storeGlobal16(at, isPresent, a, b, c, d);
  });
}

} // namespace heddle
