// Where the warps of a tall unit keep the sum of the team of parts that they are at, in kernels whose bits depend on a query and
// its keys alone (invariant_parts.cuh): a part is added every few tiles, and in the workspace each time waits for the L2. In
// shared memory there is room where a warp's rows of q were, and in the last slot of the ring, which tall units do without.
#pragma once

#include "Decode/decode_layout.cuh"
#include "Ptx/memory.cuh"
#include "Ptx/scalar.cuh"

namespace heddle {

template <class K, bool IsInvariant = K::kIsInvariant> struct TallShape {
  static constexpr int kPairBytes = K::kValuePairs * decode::kPairBytes; // of 8 rows
  static constexpr int kQueryBytes = decode::kRows * K::kSmemRowBytesQK, kSumBytes = K::kWarps * kPairBytes,
                       kEndBytes = K::kWarps * (2 * decode::kEndBytes);
  static constexpr bool kFits =
      kPairBytes <= kQueryBytes && kSumBytes <= K::kSmemStageBytesK && kEndBytes <= K::kSmemStageBytesV;
  // Patterns of several lattices have no registers for it.
  static constexpr bool kHasSums =
      kFits && K::kStages > 2 && K::Pattern::kVariantCount == 1 && K::Pattern::kBranchCount == 1;
  static constexpr int kStages = K::kStages - kHasSums; // slots of the ring that a tall unit uses
};
template <class K> struct TallShape<K, false> {
  static constexpr bool kHasSums = false;
  static constexpr int kStages = K::kStages;
};

// Of 8 rows of a warp, as the states of row_states.cuh. Nobody else looks at them.
template <class K> struct TallSums {
  using Shape = TallShape<K>;
  uint32_t values, ends;

  DEV TallSums(uint32_t shared, int32_t warp, int half) {
    const uint32_t ofQueries = shared + K::kSmemQ + warp * (decode::kRows * K::kSmemRowBytesQK);
    const uint32_t ofKeys = shared + K::kSmemK + Shape::kStages * K::kSmemStageBytesK + warp * Shape::kPairBytes;
    values = half == 0 ? ofQueries : ofKeys;
    ends = shared + K::kSmemV + Shape::kStages * K::kSmemStageBytesV + (2 * warp + half) * decode::kEndBytes;
  }

  DEV static int32_t pairOffset(int32_t, int32_t pair) { return pair * decode::kPairBytes; }
  DEV static int32_t ownEndOffset(int32_t) { return 0; }
  DEV void load16(int32_t, int32_t offset, float (&out)[4]) const { ptx::loadShared16(values + offset, out); }
  DEV void load8(int32_t, int32_t offset, float (&end)[2]) const {
    int32_t words[2];
    ptx::loadShared8(ends + offset, words);
    end[0] = __int_as_float(words[0]), end[1] = __int_as_float(words[1]);
  }
  DEV void store16(int32_t, int32_t offset, float a, float b, float c, float d) const {
    ptx::storeShared16(values + offset, __float_as_int(a), __float_as_int(b), __float_as_int(c), __float_as_int(d));
  }
  DEV void store8(int32_t, int32_t offset, float a, float b) const {
    ptx::storeShared8(ends + offset, __float_as_int(a), __float_as_int(b));
  }
};

} // namespace heddle
