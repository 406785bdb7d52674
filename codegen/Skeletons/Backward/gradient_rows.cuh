// How rows of gradients leave registers: as elements of the call's type or, where calls accumulate, added to fp32.
// Nobody else adds to an element, so bits do not depend on the order.
// KernelTraits: kAccumulates.
#pragma once

#include "Shared/row_stores.cuh"

namespace heddle {

constexpr bool kAccumulates = KernelTraits::kAccumulates;
constexpr int kGradientBytes = kAccumulates ? 4 : kElementBytes;

// As storeRowAsElements.
template <int Tiles> DEV void storeGradient(void *row, bool isPresent, const float (&values)[Tiles][2]) {
  if constexpr (kAccumulates) {
    float *to = static_cast<float *>(row) + threadIdx.x % 4 * 2;
#pragma unroll
    for (int n = 0; n < Tiles; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        ptx::addGlobal4(to + n * 8 + e, isPresent, values[n][e]);
  } else {
    storeRowAsElements(row, isPresent, values);
  }
}

} // namespace heddle
