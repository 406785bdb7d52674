// States of the 16 rows of a group, what parts of its keys made of them, and how they become one: warps of a block leave
// theirs in shared memory, blocks in the workspace, where a slot has those of all groups of a unit. States are joined in the order of the keys, whoever made them, by all
// warps of a block, each some columns, and in the workspace each for itself: results do not depend on the timing.
#pragma once

#include "Decode/decode_layout.cuh"
#include "Decode/packed_rows.cuh"
#include "Forward/key_products.cuh"
#include "Forward/state_weights.cuh"
#include "Ptx/memory.cuh"

namespace heddle {

template <class Traits> struct RowStateShape : Traits {
  static constexpr int kValuePairs = Traits::kValueTiles / 2;
  static_assert(Traits::kValueTiles % 2 == 0, "value tiles are stored in pairs");
  static constexpr int kPairsOfWarp = (kValuePairs + Traits::kWarps - 1) / Traits::kWarps;
  static constexpr int kHalfBytes = decode::halfBytes(Traits::kValueDim);
  static constexpr int kStateBytes = decode::stateBytes(Traits::kValueDim);
};

DEV int32_t lanePlace(int32_t bytes) { return ptx::rereadLane() * bytes; }

// In shared memory, one behind the other.
template <class K> struct SharedStates {
  static constexpr int kStatesAtOnce = K::kWarps;
  uint32_t base;

  DEV static int32_t pairOffset(int32_t half, int32_t pair) { return half * K::kHalfBytes + pair * decode::kPairBytes; }
  DEV static int32_t endOffset(int32_t half) { return pairOffset(half, K::kValuePairs); }

  DEV void load16(int32_t state, int32_t offset, float (&values)[4]) const {
    int32_t words[4];
    ptx::loadShared16(base + state * K::kStateBytes + offset, words);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      values[i] = __int_as_float(words[i]);
  }
  DEV void load8(int32_t state, int32_t offset, float (&values)[2]) const {
    int32_t words[2];
    ptx::loadShared8(base + state * K::kStateBytes + offset, words);
#pragma unroll
    for (int i = 0; i < 2; ++i)
      values[i] = __int_as_float(words[i]);
  }
  DEV void store16(int32_t state, int32_t offset, float a, float b, float c, float d) const {
    ptx::storeShared16(base + state * K::kStateBytes + offset, __float_as_int(a), __float_as_int(b), __float_as_int(c),
                       __float_as_int(d));
  }
  DEV void store8(int32_t state, int32_t offset, float a, float b) const {
    ptx::storeShared8(base + state * K::kStateBytes + offset, __float_as_int(a), __float_as_int(b));
  }
};

// In the workspace: of one group, of the blocks from `block` on that share a unit, every `step`-th from `first` on.
template <class K> struct BlockStates {
  static constexpr int kStatesAtOnce = decode::kFanIn;
  static constexpr int kHalf = decode::blockHalfBytes(K::kValueDim, K::kWarps);
  static constexpr int kBytes = decode::blockStateBytes(K::kValueDim, K::kWarps);
  char *states;
  int32_t block, first, step, group;

  DEV static int32_t pairOffset(int32_t half, int32_t pair) { return half * kHalf + pair * decode::kPairBytes; }
  DEV static int32_t endOffset(int32_t half) {
    return pairOffset(half, K::kValuePairs) + ptx::rereadThreadIndex() / 32 * decode::kEndBytes;
  }

  // The first block of a unit ends within it, the others begin within it.
  DEV static int32_t slotOf(int32_t block, int32_t number) {
    return decode::kSlotsOfBlock * (block + number) + (number == 0);
  }
  DEV char *at(int32_t state, int32_t offset) const {
    const uint32_t slot = slotOf(block, first + state * step); // 4 GB are those of 50,000 blocks
    return states + ((slot * K::kWarps + group) * kBytes + offset);
  }
  DEV void load16(int32_t state, int32_t offset, float (&values)[4]) const {
    ptx::loadGlobal16(at(state, offset), values);
  }
  DEV void load8(int32_t state, int32_t offset, float (&values)[2]) const {
    ptx::loadGlobal8(reinterpret_cast<const float *>(at(state, offset)), true, values);
  }
  DEV void store16(int32_t state, int32_t offset, float a, float b, float c, float d) const {
    ptx::storeGlobal16(at(state, offset), true, a, b, c, d);
  }
  DEV void store8(int32_t state, int32_t offset, float a, float b) const {
    ptx::storeGlobal8(at(state, offset), true, __float_as_uint(a), __float_as_uint(b));
  }
};

// The warp has all columns.
template <class States, class K>
DEV void storePairs(const States &to, int32_t state, const RowState<K> &rows, int half) {
#pragma unroll
  for (int pair = 0; pair < K::kValuePairs; ++pair) {
    const float (&low)[4] = rows.out[0][2 * pair], (&high)[4] = rows.out[0][2 * pair + 1];
    to.store16(state, States::pairOffset(half, pair) + lanePlace(16), low[2 * half], low[2 * half + 1], high[2 * half],
               high[2 * half + 1]);
  }
}

template <class States, class K>
DEV void storeHalf(const States &to, int32_t state, const RowState<K> &rows, int half) {
  storePairs(to, state, rows, half);
  to.store8(state, States::endOffset(half) + lanePlace(8), rows.rowMax[0][half], rows.sum[0][half]);
}

template <class States, class K>
DEV void storeRows(const States &to, int32_t state, const RowState<K> &rows, bool hasUpperHalf) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (half == 1 && !hasUpperHalf)
      return;
    storeHalf(to, state, rows, half);
  }
}

// The columns of one warp in joined states of 8 rows, a half of a group: value pairs number warp, warp + kWarps, ...
template <class K> struct ColumnShare {
  float out[K::kPairsOfWarp][4];
  float rowMax, sum; // `sum`: this lane's part

  DEV static int32_t pairOf(int i) { return ptx::rereadThreadIndex() / 32 + i * K::kWarps; }
  DEV static bool hasPair(int i) { return K::kValuePairs % K::kWarps == 0 || pairOf(i) < K::kValuePairs; }

  template <class States> DEV void store(const States &to, int32_t half) const {
#pragma unroll
    for (int i = 0; i < K::kPairsOfWarp; ++i)
      if (hasPair(i))
        to.store16(0, States::pairOffset(half, pairOf(i)) + lanePlace(16), out[i][0], out[i][1], out[i][2], out[i][3]);
    to.store8(0, States::endOffset(half) + lanePlace(8), rowMax, sum);
  }
};

template <class K> DEV void clearShare(ColumnShare<K> &share) {
  share.rowMax = kNoRowMax;
  share.sum = 0.f;
#pragma unroll
  for (int i = 0; i < K::kPairsOfWarp; ++i)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      share.out[i][e] = 0.f;
}

template <class K> DEV void scaleShare(ColumnShare<K> &share, float factor) {
  share.sum *= factor;
#pragma unroll
  for (int i = 0; i < K::kPairsOfWarp; ++i)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      share.out[i][e] *= factor;
}

template <class K>
DEV void addState(ColumnShare<K> &share, float weight, float sum, const float (&values)[K::kPairsOfWarp][4]) {
  share.sum = fmaf(sum, weight, share.sum);
#pragma unroll
  for (int i = 0; i < K::kPairsOfWarp; ++i)
    if (ColumnShare<K>::hasPair(i))
#pragma unroll
      for (int e = 0; e < 4; ++e)
        share.out[i][e] = fmaf(values[i][e], weight, share.out[i][e]);
}

// Where in a state what a lane has of a half lies: its first columns, and row maxima and sums.
template <class K, class States> struct LanePlaces {
  int32_t columns, ends;

  DEV explicit LanePlaces(int32_t half)
      : columns(States::pairOffset(half, ColumnShare<K>::pairOf(0)) + lanePlace(16)),
        ends(States::endOffset(half) + lanePlace(8)) {}
};

template <class K, class States>
DEV void loadState(const States &from, int32_t state, const LanePlaces<K, States> &places, float (&end)[2],
                   float (&values)[K::kPairsOfWarp][4]) {
  from.load8(state, places.ends, end);
#pragma unroll
  for (int i = 0; i < K::kPairsOfWarp; ++i)
    if (ColumnShare<K>::hasPair(i))
      from.load16(state, places.columns + i * K::kWarps * decode::kPairBytes, values[i]);
}

// The warp's columns in a half of `count` states as one. Row maxima become whole numbers, so that factors between
// them are exact. Of kStatesAtOnce states all is on its way before the first is used; behind the last one it is that
// again, which counts nothing.
template <class K, class States>
DEV void joinStates(ColumnShare<K> &share, const States &from, int32_t count, int32_t half) {
  constexpr int kAtOnce = States::kStatesAtOnce;
  const LanePlaces<K, States> places(half);
  clearShare(share);
#pragma unroll 1
  for (int32_t first = 0; first < count; first += kAtOnce) {
    float end[kAtOnce][2], values[kAtOnce][K::kPairsOfWarp][4], whole = share.rowMax;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      loadState(from, min(first + i, count - 1), places, end[i], values[i]);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      whole = fmaxf(whole, end[i][0]);
    whole = ceilf(whole);
    if (first > 0)
      scaleShare(share, weightOfState(share.rowMax, whole));
    share.rowMax = whole;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      addState(share, weightOfState(first + i < count ? end[i][0] : kNoRowMax, whole), end[i][1], values[i]);
  }
}

} // namespace heddle
