// Where the warps of a tall unit keep the sum of the team of parts that they are at, in kernels whose bits depend on a query and
// its keys alone (invariant_parts.cuh): a part is added every few tiles, and in the workspace each time waits for the L2. In
// shared memory there is room where a warp's rows of q were, and in the last slot of the ring, which tall units do without.
#pragma once

#include "Decode/decode_layout.cuh"
#include "Ptx/memory.cuh"
#include "Ptx/scalar.cuh"

namespace heddle {

template <class K> constexpr bool hasOneLattice() {
  return K::Pattern::kVariantCount == 1 && K::Pattern::kBranchCount == 1;
}

template <class K, bool IsInvariant = K::kIsInvariant> struct TallShape {
  static constexpr int kPairBytes = K::kValuePairs * decode::kPairBytes; // of 8 rows
  static constexpr int kQueryBytes = decode::kRows * K::kSmemRowBytesQK, kSumBytes = K::kWarps * kPairBytes,
                       kEndBytes = K::kWarps * (2 * decode::kEndBytes);
  static constexpr bool kFits =
      kPairBytes <= kQueryBytes && kSumBytes <= K::kSmemStageBytesK && kEndBytes <= K::kSmemStageBytesV;
  // Patterns of several lattices have no registers for it.
  static constexpr bool kHasSums = kFits && K::kStages > 2 && hasOneLattice<K>();
  static constexpr int kStages = K::kStages - kHasSums; // slots of the ring that a tall unit uses
};
template <class K> struct TallShape<K, false> {
  static constexpr bool kHasSums = false;
  static constexpr int kStages = K::kStages;
};

// Of 8 rows of a warp what a lane has of them; nobody else looks at it.
template <class K> class TallSums {
  using Shape = TallShape<K>;
  uint32_t values, ends;

public:
  DEV TallSums(uint32_t shared, int32_t warp, int half) {
    const uint32_t lane = ptx::rereadLane();
    const uint32_t ofQueries = shared + K::kSmemQ + warp * Shape::kQueryBytes;
    const uint32_t ofKeys = shared + K::kSmemK + Shape::kStages * K::kSmemStageBytesK + warp * Shape::kPairBytes;
    values = (half == 0 ? ofQueries : ofKeys) + lane * 16;
    ends = shared + K::kSmemV + Shape::kStages * K::kSmemStageBytesV + (2 * warp + half) * decode::kEndBytes + lane * 8;
  }

  DEV void load(int pair, float (&out)[4]) const { ptx::loadShared16(values + pair * decode::kPairBytes, out); }
  DEV void loadEnd(float (&end)[2]) const {
    int32_t words[2];
    ptx::loadShared8(ends, words);
    end[0] = __int_as_float(words[0]), end[1] = __int_as_float(words[1]);
  }
  // `out`: tiles of 8 columns, of which the half has two elements each.
  template <int Tiles> DEV void store(const float (&out)[Tiles][4], float rowMax, float sum, int half) const {
#pragma unroll
    for (int pair = 0; pair < K::kValuePairs; ++pair)
      ptx::storeShared16(values + pair * decode::kPairBytes, __float_as_int(out[2 * pair][2 * half]),
                         __float_as_int(out[2 * pair][2 * half + 1]), __float_as_int(out[2 * pair + 1][2 * half]),
                         __float_as_int(out[2 * pair + 1][2 * half + 1]));
    ptx::storeShared8(ends, __float_as_int(rowMax), __float_as_int(sum));
  }
};

} // namespace heddle
