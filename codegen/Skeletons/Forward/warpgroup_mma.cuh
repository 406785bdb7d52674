// The two mma of one consumer warpgroup: scores of its 64 rows for one key tile, and out += P V. Tiles
// lie in shared memory as columns of 64 elements, rows of 128 bytes, swizzled over 128 bytes; values of bytes as rows of
// keys for each of their dimensions (sm90_transposer.cuh says in which order).
#pragma once

#include "Ptx/warpgroup_mma.cuh"
#include "Shared/row_stores.cuh"
#include "Shared/sm90_block.cuh"

namespace heddle {

constexpr int kRowTiles = 1; // of 16 rows in one warp
constexpr int kChunkN = KernelTraits::kBlockN;
constexpr int kScoreTiles = KernelTraits::kBlockN / 8;
constexpr int kKeySteps = KernelTraits::kBlockN / kMmaStep;
constexpr int kHeadSteps = (KernelTraits::kHeadDim + kMmaStep - 1) / kMmaStep;
constexpr int kValueTiles = KernelTraits::kValueDim / 8;

constexpr uint32_t kStepBytes = kMmaStep * kElementBytes; // along a row

typedef float Scores[kRowTiles][kScoreTiles][4];
typedef uint32_t Probabilities[kRowTiles][kKeySteps][4];

// Values as they arrive, a row of dimensions for each key.
struct ArrivedValues {
  using Columns = ColumnPairs;
  static constexpr bool kAreTurned = false;
  static constexpr int kSumTiles = 0; // of the output, behind the values

  DEV static uint64_t operand(uint32_t values, int step) {
    return ptx::sharedOperand<KernelTraits::kBlockN * kColumnRowBytes>(values, step * kMmaStep * kColumnRowBytes);
  }
  template <class E> DEV static void packWeights(Probabilities &weights, const Scores &scores, int n, int half) {
    weights[0][n / 2][n % 2 * 2 + half] = E::pack(scores[0][n][2 * half], scores[0][n][2 * half + 1]);
  }
};

// Values that were turned over, a row of keys for each dimension (sm90_transposer.cuh). Behind them are ones, whose
// products are the sums of the weights, as they are rounded, in all columns.
struct TurnedValues {
  using Columns = ColumnFours;
  static constexpr bool kAreTurned = true;
  static constexpr int kSumTiles = 1;

  DEV static uint64_t operand(uint32_t values, int step) { return ptx::sharedOperand<0>(values, step * kStepBytes); }
  // Takes two tiles at once: the keys of a word lie in both.
  template <class E> DEV static void packWeights(Probabilities &weights, const Scores &scores, int n, int half) {
    if (n % 2 != 0)
      return;
    const auto &first = scores[0][n], &second = scores[0][n + 1];
    weights[0][n / 4][n / 2 % 2 * 2 + half] =
        E::pack(first[2 * half], first[2 * half + 1], second[2 * half], second[2 * half + 1]);
  }
};

template <class E> struct ValuesOf {
  using Type = ArrivedValues;
};
template <> struct ValuesOf<E4m3> {
  using Type = TurnedValues;
};
using Values = ValuesOf<Element>::Type;

constexpr int kOutputTiles = kValueTiles + Values::kSumTiles;
typedef float Output[kRowTiles][kOutputTiles][4];

constexpr int kStepsPerColumn = kColumnElements / kMmaStep;

// Starts scores = Q K^T.
DEV void startScores(Scores &scores, uint32_t query, uint32_t keys) {
  using Mma = ptx::WarpgroupMma<KernelTraits::kBlockN, Element>;
  constexpr uint32_t kQueryColumn = KernelTraits::kBlockM * kColumnRowBytes;
  constexpr uint32_t kKeyColumn = KernelTraits::kBlockN * kColumnRowBytes;
#pragma unroll
  for (int step = 0; step < kHeadSteps; ++step) {
    const uint32_t inColumn = step % kStepsPerColumn * kStepBytes;
    const uint64_t a = ptx::sharedOperand<0>(query, step / kStepsPerColumn * kQueryColumn + inColumn);
    const uint64_t b = ptx::sharedOperand<0>(keys, step / kStepsPerColumn * kKeyColumn + inColumn);
    if (step == 0)
      Mma::template ofShared<false>(scores[0], a, b);
    else
      Mma::template ofShared<true>(scores[0], a, b);
  }
}

// Starts out += P V.
DEV void startOutput(Output &out, const Probabilities &weights, uint32_t values) {
  using Mma = ptx::WarpgroupMma<kOutputTiles * 8, Element>;
#pragma unroll
  for (int step = 0; step < kKeySteps; ++step)
    Mma::ofRegisters(out[0], weights[0][step], Values::operand(values, step));
}

} // namespace heddle
