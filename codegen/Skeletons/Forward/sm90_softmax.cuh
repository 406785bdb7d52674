// The running softmax of one warp's 16 rows beside mma in flight: the output may not be touched when the
// row maxima move, so a step first learns by what factor the output shrinks and applies it after the wait.
//
// Anchored softmax: steps without masks keep the row maxima as they stand and look for no maximum. Weights may then
// pass 1, up to what bfloat16 and fp32 hold; sums above kAnchorLimit move them afterwards, exactly. A sum that
// passes kRedoLimit all the same marks the item, which is then computed again with every maximum looked for. Weights that
// become bytes may not pass what these hold: where their sum over a tile does, row maxima move before they are packed.
#pragma once

#include "Forward/online_softmax.cuh"
#include "Forward/sm90_shared.cuh"

namespace heddle {

constexpr float kAnchorLimit = 16777216.f; // 2^24

template <class Traits> struct AnchoredSoftmax : SoftmaxNumbers<Traits> {
  static constexpr bool kIsAnchored = Traits::kSoftmax == kSoftmaxAnchored;
  static constexpr bool kMayRedo = kIsAnchored;
  static constexpr bool kMovesByRow = Traits::kSoftmax == kSoftmaxByRow || Traits::kWeightsAreCodes;
  static constexpr bool kFitsWeights = kIsAnchored && Traits::kIsScaled;
  static constexpr bool kSumsTiles = Traits::kArePairs || kFitsWeights;
  static_assert(!kIsAnchored || kFitsWeights || Traits::kLargestExponent >= 127,
                "anchored weights need the exponent range of fp32");
};

// True: row maxima moved to let these scores in, and the output must be multiplied by `factor`.
template <class K> DEV bool admit(RowState<K> &rows, const Scores<K> &scores, float scaleLog2, RowValues<K> &factor) {
  RowValues<K> largest;
  laneMax(largest, scores);
  return raiseRowMax<K::kIsAnchored>(rows, largest, scaleLog2, factor);
}

// What the scores of a tile are multiplied by to be in log2 units.
DEV float scaleOf(float scaleLog2, int, int) { return scaleLog2; }

// Moves the row maxima up by whole numbers until the sums of no lane pass 2^Most.
template <int Most, class K> DEV void raiseBySums(RowState<K> &rows, const RowValues<K> &sums, RowValues<K> &factor) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float exponent = fmaxf(ceilf(ptx::log2Approx(quadMax(sums[0][half]))) - Most, 0.f);
    factor[0][half] = ptx::exp2Approx(-exponent);
    rows.rowMax[0][half] += exponent;
  }
}

// Turns scores into weights relative to the row maxima, in place, and adds them to the sums. Where these have all digits, and
// where weights must fit their type, a tile is summed by itself: of 64k keys a sum of one after the other is 4e-6 off.
template <class K, class Scale>
DEV void scoresToWeights(RowState<K> &rows, Scores<K> &scores, const Scale &scale, RowValues<K> &ofTile) {
  float shift[2] = {-rows.rowMax[0][0], -rows.rowMax[0][1]};
#pragma unroll
  for (int n = 0; n < K::kScoreTiles; ++n)
#pragma unroll
    for (int slot = 0; slot < 4; ++slot) {
      float weight = ptx::exp2Approx(fmaf(scores[0][n][slot], scaleOf(scale, n, slot / 2), shift[slot / 2]));
      scores[0][n][slot] = weight;
      float &sum = (K::kSumsTiles ? ofTile : rows.sum)[0][slot / 2];
      sum = K::kSumsTiles && n == 0 && slot % 2 == 0 ? weight : sum + weight;
    }
}

template <class K> DEV void addSumsOfTile(RowState<K> &rows, const RowValues<K> &ofTile) {
  if constexpr (K::kSumsTiles)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      rows.sum[0][half] += ofTile[0][half];
}

// Some weight may pass what bytes hold.
template <class K> DEV bool mayNotFit(const RowValues<K> &ofTile) {
  return __any_sync(kWholeWarp, fmaxf(ofTile[0][0], ofTile[0][1]) > kLargestE4m3);
}

// Moves the row maxima up until sums of a tile are at most 2^kLargestExponent, and so all weights. What fp32 does not hold
// either leaves no number in the sum of its row. The output must be multiplied by `factor`.
template <class K>
DEV void fitWeights(RowState<K> &rows, Scores<K> &weights, RowValues<K> &ofTile, RowValues<K> &factor) {
  raiseBySums<K::kLargestExponent>(rows, ofTile, factor);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    rows.sum[0][half] *= factor[0][half];
    ofTile[0][half] *= factor[0][half];
  }
#pragma unroll
  for (int n = 0; n < K::kScoreTiles; ++n)
#pragma unroll
    for (int slot = 0; slot < 4; ++slot)
      weights[0][n][slot] *= factor[0][slot / 2];
}

template <class E> struct PackedAs {
  template <class... Floats> DEV uint32_t operator()(Floats... weights) const { return E::pack(weights...); }
};

template <class K> DEV void packWeights(Probabilities<K> &weights, const Scores<K> &scores) {
#pragma unroll
  for (int n = 0; n < K::kScoreTiles; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      K::Values::packWeights(weights, scores, n, half, PackedAs<typename K::Element>());
}

// Moves the row maxima up by the sums' own exponents where a sum calls for it. True: they moved, as above.
template <class K> DEV bool moveAnchor(RowState<K> &rows, RowValues<K> &factor) {
  if (!__any_sync(kWholeWarp, fmaxf(rows.sum[0][0], rows.sum[0][1]) > kAnchorLimit))
    return false;
  raiseBySums<0>(rows, rows.sum, factor);
#pragma unroll
  for (int half = 0; half < 2; ++half)
    shrinkSum<K::kIsAnchored>(rows.sum[0][half], factor[0][half]);
  return true;
}

// A sum overflowed or came close: the row maxima were too low. Also true for sums that are no numbers.
template <class K> DEV bool hasOverflowed(const RowState<K> &rows) {
  const float first = quadSum(rows.sum[0][0]), second = quadSum(rows.sum[0][1]); // all lanes must take part in both
  const bool isGood = first < kRedoLimit & second < kRedoLimit;
  return __any_sync(kWholeWarp, !isGood);
}

} // namespace heddle
