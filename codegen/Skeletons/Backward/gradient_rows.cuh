// How rows of gradients leave registers: as elements of the call's type or, where calls add to them, added to fp32.
// Nobody else adds to an element, so bits do not depend on the order.
// Traits: kAddsToQueries, kAddsToKeys.
#pragma once

#include "Shared/elements.cuh"
#include "Shared/row_stores.cuh"

namespace heddle {

template <class K, bool Adds> constexpr int kGradientBytes = Adds || kAreFloats<K> ? 4 : K::kElementBytes;

// As storeRowAsElements.
template <class K, bool Adds, int Tiles>
DEV void storeGradient(void *row, bool isPresent, const float (&values)[Tiles][2]) {
  if constexpr (Adds) {
    float *to = static_cast<float *>(row) + threadIdx.x % 4 * 2;
#pragma unroll
    for (int n = 0; n < Tiles; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        ptx::addGlobal4(to + n * 8 + e, isPresent, values[n][e]);
  } else if constexpr (kAreFloats<K>) {
    storeRowAsFloat(row, isPresent, values);
  } else {
    storeRowAsElements<typename K::Element>(row, isPresent, values);
  }
}

} // namespace heddle
