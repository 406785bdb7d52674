// What the states of parts of the same rows count when they are joined.
#pragma once

#include "Ptx/scalar.cuh"

namespace heddle {

// 2^exponent for a whole number that is at most 0; 0 below the normal numbers.
DEV float powerOfTwo(float exponent) {
  constexpr int kBias = 127, kMantissaBits = 23;
  return __int_as_float(static_cast<int32_t>(fmaxf(exponent, -kBias) + kBias) << kMantissaBits);
}

// 2^(row_max - whole) for a whole number not below row_max. What row_max lacks to a whole number itself is one
// factor, the rest a power of two, which is exact: in whatever steps states are added, the bits are the same.
DEV float weightOfState(float rowMax, float whole) {
  const float raised = ceilf(rowMax);
  return ptx::exp2Approx(rowMax - raised) * powerOfTwo(raised - whole);
}

} // namespace heddle
