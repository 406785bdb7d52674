// Parts of a unit that one block has, where what comes of each lies, and how they become one. Eight neighbouring parts are a
// team. States of parts are added to that of their team, and those of teams to that of the unit, one behind the other in the
// order of the keys: by the block that has all of them, or by the one that arrives last, so bits do not depend on who does it.
#pragma once

#include "Decode/decode_layout.cuh"
#include "Decode/decode_pieces.cuh"
#include "Decode/row_states.cuh"

namespace heddle {

// Parts [first, end) of the `parts` of a unit, which begins at `unitFirst` where work is dealt out.
struct PartRun {
  int64_t unitFirst, quota;
  int32_t first, end, parts, work;

  DEV PartRun() {}
  // Of the tiles that the deal gives a block: a part is whose its last tile is.
  template <class Line, class Tiles>
  DEV PartRun(const Line &line, const Tiles &dealt, int64_t quota)
      : unitFirst(dealt.unitFirst), quota(quota), parts(line.parts), work(line.partWork) {
    first = quickQuotient(dealt.first, work);
    end = dealt.end == dealt.tiles ? parts : min(parts, quickQuotient(dealt.end, work));
  }

  DEV bool isEmpty() const { return first >= end; }
  DEV bool isWhole() const { return first == 0 && end == parts; }
  DEV int32_t allWork() const { return end == parts ? kNoTile : (end - first) * work; }
  DEV int32_t teams() const { return ceilDiv(parts, decode::kFanIn); }
  DEV static int32_t teamOf(int32_t part) { return part / decode::kFanIn; }
  DEV static int32_t firstOfTeam(int32_t team) { return team * decode::kFanIn; }
  DEV int32_t endOfTeam(int32_t team) const { return min(firstOfTeam(team + 1), parts); }
  DEV bool hasTeam(int32_t team) const { return firstOfTeam(team) >= first && endOfTeam(team) <= end; }
  DEV bool endsTeam(int32_t part) const { return part + 1 == endOfTeam(teamOf(part)); }
  DEV int32_t blockOfTeam(int32_t team) const { return blockOfPart(firstOfTeam(team)); }
  DEV int32_t blockOfPart(int32_t part) const { return blockOf(unitFirst + (part + 1) * work - 1, quota); }
};

// States of a group in the workspace, one in each of the slots that follow each other there.
template <class K> struct SlotStates {
  static constexpr int kStatesAtOnce = decode::kFanIn;
  static constexpr int kHalf = decode::blockHalfBytes(K::kValueDim, K::kWarps);
  char *first;
  int64_t slotBytes;

  DEV static int32_t pairOffset(int32_t half, int32_t pair) { return half * kHalf + pair * decode::kPairBytes; }
  DEV static int32_t endOffset(int32_t half) {
    return pairOffset(half, K::kValuePairs) + ptx::rereadThreadIndex() / 32 * decode::kEndBytes;
  }
  DEV char *at(int32_t state, int32_t offset) const { return first + (state * slotBytes + offset); }
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

// Slots of blocks: the parts of a team that begins in the block and does not end there; the teams of such a unit; and sums
// that nobody else looks at.
template <class K> struct Slots {
  const ParamsOf<K> &p;

  DEV SlotStates<K> ofParts(int32_t block, int32_t group) const { return at(block, 0, group); }
  DEV SlotStates<K> ofTeams(int32_t block, int32_t group) const { return at(block, decode::kFanIn, group); }
  // `level` 0: of a team, 1: of a unit.
  DEV SlotStates<K> ofSums(int32_t level, int32_t group) const {
    return at(blockIdx.x, static_cast<int32_t>(p.slotsOfBlock) - decode::kSumsOfBlock + level, group);
  }
  DEV uint32_t *arrivals(int32_t block, int32_t level) const {
    return p.arrivals + (block * decode::kArrivalSteps + level) * K::kWarps + threadIdx.x / 32;
  }

private:
  DEV SlotStates<K> at(int32_t block, int32_t slot, int32_t group) const {
    constexpr int kBytes = decode::blockStateBytes(K::kValueDim, K::kWarps);
    return {p.states + ((block * p.slotsOfBlock + slot) * p.slotBytes + group * kBytes), p.slotBytes};
  }
};

// The state of the next keys.
template <class K>
DEV void addNext(ColumnShare<K> &share, float rowMax, float sum, const float (&values)[K::kPairsOfWarp][4]) {
  const float whole = ceilf(fmaxf(share.rowMax, rowMax));
  scaleShare(share, weightOfState(share.rowMax, whole));
  share.rowMax = whole;
  addState(share, weightOfState(rowMax, whole), sum, values);
}

// The sum of `count` states in their order. Several are on their way before the first is used; behind the last one it is that
// again, which counts nothing.
template <class K, class States>
DEV void sumStates(ColumnShare<K> &share, const States &from, int32_t count, int32_t half) {
  constexpr int kAtOnce = States::kStatesAtOnce;
  const LanePlaces<K, States> places(half);
  clearShare(share);
#pragma unroll 1
  for (int32_t first = 0; first < count; first += kAtOnce) {
    float end[kAtOnce][2], values[kAtOnce][K::kPairsOfWarp][4];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      loadState(from, min(first + i, count - 1), places, end[i], values[i]);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      addNext(share, first + i < count ? end[i][0] : kNoRowMax, end[i][1], values[i]);
  }
}

template <class K> DEV void loadShare(ColumnShare<K> &share, const SlotStates<K> &from, int32_t half) {
  float end[2];
  loadState(from, 0, LanePlaces<K, SlotStates<K>>(half), end, share.out);
  share.rowMax = end[0], share.sum = end[1];
}

// Adds a state to a sum in the workspace, which begins with the first one, and returns what comes of it in `share`. Each lane
// finds what it left there itself.
template <class K> DEV void addToSum(const SlotStates<K> &sum, ColumnShare<K> &share, int32_t half, bool isFirst) {
  const ColumnShare<K> next = share;
  if (isFirst)
    clearShare(share);
  else
    loadShare(share, sum, half);
  addNext(share, next.rowMax, next.sum, next.out);
  share.store(sum, half);
}

} // namespace heddle
