// How the query gradient of a step reaches its sums (dq_accumulation.cuh): straight from registers.
#pragma once

#include "Backward/dq_accumulation.cuh"
#include "Backward/sm90_backward_shared.cuh"
#include "Backward/walk_items.cuh"
#include "Ptx/wide_memory.cuh"

namespace heddle {

template <class Traits> struct QueryGradientShape : Traits {
  // Consumers have rows of their own of the query gradient of a step, [block_m, head_dim], or columns where there are
  // no more than 64 rows.
  static constexpr bool kSplitsColumns = Traits::kBlockM == kConsumerRows;
  static constexpr int kGradientTiles = Traits::kSumColumns / 8;
  using QueryGradient = float[kGradientTiles][4];
};
template <class K> using QueryGradient = typename K::QueryGradient;

template <class K> DEV int32_t splitOf(int32_t consumer) { return K::kSplitsColumns ? consumer : 0; }

// Row of a lane among the 64 of its warpgroup; the other is 8 further.
DEV int32_t laneRow() {
  const int32_t thread = threadIdx.x % kWarpgroupThreads;
  return thread / 32 * kWarpRows + thread % 32 / 4;
}

// dS of a slot, and the rows of it that part of the query gradient is made of: a part is what a consumer would have.
template <class K> DEV uint32_t scoreTile(int32_t slot) { return K::kScoreTile + slot * K::kScoreTileBytes; }
template <class K> DEV uint32_t scoreOperand(int32_t slot, int32_t part) {
  return scoreTile<K>(slot) + (K::kSplitsColumns ? 0 : part * (K::kBlockN * kColumnRowBytes));
}
template <class K> DEV uint32_t keyColumns(int32_t split) {
  constexpr uint32_t kColumnElements = kColumnRowBytes / K::kElementBytes;
  const uint32_t first = split * K::kSumColumns;
  return K::kKeyTile + first / kColumnElements * (K::kBlockN * kColumnRowBytes) +
         first % kColumnElements * K::kElementBytes;
}

// Rows of a lane: first and first + 8 * rate of a head, whose sums begin at row `base` of all.
struct SumRows {
  int32_t base, first, rate, end;
};

template <class K>
DEV SumRows sumRowsOf(const ParamsOf<K> &p, const KeyItem<K> &item, const QueryTileHeader<K> &tile, int32_t rate,
                      int32_t part) {
  return {firstSumRow<K>(item.batch, p.heads, tile.head, K::kSumSplits > 1 ? part : 0, p.seqlenQ),
          tile.firstRow + rate * ((K::kSplitsColumns ? 0 : part * kConsumerRows) + laneRow()), rate, p.seqlenQ};
}

// What a lane has of a row goes to it by `put`: pointer, whether the row exists, four floats.
template <class K, class Put>
DEV void putQueryGradient(float *to, const QueryGradient<K> &sums, const SumRows &rows, const Put &put) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int32_t row = rows.first + half * 8 * rows.rate;
    float *piece = to + sumPlace<K>(rows.base + row) + threadIdx.x % 4 * kSumPieceFloats;
    const bool isPresent = row < rows.end;
#pragma unroll
    for (int n = 0; n < K::kGradientTiles; n += 2)
      put(piece + n / 2 * kSumGroupFloats, isPresent, sums[n][2 * half], sums[n][2 * half + 1], sums[n + 1][2 * half],
          sums[n + 1][2 * half + 1]);
  }
}

template <class K> DEV void addQueryGradient(float *to, const QueryGradient<K> &sums, const SumRows &rows) {
  putQueryGradient<K>(to, sums, rows, [](float *at, bool isPresent, float a, float b, float c, float d) {
    ptx::addGlobal16(at, isPresent, a, b, c, d);
  });
}

// The first one that has any stores them.
template <class K> DEV void storeQueryGradient(float *to, const QueryGradient<K> &sums, const SumRows &rows) {
  putQueryGradient<K>(to, sums, rows, [](float *at, bool isPresent, float a, float b, float c, float d) {
    ptx::storeGlobal16(at, isPresent, a, b, c, d);
  });
}

} // namespace heddle
