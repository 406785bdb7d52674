// Rotation of rows of q and k. Of each n neighbouring elements x, n = quantize::rotatedTogether(kHeadDim), it makes
// y[i] = sum over j of (-1)^popcount(i & j) signs[j] x[j], / sqrt(n): of two elements whose places differ in one bit, bit
// by bit from the lowest, their sum and their difference. codegen/Cpu/Quantize.cpp does it in the same order.
//
// A lane has a unit, the n / 8 lanes beside it the others. Three bits are those of a unit. For each bit of a lane, lanes
// that differ in it exchange half of what they have, so that each makes four sums and four differences, of two units. It
// makes first what it keeps, then what it gives away, which costs no choice between registers; a difference is the
// negative one in every other lane, for which one factor of each lane stands up at the end. So eight elements take 24 + 8
// additions and multiplications by +-1 and 4 shuffles for each bit of a lane, and the lane ends with other columns than
// it began with: UnitPlace::columnOf<true>.
#pragma once

#include "Ptx/memory.cuh"
#include "Quantize/quantize_layout.cuh"
#include "Quantize/quantize_pieces.cuh"
#include "Quantize/quantize_units.cuh"

namespace heddle {

constexpr float inverseRoot(int powerOfTwo) {
  return powerOfTwo == 1 ? 1.0f : powerOfTwo == 2 ? 0.70710678118654752f : inverseRoot(powerOfTwo / 4) / 2;
}

template <class K> struct Rotation {
  static constexpr int kTogether = quantize::rotatedTogether(K::kHeadDim);
  static constexpr int kLanes = kTogether / quantize::kUnitElements;
  static constexpr float kFactor = inverseRoot(kTogether);
  static_assert(kLanes >= 2 && kLanes <= 32, "lanes of one warp have other units of a row");
};

// Of the columns of a thread's units.
template <class K, int Dim> DEV void loadSigns(const UnitPlace<K, Dim> &own, const float *signs, UnitValues &values) {
#pragma unroll
  for (int first = 0; first < quantize::kUnitElements; first += 4) {
    float four[4];
    ptx::loadConstant16(signs + own.column + first, four);
#pragma unroll
    for (int e = 0; e < 4; ++e)
      values[first + e] = four[e];
  }
}

DEV void sumAndDifference(float &a, float &b) {
  const float sum = a + b;
  b = a - b;
  a = sum;
}

// y * sqrt(n), or the negative of it. All lanes of a warp together.
template <class K> DEV void addRotated(const UnitValues &signs, UnitValues &values) {
#pragma unroll
  for (int e = 0; e < 8; ++e)
    values[e] *= signs[e];
#pragma unroll
  for (int e = 0; e < 8; e += 2)
    sumAndDifference(values[e], values[e + 1]);
#pragma unroll
  for (int e = 0; e < 8; ++e)
    if ((e & 2) == 0)
      sumAndDifference(values[e], values[e + 2]);
#pragma unroll
  for (int distance = 1; distance < Rotation<K>::kLanes; distance *= 2) {
    const float sign = threadIdx.x & distance ? -1.0f : 1.0f;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float kept = fmaf(sign, values[e + 4], values[e]), given = fmaf(-sign, values[e + 4], values[e]);
      values[e] = kept;
      values[e + 4] = __shfl_xor_sync(0xffffffffu, given, distance);
    }
  }
#pragma unroll
  for (int e = 0; e < 4; ++e)
    sumAndDifference(values[e], values[e + 4]);
}

// y + shift, of zeros the positive one: of four elements from column columnOf<true>(0) on, and from columnOf<true>(4) on.
template <class K> DEV void rotate(const UnitValues &signs, const UnitValues &shift, UnitValues &values) {
  addRotated<K>(signs, values);
  // A lane kept a difference for each bit of its number that is set; those behind a set bit are negative.
  const uint32_t lane = threadIdx.x % Rotation<K>::kLanes;
  const bool isNegative = __popc(lane & lane >> 1) & 1;
  const float first = isNegative ? -Rotation<K>::kFactor : Rotation<K>::kFactor;
  const float second = lane >= Rotation<K>::kLanes / 2 ? -first : first;
#pragma unroll
  for (int e = 0; e < 8; ++e)
    values[e] = fmaf(values[e], e < 4 ? first : second, shift[e]);
}

DEV float largestFinite(const UnitValues &values) {
  float largest = 0;
#pragma unroll
  for (int e = 0; e < quantize::kUnitElements; ++e)
    largest = fmaxf(largest, fabsf(values[e]));
  if (largest < INFINITY) // NaN is less than any other
    return largest;
  largest = 0;
#pragma unroll
  for (int e = 0; e < quantize::kUnitElements; ++e)
    largest = fabsf(values[e]) < INFINITY ? fmaxf(largest, fabsf(values[e])) : largest;
  return largest;
}

// Of y, in the units of this thread.
template <class K, int Units> DEV float largestRotated(const float *signs, const Unit<K> (&units)[Units]) {
  UnitValues own;
  loadSigns(UnitPlace<K, K::kHeadDim>(), signs, own);
  float largest = 0;
#pragma unroll
  for (int unit = 0; unit < Units; ++unit) {
    UnitValues values;
    valuesOf<K>(units[unit], values);
    addRotated<K>(own, values);
    largest = fmaxf(largest, largestFinite(values));
  }
  return largest * Rotation<K>::kFactor;
}

} // namespace heddle
