// The running softmax of one warp's rows, in base 2 and fp32. For each row: row_max, a maximum of the scaled scores
// that may lag behind them by kRescaleThreshold and kWeightExponent (log2 units), and weights and output relative to it.
// Invariant: sum = sum of 2^(s - row_max), out = sum of 2^(s - row_max) v over the keys so far. A row without a kept key has row_max
// kNoRowMax, sum 0.
#pragma once

#include "Forward/products.cuh"
#include "Ptx/scalar.cuh"
#include "Shared/elements.cuh"
#include "Shared/quads.cuh"

namespace heddle {

// Accumulators of one warp. Index [i][half]: row i * 16 + half * 8 + lane / 4 of the warp. `sum` is this
// lane's part; the row's sum is the total over the four lanes of a quad.
struct RowState {
  Output out;
  float rowMax[kRowTiles][2];
  float sum[kRowTiles][2];
};

// Row number in the query tile of this lane's row (0, 0).
DEV int32_t laneRowNumber() {
  int32_t thread = ptx::rereadThreadIndex();
  return thread / 32 * (kRowTiles * 16) + thread % 32 / 4;
}

typedef float RowValues[kRowTiles][2];

// Weights reach 2^kWeightExponent, so that small ones are not lost in the few bits of a byte: with the threshold as much
// as the largest power of two that there is.
constexpr int kWeightExponent = kIsScaled ? KernelTraits::kLargestExponent - KernelTraits::kRescaleThreshold : 0;
static_assert(kWeightExponent >= 0, "weights stay finite in their type");

// Below every scaled score, and finite: a score of -inf relative to it is still -inf.
constexpr float kNoRowMax = -3e38f;

DEV void clearOutput(RowState &rows) {
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
    for (int n = 0; n < kOutputTiles; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        rows.out[i][n][e] = 0.f;
}

DEV void clearRows(RowState &rows) {
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      rows.rowMax[i][half] = kNoRowMax;
      rows.sum[i][half] = 0.f;
    }
  clearOutput(rows);
}

// Largest unscaled score of each row among this lane's elements.
DEV void laneMax(RowValues &largest, const Scores &scores) {
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float x = fmaxf(scores[i][0][2 * half], scores[i][0][2 * half + 1]);
#pragma unroll
      for (int n = 1; n < kScoreTiles; ++n)
        x = fmaxf(x, fmaxf(scores[i][n][2 * half], scores[i][n][2 * half + 1]));
      largest[i][half] = x;
    }
}

// What the output of a row is divided by, and what its lse is made of: the same in all lanes of the quad.
struct RowSum {
  float ofProducts, ofWeights;
};

// The largest score meets row_max up to the rounding of their multiplication by the scale and of ex2. A sum that close
// to 1 is the weight of the one key that counts. The product with v has it rounded, to 1 but for scores of thousands:
// divided by the same, it is v itself.
template <class E> DEV float snappedSum(float rowMax, float sum) {
  const float rounding = fmaf(fabsf(rowMax), 0x1p-24f, 0x1p-22f);
  const float rounded = E::rounded(sum);
  return fabsf(sum - 1.f) <= rounding ? rounded : sum;
}

template <class E = Element> DEV RowSum rowSum(float rowMax, float lanePart) {
  const float sum = quadSum(lanePart);
  return {snappedSum<E>(rowMax, sum), sum};
}

// Where the product sums the weights, they are far from what they were before.
template <class E = Element> DEV RowSum rowSum(const RowState &rows, int i, int half) {
  if constexpr (Values::kSumTiles > 0)
    return {rows.out[i][kOutputTiles - 1][2 * half], quadSum(rows.sum[i][half])};
  else
    return rowSum<E>(rows.rowMax[i][half], rows.sum[i][half]);
}

DEV bool exceedsRowMax(const RowState &rows, const RowValues &largest, float scaleLog2) {
  bool exceeds = false;
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      exceeds |= fmaf(largest[i][half], scaleLog2,
                      -static_cast<float>(KernelTraits::kRescaleThreshold + kWeightExponent)) > rows.rowMax[i][half];
  return exceeds;
}

// An anchored sum (sm90_softmax.cuh) from here on is beyond trust. Values up to 2^27 leave the output finite below it.
constexpr float kRedoLimit = 0x1p100f;

// A sum beyond trust becomes infinite, as its output may have overflowed. One that is NaN stays NaN.
template <bool IsAnchored> DEV void shrinkSum(float &sum, float factor) {
  sum = IsAnchored && sum >= kRedoLimit ? INFINITY : sum * factor;
}

// Restores the invariant before scores with these maxima are added, but for the output, which must be multiplied by
// `factor` where the result is true. With a threshold the warp moves its row maxima only when some score exceeds one by
// more than it; without, always.
template <bool IsAnchored = false>
DEV bool raiseRowMax(RowState &rows, const RowValues &largest, float scaleLog2, RowValues &factor) {
  if (KernelTraits::kRescaleThreshold > 0)
    if (!__any_sync(kWholeWarp, exceedsRowMax(rows, largest, scaleLog2)))
      return false;
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float most = quadMax(largest[i][half]) * scaleLog2;
      const float raised = fmaxf(rows.rowMax[i][half], most - kWeightExponent);
      factor[i][half] = ptx::exp2Approx(rows.rowMax[i][half] - raised);
      shrinkSum<IsAnchored>(rows.sum[i][half], factor[i][half]);
      rows.rowMax[i][half] = raised;
    }
  return true;
}

DEV void scaleOutput(RowState &rows, const RowValues &factor) {
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
    for (int n = 0; n < kOutputTiles; ++n)
#pragma unroll
      for (int slot = 0; slot < 4; ++slot)
        rows.out[i][n][slot] *= factor[i][slot / 2];
}

} // namespace heddle
