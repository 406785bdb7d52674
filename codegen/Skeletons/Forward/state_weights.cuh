// What the states of parts of the same rows count when they are joined.
#pragma once

#include "Ptx/scalar.cuh"

namespace heddle {

// 2^exponent for a whole number that is at most 0; 0 below the normal numbers. A whole number beside 2^23 is the lowest bits
// of the sum: what is above them is shifted out.
DEV float powerOfTwo(float exponent) {
  constexpr int kBias = 127, kMantissaBits = 23;
  const float biased = fmaxf(exponent, -kBias) + static_cast<float>((1 << kMantissaBits) + kBias);
  return __uint_as_float(__float_as_uint(biased) << kMantissaBits);
}

// 2^(row_max - whole) for a whole number not below row_max. What row_max lacks to a whole number itself is one
// factor, the rest a power of two, which is exact: in whatever steps states are added, the bits are the same.
DEV float weightOfState(float rowMax, float whole) {
  const float raised = ceilf(rowMax);
  return ptx::exp2Approx(rowMax - raised) * powerOfTwo(raised - whole);
}

} // namespace heddle
