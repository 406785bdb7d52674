// The running softmax of one warp's 16 rows beside mma in flight: the output may not be touched when the
// row maxima move, so a step first learns by what factor the output shrinks and applies it after the wait.
//
// Anchored softmax: steps without masks keep the row maxima as they stand and look for no maximum. Weights may then
// pass 1, up to what bfloat16 and fp32 hold; sums above kAnchorLimit move them afterwards, exactly. A sum that
// passes kRedoLimit all the same marks the item, which is then computed again with every maximum looked for.
#pragma once

#include "Forward/online_softmax.cuh"
#include "Forward/sm90_shared.cuh"

namespace heddle {

constexpr bool kIsAnchored = KernelTraits::kSoftmax == kSoftmaxAnchored;
constexpr bool kMayRedo = kIsAnchored;
constexpr float kAnchorLimit = 16777216.f; // 2^24

static_assert(!kIsAnchored || KernelTraits::kLargestExponent >= 127,
              "anchored weights need the exponent range of fp32");

// True: row maxima moved to let these scores in, and the output must be multiplied by `factor`.
DEV bool admit(RowState &rows, const Scores &scores, float scaleLog2, RowValues &factor) {
  RowValues largest;
  laneMax(largest, scores);
  return raiseRowMax<kIsAnchored>(rows, largest, scaleLog2, factor);
}

// Turns scores into weights relative to the row maxima, in place, and adds them to the sums.
DEV void scoresToWeights(RowState &rows, Scores &scores, float scaleLog2) {
  float shift[2] = {-rows.rowMax[0][0], -rows.rowMax[0][1]};
#pragma unroll
  for (int n = 0; n < kScoreTiles; ++n)
#pragma unroll
    for (int slot = 0; slot < 4; ++slot) {
      float weight = ptx::exp2Approx(fmaf(scores[0][n][slot], scaleLog2, shift[slot / 2]));
      scores[0][n][slot] = weight;
      rows.sum[0][slot / 2] += weight;
    }
}

template <class E = Element> DEV void packWeights(Probabilities &weights, const Scores &scores) {
#pragma unroll
  for (int n = 0; n < kScoreTiles; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      Values::packWeights<E>(weights, scores, n, half);
}

// Some row of the warp has no maximum yet.
DEV bool lacksRowMax(const RowState &rows) {
  return __any_sync(kWholeWarp, fminf(rows.rowMax[0][0], rows.rowMax[0][1]) == kNoRowMax);
}

// Moves the row maxima up by the sums' own exponents where a sum calls for it. True: they moved, as above.
DEV bool moveAnchor(RowState &rows, RowValues &factor) {
  if (!__any_sync(kWholeWarp, fmaxf(rows.sum[0][0], rows.sum[0][1]) > kAnchorLimit))
    return false;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float most = quadMax(rows.sum[0][half]);
    float exponent = fmaxf(ceilf(ptx::log2Approx(most)), 0.f);
    factor[0][half] = ptx::exp2Approx(-exponent);
    rows.rowMax[0][half] += exponent;
    shrinkSum<kIsAnchored>(rows.sum[0][half], factor[0][half]);
  }
  return true;
}

// A sum overflowed or came close: the row maxima were too low. Also true for sums that are no numbers.
DEV bool hasOverflowed(const RowState &rows) {
  const float first = quadSum(rows.sum[0][0]), second = quadSum(rows.sum[0][1]); // all lanes must take part in both
  const bool isGood = first < kRedoLimit & second < kRedoLimit;
  return __any_sync(kWholeWarp, !isGood);
}

} // namespace heddle
