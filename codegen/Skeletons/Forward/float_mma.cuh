// The two products of one warp where q, k and v are floats, as warp_mma.cuh has them of packed elements.
#pragma once

#include "Forward/warp_mma.cuh"
#include "Shared/tf32_products.cuh"

namespace heddle {

template <class K> struct WarpProducts<K, 4> {
  using E = typename K::Element;

  DEV static void queryKey(typename K::Scores &scores, const QueryOperand<K> &query, uint32_t keys) {
    const auto fragmentsOf = [&query](int step, uint32_t (&words)[K::kRowTiles][4]) { query.fragments(step, words); };
    tf32Scores<E, K::kHeadSteps, K::kSmemRowBytesQK>(scores, fragmentsOf, keys);
  }

  DEV static void setWeights(uint32_t (&weights)[K::kChunkSteps][4], int n, int half, float low, float high) {
    setTf32Weights(weights[n], half, low, high);
  }

  // `values`: laneOffsetOfSums() in the first key row of the chunk.
  DEV static void probabilityValue(typename K::Output &out, const typename K::Probabilities &probabilities,
                                   uint32_t values) {
    tf32Sum<E, K::kSmemRowBytesV>(out, probabilities, values);
  }
};

} // namespace heddle
