// The two mma of one warp: scores = Q K^T for kChunkN keys, out += P V. A warp owns
// kRowTiles x 16 query rows; every K and V fragment read from shared memory serves all of them.
#pragma once

#include "Forward/key_columns.cuh"
#include "Ptx/matrix.cuh"
#include "Shared/elements.cuh"
#include "Shared/row_stores.cuh"
#include "Shared/shared_tiles.cuh"

namespace heddle {

// Warps that have rows of their own; the others of a block have the same rows and other keys.
template <class Traits, class = void> struct RowWarps {
  static constexpr int kCount = Traits::kWarps;
};
template <class Traits> struct RowWarps<Traits, decltype(void(Traits::kRowWarps))> {
  static constexpr int kCount = Traits::kRowWarps;
};
// What products of values leave in the lanes.
template <class Traits, bool AreScaled = Traits::kHasScaledKeys> struct ColumnsOfValues {
  using Type = ColumnPairs<Traits>;
};
template <class Traits> struct ColumnsOfValues<Traits, true> {
  using Type = ColumnFours<Traits>;
};
template <class Traits> struct WarpValues {
  using Columns = typename ColumnsOfValues<Traits>::Type;
  static constexpr int kSumTiles = 0;
};

// Shapes of the products of one warp, and what its lanes have of them.
template <class Traits> struct WarpProductShape : Traits {
  using Values = WarpValues<Traits>;
  using KeyColumns = KeysInOrder;

  static constexpr int kRowTiles = Traits::kBlockM / (16 * RowWarps<Traits>::kCount);
  static constexpr int kHeadSteps = Traits::kHeadDim / Traits::kMmaStep;
  static constexpr int kValueTiles = Traits::kValueDim / 8;
  static constexpr int kOutputTiles = kValueTiles;
  static constexpr int kChunks = Traits::kBlockN / Traits::kChunkN;
  static constexpr int kScoreTiles = Traits::kChunkN / 8;
  static constexpr int kChunkSteps = Traits::kChunkN / Traits::kMmaStep;

  using Scores = float[kRowTiles][kScoreTiles][4];
  using Probabilities = uint32_t[kRowTiles][kChunkSteps][4];
  using Output = float[kRowTiles][kOutputTiles][4];
};

// This warp's rows of Q: held in registers, or read again for every mma.
template <class K> class QueryOperand {
public:
  DEV explicit QueryOperand(uint32_t tile) {
    constexpr int kRowBytes = K::kSmemRowBytesQK;
    constexpr bool kAllHaveSameRows = RowWarps<K>::kCount == 1;
    int warpRow = kAllHaveSameRows ? 0 : threadIdx.x / 32 * (K::kRowTiles * 16);
    address = tile + warpRow * kRowBytes + laneOffsetRowsFirst(kRowBytes);
  }

  // Call once after Q has arrived.
  DEV void keepInRegisters() {
    if constexpr (K::kQueryInRegisters) {
#pragma unroll
      for (int step = 0; step < K::kHeadSteps; ++step)
        read(step, held[step]);
    }
  }

  DEV void fragments(int step, uint32_t (&a)[K::kRowTiles][4]) const {
    if constexpr (K::kQueryInRegisters) {
#pragma unroll
      for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          a[i][j] = held[step][i][j];
    } else {
      read(step, a);
    }
  }

private:
  DEV void read(int step, uint32_t (&a)[K::kRowTiles][4]) const {
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i)
      ptx::loadMatrix4(a[i], columnBlock(address, step) + i * 16 * K::kSmemRowBytesQK);
  }

  uint32_t address;
  uint32_t held[K::kQueryInRegisters ? K::kHeadSteps : 1][K::kRowTiles][4];
};

template <int Rows, int Tiles> DEV void copyScores(float (&to)[Rows][Tiles][4], const float (&from)[Rows][Tiles][4]) {
#pragma unroll
  for (int i = 0; i < Rows; ++i)
#pragma unroll
    for (int n = 0; n < Tiles; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        to[i][n][e] = from[i][n][e];
}

// Elements are two in a register.
template <class K, int Bytes = K::kElementBytes> struct WarpProducts {
  using E = typename K::Element;
  static_assert(Bytes == 2, "float_mma.cuh has those of floats");

  // scores = Q K^T; `keys` is this lane's address (columns first) in the first key row of the chunk.
  DEV static void queryKey(typename K::Scores &scores, const QueryOperand<K> &query, uint32_t keys) {
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
      for (int n = 0; n < K::kScoreTiles; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          scores[i][n][e] = 0.f;
#pragma unroll
    for (int step = 0; step < K::kHeadSteps; ++step) {
      uint32_t a[K::kRowTiles][4];
      query.fragments(step, a);
      uint32_t column = columnBlock(keys, step);
#pragma unroll
      for (int pair = 0; pair < K::kScoreTiles / 2; ++pair) {
        uint32_t b[4];
        ptx::loadMatrix4(b, column + pair * 16 * K::kSmemRowBytesQK);
#pragma unroll
        for (int i = 0; i < K::kRowTiles; ++i) {
          ptx::mma<E>(scores[i][2 * pair], a[i], b[0], b[1]);
          ptx::mma<E>(scores[i][2 * pair + 1], a[i], b[2], b[3]);
        }
      }
    }
  }

  // `low` and `high` are of columns 2 c and 2 c + 1 of score tile n, lane 4 r + c, in row r + 8 half.
  DEV static void setWeights(uint32_t (&weights)[K::kChunkSteps][4], int n, int half, float low, float high) {
    weights[n / 2][n % 2 * 2 + half] = pack<E>(low, high);
  }

  // out += P V; `values` is this lane's address (rows first) in the first key row of the chunk.
  DEV static void probabilityValue(typename K::Output &out, const typename K::Probabilities &probabilities,
                                   uint32_t values) {
#pragma unroll
    for (int step = 0; step < K::kChunkSteps; ++step) {
      constexpr int kStepBytes = K::kMmaStep * K::kSmemRowBytesV;
#pragma unroll
      for (int pair = 0; pair < K::kValueTiles / 2; ++pair) {
        uint32_t b[4];
        ptx::loadMatrix4Transposed(b, columnBlock(values, pair) + step * kStepBytes);
#pragma unroll
        for (int i = 0; i < K::kRowTiles; ++i) {
          ptx::mma<E>(out[i][2 * pair], probabilities[i][step], b[0], b[1]);
          ptx::mma<E>(out[i][2 * pair + 1], probabilities[i][step], b[2], b[3]);
        }
      }
    }
  }
};

} // namespace heddle
