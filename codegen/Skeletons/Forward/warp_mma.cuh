// The two mma of one warp: scores = Q K^T for kChunkN keys, out += P V. A warp owns
// kRowTiles x 16 query rows; every K and V fragment read from shared memory serves all of them.
#pragma once

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
constexpr bool kAllHaveSameRows = RowWarps<KernelTraits>::kCount == 1;

constexpr int kRowTiles = KernelTraits::kBlockM / (16 * RowWarps<KernelTraits>::kCount);
constexpr int kHeadSteps = KernelTraits::kHeadDim / kMmaStep;
constexpr int kValueTiles = KernelTraits::kValueDim / 8;
constexpr int kOutputTiles = kValueTiles;
constexpr int kChunkN = KernelTraits::kChunkN;
constexpr int kChunks = KernelTraits::kBlockN / kChunkN;
constexpr int kScoreTiles = kChunkN / 8;
constexpr int kChunkSteps = kChunkN / kMmaStep;

// What products of values leave in the lanes.
template <bool AreScaled> struct ColumnsOfValues {
  using Type = ColumnPairs;
};
template <> struct ColumnsOfValues<true> {
  using Type = ColumnFours;
};
struct Values {
  using Columns = ColumnsOfValues<kHasScaledKeys>::Type;
  static constexpr int kSumTiles = 0;
};

typedef float Scores[kRowTiles][kScoreTiles][4];
typedef uint32_t Probabilities[kRowTiles][kChunkSteps][4];
typedef float Output[kRowTiles][kValueTiles][4];

// This warp's rows of Q: held in registers, or read again for every mma.
class QueryOperand {
public:
  DEV explicit QueryOperand(uint32_t tile) {
    constexpr int kRowBytes = KernelTraits::kSmemRowBytesQK;
    int warpRow = kAllHaveSameRows ? 0 : threadIdx.x / 32 * (kRowTiles * 16);
    address = tile + warpRow * kRowBytes + laneOffsetRowsFirst(kRowBytes);
  }

  // Call once after Q has arrived.
  DEV void keepInRegisters() {
    if constexpr (KernelTraits::kQueryInRegisters) {
#pragma unroll
      for (int step = 0; step < kHeadSteps; ++step)
        read(step, held[step]);
    }
  }

  DEV void fragments(int step, uint32_t (&a)[kRowTiles][4]) const {
    if constexpr (KernelTraits::kQueryInRegisters) {
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          a[i][j] = held[step][i][j];
    } else {
      read(step, a);
    }
  }

private:
  DEV void read(int step, uint32_t (&a)[kRowTiles][4]) const {
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
      ptx::loadMatrix4(a[i], columnBlock(address, step) + i * 16 * KernelTraits::kSmemRowBytesQK);
  }

  uint32_t address;
  uint32_t held[KernelTraits::kQueryInRegisters ? kHeadSteps : 1][kRowTiles][4];
};

DEV void copyScores(Scores &to, const Scores &from) {
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
    for (int n = 0; n < kScoreTiles; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        to[i][n][e] = from[i][n][e];
}

// Elements are two in a register.
template <class E, int Bytes = kElementBytes> struct WarpProducts {
  static_assert(Bytes == 2, "float_mma.cuh has those of floats");

  // scores = Q K^T; `keys` is this lane's address (columns first) in the first key row of the chunk.
  DEV static void queryKey(Scores &scores, const QueryOperand &query, uint32_t keys) {
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
      for (int n = 0; n < kScoreTiles; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          scores[i][n][e] = 0.f;
#pragma unroll
    for (int step = 0; step < kHeadSteps; ++step) {
      uint32_t a[kRowTiles][4];
      query.fragments(step, a);
      uint32_t column = columnBlock(keys, step);
#pragma unroll
      for (int pair = 0; pair < kScoreTiles / 2; ++pair) {
        uint32_t b[4];
        ptx::loadMatrix4(b, column + pair * 16 * KernelTraits::kSmemRowBytesQK);
#pragma unroll
        for (int i = 0; i < kRowTiles; ++i) {
          ptx::mma<E>(scores[i][2 * pair], a[i], b[0], b[1]);
          ptx::mma<E>(scores[i][2 * pair + 1], a[i], b[2], b[3]);
        }
      }
    }
  }

  // `low` and `high` are of columns 2 c and 2 c + 1 of score tile n, lane 4 r + c, in row r + 8 half.
  DEV static void setWeights(uint32_t (&weights)[kChunkSteps][4], int n, int half, float low, float high) {
    weights[n / 2][n % 2 * 2 + half] = pack<E>(low, high);
  }

  // out += P V; `values` is this lane's address (rows first) in the first key row of the chunk.
  DEV static void probabilityValue(Output &out, const Probabilities &probabilities, uint32_t values) {
#pragma unroll
    for (int step = 0; step < kChunkSteps; ++step) {
      constexpr int kStepBytes = kMmaStep * KernelTraits::kSmemRowBytesV;
#pragma unroll
      for (int pair = 0; pair < kValueTiles / 2; ++pair) {
        uint32_t b[4];
        ptx::loadMatrix4Transposed(b, columnBlock(values, pair) + step * kStepBytes);
#pragma unroll
        for (int i = 0; i < kRowTiles; ++i) {
          ptx::mma<E>(out[i][2 * pair], probabilities[i][step], b[0], b[1]);
          ptx::mma<E>(out[i][2 * pair + 1], probabilities[i][step], b[2], b[3]);
        }
      }
    }
  }
};

} // namespace heddle
