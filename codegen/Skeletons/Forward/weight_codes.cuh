// Weights of e4m3 without an exponential. The bits of a positive floating-point number, read as an integer, are its logarithm,
// but for a straight line in the place of the curve from one power of two to the next (N. N. Schraudolph, A Fast, Compact Approximation
// of the Exponential Function, Neural Computation 11, 1999). e4m3 has so few bits that the line moves a weight by less than rounding
// does: each is within 8.5% of 2^x, those that are rounded to nearest within 6%. Below the least normal number the line goes on to
// 0, one octave on. The mean of the weights is right, and the sums that divide the output are of weights as they are.
//
// The conversion to halves makes these integers: a subnormal half is an integer times 2^-24, rounded to nearest, and none is
// negative with relu. NaN has all bits of its lower byte, which is NaN in e4m3, too.
#pragma once

#include "Forward/sm90_softmax.cuh"

namespace heddle {

constexpr int kCodesOfOctave = 8, kCodeOfOne = 7 * kCodesOfOctave, kCodeOfNan = 127;
constexpr float kCodeUnit = 0x1p-24f;
constexpr float kMeanShift = -0.0571f; // in octaves: the mean of weights of evenly spread fractions is that of 2^x

template <class K> class WeightCodes {
  static constexpr int kFirstCode = kCodeOfOne + K::kWeightExponent * kCodesOfOctave; // of the largest of a row
  static constexpr uint32_t kCodes = 256, kNanHalf = 0x7fff, kLowBytes = 0x00ff00ff;

public:
  template <class Scale>
  DEV void make(Probabilities<K> &weights, const RowState<K> &rows, const Scores<K> &scores, const Scale &scale) {
    constexpr float kScale = kCodesOfOctave * kCodeUnit,
                    kShift = (kCodeOfOne + kMeanShift * kCodesOfOctave) * kCodeUnit;
    float shift[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      shift[half] = fmaf(rows.rowMax[0][half], -kScale, kShift);
      largest[half] = 0;
    }
#pragma unroll
    for (int n = 0; n < K::kScoreTiles; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float factor = scaleOf(scale, n, half) * kScale;
        const auto codesOf = [&](float a, float b) {
          const uint32_t codes = ptx::packNotNegative(fmaf(a, factor, shift[half]), fmaf(b, factor, shift[half]));
          largest[half] = ptx::largerHalves(largest[half], codes);
          return codes;
        };
        K::Values::packWeights(weights, scores, n, half, [&](float a, float b, float c, float d) {
          const uint32_t first = codesOf(a, b);
          return ptx::permuteBytes<0x6420>(first, codesOf(c, d));
        });
      }
  }

  // Some weight is more than e4m3 holds.
  DEV bool mayNotFit() const {
    const uint32_t most = ptx::largerHalves(largest[0], largest[1]);
    return __any_sync(kWholeWarp, max(most & 0xffff, most >> 16) >= kCodeOfNan);
  }

  // Moves the maxima of rows up whose weights do not fit, until they do, and to infinity where some weight has no code at all:
  // such a row has no result. Rows with NaN stay as they are. The output must be multiplied by `factor`.
  DEV void fit(RowState<K> &rows, Probabilities<K> &weights, RowValues<K> &factor) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32_t most = max(largest[half] & 0xffff, largest[half] >> 16);
      most = max(most, __shfl_xor_sync(kWholeWarp, most, 1));
      most = max(most, __shfl_xor_sync(kWholeWarp, most, 2));
      const bool fits = most < kCodeOfNan || most == kNanHalf;
      const int32_t octaves = fits ? 0 : (most - kFirstCode + kCodesOfOctave - 1) / kCodesOfOctave;
      factor[0][half] = ptx::exp2Approx(-static_cast<float>(octaves));
      rows.rowMax[0][half] = fits || most < kCodes ? rows.rowMax[0][half] + octaves : INFINITY;
#pragma unroll
      for (int step = 0; step < K::kKeySteps; ++step)
#pragma unroll
        for (int word = half; word < 4; word += 2)
          weights[0][step][word] = lowered(weights[0][step][word], octaves * kCodesOfOctave * 0x00010001u);
    }
  }

private:
  // Each of four codes less the one of `less`, which has it twice, or 0.
  DEV static uint32_t lowered(uint32_t codes, uint32_t less) {
    const uint32_t even = ptx::largerHalves(codes & kLowBytes, less) - less,
                   odd = ptx::largerHalves(codes >> 8 & kLowBytes, less) - less;
    return even | odd << 8;
  }

  uint32_t largest[2]; // of the codes of a row, of every other column
};

// Some row has no result: its maximum was too low.
template <class K> DEV bool hasLostCodes(const RowState<K> &rows) {
  return __any_sync(kWholeWarp, fmaxf(rows.rowMax[0][0], rows.rowMax[0][1]) == INFINITY);
}

} // namespace heddle
