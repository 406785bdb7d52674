// Products of a consumer of the Hopper backward kernel, operands and sums as its lanes hold them, and how rows of a
// gradient leave.
#pragma once

#include "Backward/gradient_rows.cuh"
#include "Backward/sm90_query_gradient.cuh"
#include "Ptx/warpgroup_mma.cuh"
#include "Shared/float_pairs.cuh"

namespace heddle {

// Shapes of the products of one warp of the warpgroup, and what it has of them.
template <class Traits> struct BackwardProducts : QueryGradientShape<Traits> {
  static constexpr int kQueryTiles = Traits::kBlockM / 8, kQuerySteps = Traits::kBlockM / Traits::kMmaStep;
  static constexpr int kHeadSteps = (Traits::kHeadDim + Traits::kMmaStep - 1) / Traits::kMmaStep;
  static constexpr int kValueSteps = (Traits::kValueDim + Traits::kMmaStep - 1) / Traits::kMmaStep;

  using Product = typename ProductElement<typename Traits::Element>::Type;
  using Scores = float[kQueryTiles][4];
  using ScoreOperand = uint32_t[kQuerySteps][4];
  using KeyGradient = float[Traits::kHeadDim / 8][4];
  using ValueGradient = float[Traits::kValueDim / 8][4];
};

template <class K> constexpr uint32_t kStepRowBytes = K::kMmaStep * kColumnRowBytes;
constexpr int kStepsPerColumn = kColumnRowBytes / kMmaBytes;

// scores = rows (64 of an operand of kBlockN rows) times queries^T, both along so many steps of each part, or some of them.
template <class K, int Steps, int First = 0, int End = Steps>
DEV void startScores(typename K::Scores &scores, uint32_t rows, uint32_t queries) {
  using Mma = ptx::WarpgroupMma<K::kBlockM, typename K::Product>;
  using Products = PartProducts<K::kParts>;
  constexpr int kColumns = (Steps + kStepsPerColumn - 1) / kStepsPerColumn;
#pragma unroll
  for (int product = 0; product < Products::kCount; ++product)
#pragma unroll
    for (int step = First; step < End; ++step) {
      const uint32_t inColumn = step % kStepsPerColumn * kMmaBytes, column = step / kStepsPerColumn;
      const uint32_t ofRows = (Products::ofA(product) * kColumns + column) * kColumnRowBytes,
                     ofQueries = (Products::ofB(product) * kColumns + column) * kColumnRowBytes;
      const uint64_t a = ptx::sharedOperand<0>(rows, ofRows * K::kBlockN + inColumn);
      const uint64_t b = ptx::sharedOperand<0>(queries, ofQueries * K::kBlockM + inColumn);
      if (product == 0 && step == First)
        Mma::template ofShared<false>(scores, a, b);
      else
        Mma::template ofShared<true>(scores, a, b);
    }
}

// sum += weights (keys x queries) times rows (queries x dim).
template <class K, int N>
DEV void startSum(float (&sum)[N][4], const typename K::ScoreOperand &weights, uint32_t rows) {
  using Mma = ptx::WarpgroupMma<N * 8, typename K::Product>;
#pragma unroll
  for (int step = 0; step < K::kQuerySteps; ++step)
    Mma::ofRegisters(sum, weights[step],
                     ptx::sharedOperand<K::kBlockM * kColumnRowBytes>(rows, step * kStepRowBytes<K>));
}

// 64 rows of dQ = dS K: dS lies transposed, keys in rows.
template <class K> DEV void startQueryGradient(QueryGradient<K> &sum, uint32_t scores, uint32_t keys) {
  using Mma = ptx::WarpgroupMma<K::kSumColumns, typename K::Product>;
#pragma unroll
  for (int step = 0; step < K::kBlockN / K::kMmaStep; ++step) {
    const uint64_t a = ptx::sharedOperand<0>(scores, step * kStepRowBytes<K>);
    const uint64_t b = ptx::sharedOperand<K::kBlockN * kColumnRowBytes>(keys, step * kStepRowBytes<K>);
    if (step == 0)
      Mma::template ofShared<false, true>(sum, a, b);
    else
      Mma::template ofShared<true, true>(sum, a, b);
  }
}

template <int N> DEV void clearSums(float (&sum)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int slot = 0; slot < 4; ++slot)
      sum[n][slot] = 0.f;
  ptx::pin(sum);
}

// A row of a gradient: half 0 or 1 of what a lane holds.
struct GradientRow {
  int32_t batch, row, head;
  bool exists;
  int half;
};

template <class K, bool Adds, int N>
DEV void storeGradientRow(void *to, const int64_t (&stride)[3], const GradientRow &row, const float (&sums)[N][4],
                          float scale) {
  float values[N][2];
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int e = 0; e < 2; ++e)
      values[n][e] = sums[n][2 * row.half + e] * scale;
  const int64_t first = row.batch * stride[0] + row.row * stride[1] + row.head * stride[2];
  storeGradient<K, Adds>(static_cast<char *>(to) + first * kGradientBytes<K, Adds>, row.exists, values);
}

} // namespace heddle
