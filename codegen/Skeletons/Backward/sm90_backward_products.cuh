// Products of a consumer of the Hopper backward kernel, operands and sums as its lanes hold them, and how rows of a
// gradient leave.
#pragma once

#include "Backward/gradient_rows.cuh"
#include "Backward/sm90_query_gradient.cuh"
#include "Ptx/warpgroup_mma.cuh"

namespace heddle {

constexpr int kQueryTiles = kBlockM / 8, kQuerySteps = kBlockM / kMmaStep;
constexpr int kHeadSteps = (KernelTraits::kHeadDim + kMmaStep - 1) / kMmaStep;
constexpr int kValueSteps = (KernelTraits::kValueDim + kMmaStep - 1) / kMmaStep;
constexpr int kStepsPerColumn = kColumnElements / kMmaStep;
constexpr uint32_t kStepBytes = kMmaStep * kElementBytes, kStepRowBytes = kMmaStep * kColumnRowBytes;

typedef float Scores[kQueryTiles][4];
typedef uint32_t ScoreOperand[kQuerySteps][4];

typedef float KeyGradient[KernelTraits::kHeadDim / 8][4];
typedef float ValueGradient[KernelTraits::kValueDim / 8][4];

// scores = rows (64 of an operand of Rows rows) times queries^T, both along Dim.
template <int Steps> DEV void startScores(Scores &scores, uint32_t rows, uint32_t queries) {
  using Mma = ptx::WarpgroupMma<kBlockM, Element>;
#pragma unroll
  for (int step = 0; step < Steps; ++step) {
    const uint32_t inColumn = step % kStepsPerColumn * kStepBytes, column = step / kStepsPerColumn * kColumnRowBytes;
    const uint64_t a = ptx::sharedOperand<0>(rows, column * kBlockN + inColumn);
    const uint64_t b = ptx::sharedOperand<0>(queries, column * kBlockM + inColumn);
    if (step == 0)
      Mma::template ofShared<false>(scores, a, b);
    else
      Mma::template ofShared<true>(scores, a, b);
  }
}

// sum += weights (keys x queries) times rows (queries x dim).
template <int N> DEV void startSum(float (&sum)[N][4], const ScoreOperand &weights, uint32_t rows) {
  using Mma = ptx::WarpgroupMma<N * 8, Element>;
#pragma unroll
  for (int step = 0; step < kQuerySteps; ++step)
    Mma::ofRegisters(sum, weights[step], ptx::sharedOperand<kBlockM * kColumnRowBytes>(rows, step * kStepRowBytes));
}

// 64 rows of dQ = dS K: dS lies transposed, keys in rows.
DEV void startQueryGradient(QueryGradient &sum, uint32_t scores, uint32_t keys) {
  using Mma = ptx::WarpgroupMma<kSumColumns, Element>;
#pragma unroll
  for (int step = 0; step < kBlockN / kMmaStep; ++step) {
    const uint64_t a = ptx::sharedOperand<0>(scores, step * kStepRowBytes);
    const uint64_t b = ptx::sharedOperand<kBlockN * kColumnRowBytes>(keys, step * kStepRowBytes);
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

template <bool Adds, int N>
DEV void storeGradientRow(void *to, const int64_t (&stride)[3], const GradientRow &row, const float (&sums)[N][4],
                          float scale) {
  float values[N][2];
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int e = 0; e < 2; ++e)
      values[n][e] = sums[n][2 * row.half + e] * scale;
  const int64_t first = row.batch * stride[0] + row.row * stride[1] + row.head * stride[2];
  storeGradient<Adds>(static_cast<char *>(to) + first * kGradientBytes<Adds>, row.exists, values);
}

} // namespace heddle
