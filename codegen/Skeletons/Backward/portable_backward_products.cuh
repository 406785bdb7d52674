// What warps of the portable backward kernels multiply, and how the rows of a warp leave: kRowTiles x 16 rows of the
// item and, of their gradients, all columns or a slice. Columns are those of a step.
#pragma once

#include "Backward/gradient_rows.cuh"
#include "Backward/portable_backward_shapes.cuh"
#include "Backward/tile_ring.cuh"
#include "Backward/tile_scores.cuh"
#include "Ptx/matrix.cuh"
#include "Shared/score_units.cuh"
#include "Shared/tf32_products.cuh"

namespace heddle {

template <class K> using KeyFactors = ScoreFactors<K, K::kQueryTiles>[K::kRowTiles];

// scores = keys times queries^T: lane addresses of this warp's rows (rows first) and of queries (columns first).
template <class K, int Steps, int RowBytes>
DEV void mmaScores(typename K::Scores &scores, uint32_t keys, uint32_t queries) {
  using E = typename K::Element;
  if constexpr (K::kElementBytes == 4) {
    const auto fragmentsOf = [keys](int step, uint32_t (&words)[K::kRowTiles][4]) {
#pragma unroll
      for (int i = 0; i < K::kRowTiles; ++i)
        ptx::loadMatrix4(words[i], columnBlock(keys, step) + i * kMmaRows * RowBytes);
    };
    tf32Scores<E, Steps, RowBytes>(scores, fragmentsOf, queries);
  } else {
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
      for (int n = 0; n < K::kQueryTiles; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          scores[i][n][e] = 0.f;
#pragma unroll
    for (int step = 0; step < Steps; ++step) {
      uint32_t a[K::kRowTiles][4];
#pragma unroll
      for (int i = 0; i < K::kRowTiles; ++i)
        ptx::loadMatrix4(a[i], columnBlock(keys, step) + i * kMmaRows * RowBytes);
      const uint32_t column = columnBlock(queries, step);
#pragma unroll
      for (int pair = 0; pair < K::kQueryTiles / 2; ++pair) {
        uint32_t b[4];
        ptx::loadMatrix4(b, column + pair * 16 * RowBytes);
#pragma unroll
        for (int i = 0; i < K::kRowTiles; ++i) {
          ptx::mma<E>(scores[i][2 * pair], a[i], b[0], b[1]);
          ptx::mma<E>(scores[i][2 * pair + 1], a[i], b[2], b[3]);
        }
      }
    }
  }
}

// Tiles of eight columns of a gradient that a warp has; the last slice may end before.
template <class K, int Dim> constexpr int kSliceTiles = K::kSlices == 1 ? Dim / 8 : roundUp((Dim / 8 + 1) / 2, 2);

template <class K> DEV int32_t warpSlice() { return K::kSlices == 1 ? 0 : threadIdx.x / 32 % K::kSlices; }

// sum += weights (keys x queries) times this warp's columns of rows (queries x dim): the lane address in rows
// (summedRows). What lies behind the last column is of the same rows, and its sums are not used.
template <class K, int RowBytes, int Tiles>
DEV void mmaSum(float (&sum)[K::kRowTiles][Tiles][4], const typename K::ScoreOperand &weights, uint32_t rows) {
  using E = typename K::Element;
  if constexpr (K::kElementBytes == 4) {
    tf32Sum<E, RowBytes>(sum, weights, rows);
  } else {
    const int32_t first = warpSlice<K>() * (Tiles / 2);
#pragma unroll
    for (int step = 0; step < K::kQuerySteps; ++step)
#pragma unroll
      for (int pair = 0; pair < (Tiles + 1) / 2; ++pair) {
        uint32_t b[4];
        ptx::loadMatrix4Transposed(b, columnBlock(rows, first + pair) + step * K::kMmaStep * RowBytes);
#pragma unroll
        for (int i = 0; i < K::kRowTiles; ++i) {
          ptx::mma<E>(sum[i][2 * pair], weights[i][step], b[0], b[1]);
          if (2 * pair + 1 < Tiles)
            ptx::mma<E>(sum[i][2 * pair + 1], weights[i][step], b[2], b[3]);
        }
      }
  }
}

// The rows of a warp.
template <class Item> class WarpRows {
protected:
  using K = typename Item::Kernel;
  using Params = typename Item::Params;
  using Scores = typename K::Scores;

  DEV WarpRows(const Params &p, const Item &item, uint32_t shared) : p(p), item(item), shared(shared) {}

  // Rows times columns: q and k, then v and d_out.
  DEV void makeScores(Scores &scores, const TileRing<Item> &ring) const {
    mmaScores<K, K::kHeadSteps, K::kSmemRowBytesQK>(scores, ownRows(K::kSmemK, K::kSmemRowBytesQK),
                                                    ring.rows() + laneOffsetColumnsFirst(K::kSmemRowBytesQK));
  }
  DEV void makeProducts(Scores &products, const TileRing<Item> &ring) const {
    mmaScores<K, K::kValueSteps, K::kSmemRowBytesV>(products, ownRows(K::kSmemV, K::kSmemRowBytesV),
                                                    ring.values() + laneOffsetColumnsFirst(K::kSmemRowBytesV));
  }

  template <int N> DEV static void clearTile(float (&sum)[N][4]) {
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int slot = 0; slot < 4; ++slot)
        sum[n][slot] = 0.f;
  }

  // The sums of row tile i, of lanes' rows 8 apart.
  template <int Dim, bool Adds, int N>
  DEV void storeTensor(void *to, const int64_t (&stride)[3], const float (&sums)[N][4], int i, float scale) const {
    constexpr int kTiles = Dim / 8, kFirst = kTiles < N ? kTiles : N; // of the first slice
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int32_t row = firstRow(i) + item.rate * half * 8;
      char *place =
          static_cast<char *>(to) +
          (item.batch * stride[0] + row * stride[1] + item.headOfRows() * stride[2]) * kGradientBytes<K, Adds>;
      const bool exists = row <= item.last;
      if (warpSlice<K>() == 0)
        storeColumns<kFirst, Adds>(place, exists, sums, half, scale);
      else if constexpr (kFirst < kTiles)
        storeColumns<kTiles - kFirst, Adds>(place + kFirst * 8 * kGradientBytes<K, Adds>, exists, sums, half, scale);
    }
  }

  template <int Tiles, bool Adds, int N>
  DEV static void storeColumns(char *row, bool exists, const float (&sums)[N][4], int half, float scale) {
    float values[Tiles][2];
#pragma unroll
    for (int n = 0; n < Tiles; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        values[n][e] = sums[n][2 * half + e] * scale;
    storeGradient<K, Adds>(row, exists, values);
  }

  DEV static int32_t laneRow() { return threadIdx.x % 32 / 4; }
  DEV static int32_t warpRow() { return threadIdx.x / 32 / K::kSlices * (K::kRowTiles * kMmaRows); }
  DEV static uint32_t rowsFirst(int rowBytes) { return laneOffsetRowsFirst(rowBytes); }
  // Where a lane finds rows that a product sums over.
  DEV static uint32_t summedRows(int rowBytes) {
    return K::kElementBytes == 2 ? laneOffsetRowsFirst(rowBytes) : laneOffsetOfSums(rowBytes);
  }
  DEV uint32_t ownRows(uint32_t tile, int rowBytes) const {
    return shared + tile + warpRow() * rowBytes + rowsFirst(rowBytes);
  }
  DEV int32_t firstRow(int i) const { return item.first + item.rate * (warpRow() + i * kMmaRows + laneRow()); }

  const Params &p;
  const Item &item;
  uint32_t shared;
};

} // namespace heddle
