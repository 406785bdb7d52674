// The two products of one warp where q, k and v are floats, as warp_mma.cuh has them of packed elements.
#pragma once

#include "Forward/warp_mma.cuh"
#include "Shared/tf32_products.cuh"

namespace heddle {

template <class E> struct WarpProducts<E, 4> {
  DEV static void queryKey(Scores &scores, const QueryOperand &query, uint32_t keys) {
    const auto fragmentsOf = [&query](int step, uint32_t (&words)[kRowTiles][4]) { query.fragments(step, words); };
    tf32Scores<E, kHeadSteps, KernelTraits::kSmemRowBytesQK>(scores, fragmentsOf, keys);
  }

  DEV static void setWeights(uint32_t (&weights)[kChunkSteps][4], int n, int half, float low, float high) {
    setTf32Weights(weights[n], half, low, high);
  }

  // `values`: laneOffsetOfSums() in the first key row of the chunk.
  DEV static void probabilityValue(Output &out, const Probabilities &probabilities, uint32_t values) {
    tf32Sum<E, KernelTraits::kSmemRowBytesV>(out, probabilities, values);
  }
};

} // namespace heddle
