// The running softmax of one warp's rows, in base 2 and fp32. For each row: row_max, a maximum of the scaled scores
// that may lag behind them by kRescaleThreshold and kWeightExponent (log2 units), and weights and output relative to it.
// Invariant: sum = sum of 2^(s - row_max), out = sum of 2^(s - row_max) v over the keys so far. A row without a kept key has row_max
// kNoRowMax, sum 0.
#pragma once

#include "Ptx/scalar.cuh"
#include "Shared/elements.cuh"
#include "Shared/quads.cuh"

namespace heddle {

// What a lane has of the products of one warp, whose shapes are K's (WarpgroupProducts, WarpProductShape), and a number
// for each of its rows.
template <class K> using Scores = typename K::Scores;
template <class K> using Probabilities = typename K::Probabilities;
template <class K> using Output = typename K::Output;
template <class K> using RowValues = float[K::kRowTiles][2];

// Accumulators of one warp. Index [i][half]: row i * 16 + half * 8 + lane / 4 of the warp. `sum` is this
// lane's part; the row's sum is the total over the four lanes of a quad.
template <class K> struct RowState {
  Output<K> out;
  float rowMax[K::kRowTiles][2];
  float sum[K::kRowTiles][2];
};

// Row number in the query tile of this lane's row (0, 0).
template <class K> DEV int32_t laneRowNumber() {
  const uint32_t thread = ptx::rereadThreadIndex();
  return thread / 32 * (K::kRowTiles * 16) + thread % 32 / 4;
}

// Weights reach 2^kWeightExponent, so that small ones are not lost in the few bits of a byte: with the threshold as much
// as the largest power of two that there is.
template <class Traits> struct SoftmaxNumbers : Traits {
  static constexpr int kWeightExponent = Traits::kIsScaled ? Traits::kLargestExponent - Traits::kRescaleThreshold : 0;
  static_assert(kWeightExponent >= 0, "weights stay finite in their type");
  static constexpr bool kMovesByRow = false; // beyond the threshold, not with its neighbours
};

// Below every scaled score, and finite: a score of -inf relative to it is still -inf.
constexpr float kNoRowMax = -3e38f;

template <class K> DEV void clearOutput(RowState<K> &rows) {
#pragma unroll
  for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
    for (int n = 0; n < K::kOutputTiles; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        rows.out[i][n][e] = 0.f;
}

template <class K> DEV void clearRows(RowState<K> &rows) {
#pragma unroll
  for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      rows.rowMax[i][half] = kNoRowMax;
      rows.sum[i][half] = 0.f;
    }
  clearOutput(rows);
}

// Largest unscaled score of each row among this lane's elements.
template <int Rows, int Tiles> DEV void laneMax(float (&largest)[Rows][2], const float (&scores)[Rows][Tiles][4]) {
#pragma unroll
  for (int i = 0; i < Rows; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float x = fmaxf(scores[i][0][2 * half], scores[i][0][2 * half + 1]);
#pragma unroll
      for (int n = 1; n < Tiles; ++n)
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

template <class E> DEV RowSum rowSum(float rowMax, float lanePart) {
  const float sum = quadSum(lanePart);
  return {snappedSum<E>(rowMax, sum), sum};
}

// Where the product sums the weights, they are far from what they were before.
template <class K> DEV RowSum rowSum(const RowState<K> &rows, int i, int half) {
  if constexpr (K::Values::kSumTiles > 0)
    return {rows.out[i][K::kOutputTiles - 1][2 * half], quadSum(rows.sum[i][half])};
  else
    return rowSum<typename K::Element>(rows.rowMax[i][half], rows.sum[i][half]);
}

// By more than the threshold.
template <class K> DEV bool exceedsRowMax(float rowMax, float largest, float scaleLog2) {
  return fmaf(largest, scaleLog2, -static_cast<float>(K::kRescaleThreshold + K::kWeightExponent)) > rowMax;
}

template <class K> DEV bool exceedsRowMax(const RowState<K> &rows, const RowValues<K> &largest, float scaleLog2) {
  bool exceeds = false;
#pragma unroll
  for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      exceeds |= exceedsRowMax<K>(rows.rowMax[i][half], largest[i][half], scaleLog2);
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
// more than it, all of them or, if kMovesByRow, those that do; without, always.
template <bool IsAnchored = false, class K>
DEV bool raiseRowMax(RowState<K> &rows, const RowValues<K> &largest, float scaleLog2, RowValues<K> &factor) {
  if (K::kRescaleThreshold > 0)
    if (!__any_sync(kWholeWarp, exceedsRowMax(rows, largest, scaleLog2)))
      return false;
#pragma unroll
  for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float ofRow = quadMax(largest[i][half]), most = ofRow * scaleLog2;
      const bool stays = K::kMovesByRow && !exceedsRowMax<K>(rows.rowMax[i][half], ofRow, scaleLog2);
      const float raised = stays ? rows.rowMax[i][half] : fmaxf(rows.rowMax[i][half], most - K::kWeightExponent);
      factor[i][half] = ptx::exp2Approx(rows.rowMax[i][half] - raised);
      shrinkSum<IsAnchored>(rows.sum[i][half], factor[i][half]);
      rows.rowMax[i][half] = raised;
    }
  return true;
}

template <class K> DEV void scaleOutput(RowState<K> &rows, const RowValues<K> &factor) {
#pragma unroll
  for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
    for (int n = 0; n < K::kOutputTiles; ++n)
#pragma unroll
      for (int slot = 0; slot < 4; ++slot)
        rows.out[i][n][slot] *= factor[i][slot / 2];
}

} // namespace heddle
