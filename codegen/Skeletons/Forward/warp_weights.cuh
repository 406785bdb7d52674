// From the scores of one warp's rows to weights, as the operand of the second product.
#pragma once

#include "Forward/float_mma.cuh"
#include "Forward/online_softmax.cuh"

namespace heddle {

// Turns scores into weights relative to row_max and adds them to the sums.
template <class K>
DEV void addWeights(RowState<K> &rows, Probabilities<K> &probabilities, const Scores<K> &scores, float scaleLog2) {
#pragma unroll
  for (int i = 0; i < K::kRowTiles; ++i) {
    const float shift[2] = {-rows.rowMax[i][0], -rows.rowMax[i][1]};
#pragma unroll
    for (int n = 0; n < K::kScoreTiles; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float low = ptx::exp2Approx(fmaf(scores[i][n][2 * half], scaleLog2, shift[half]));
        const float high = ptx::exp2Approx(fmaf(scores[i][n][2 * half + 1], scaleLog2, shift[half]));
        rows.sum[i][half] += low;
        rows.sum[i][half] += high;
        WarpProducts<K>::setWeights(probabilities[i], n, half, low, high);
      }
  }
}

} // namespace heddle
