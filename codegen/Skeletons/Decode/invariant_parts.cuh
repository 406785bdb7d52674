// Parts of a unit that one block has, where what comes of each lies, and how they become one. Eight neighbouring parts are a
// team. States of parts are added to that of their team, and those of teams to that of the unit, one behind the other in the
// order of the keys: by the block that has all of them, or by the one that arrives last, so bits do not depend on who does it.
// A part without a kept key of a row, or none at all, leaves the row as it was, bit by bit.
#pragma once

#include "Decode/decode_layout.cuh"
#include "Decode/decode_pieces.cuh"
#include "Decode/page_ring.cuh"
#include "Decode/row_states.cuh"
#include "Decode/tall_sums.cuh"

namespace heddle {

// Parts [first, end) of those of a unit, which a block has; who has the first part of the unit and, of the teams that the block
// has the first and the last parts of, theirs. Of the tiles that the deal gives a block, a part is whose its last tile is.
// Numbers count from the team that the unit begins in.
template <class K> struct BlockParts {
  using Places = PartPlaces<K>;

  int32_t first, end, begin, parts; // of the unit: the first one, and behind the last one
  int32_t ownBegin, ownEnd;         // of teams that the block has all of
  int32_t base, origin;             // number of the unit's first tile, and of the part that numbers count from
  int32_t tileWork;                 // what a tile counts as
  int32_t blockOfUnit, blockOfFirstTeam, blockOfLastTeam;

  DEV bool isEmpty() const { return first >= end; }
  DEV bool isWhole() const { return first == begin && end == parts; }
  DEV int32_t teams() const { return ceilDiv(parts, decode::kFanIn); }
  DEV static int32_t teamOf(int32_t part) { return part / decode::kFanIn; }
  DEV int32_t firstOfTeam(int32_t team) const { return max(team * decode::kFanIn, begin); }
  DEV int32_t endOfTeam(int32_t team) const { return min((team + 1) * decode::kFanIn, parts); }
  DEV bool hasTeam(int32_t team) const { return firstOfTeam(team) >= first && endOfTeam(team) <= end; }
  DEV bool isOwn(int32_t part) const { return part >= ownBegin && part < ownEnd; }
  // The block has all of its team, and the part behind it.
  DEV bool goesOn(int32_t part) const {
    return part >= ownBegin && part + 1 < ownEnd && (part + 1) % decode::kFanIn != 0;
  }
  DEV bool beginsTeam(int32_t part) const { return part % decode::kFanIn == 0 || part == begin; }
  DEV bool endsTeam(int32_t part) const { return part + 1 == endOfTeam(teamOf(part)); }
  // Of a team that the block has some parts of.
  DEV int32_t blockOfTeam(int32_t team) const { return team == teamOf(first) ? blockOfFirstTeam : blockOfLastTeam; }

  DEV BlockParts() {}
  template <class Line, class Tiles>
  DEV BlockParts(const Line &line, const Tiles &dealt, bool isTall, int32_t base) : base(base) {
    tileWork = isTall ? decode::tallWork(K::kWarps) : 1;
    const int32_t number = Places::partOf(base);
    origin = number / decode::kFanIn * decode::kFanIn;
    begin = number - origin;
    parts = Places::partOf(base + line.visited - 1) + 1 - origin;
    first = partsBefore(dealt.first);
    end = dealt.end == dealt.tiles ? parts : min(parts, partsBefore(dealt.end));
    ownBegin = hasTeam(teamOf(first)) ? first : (teamOf(first) + 1) * decode::kFanIn;
    ownEnd = hasTeam(teamOf(end - 1)) ? end : teamOf(end - 1) * decode::kFanIn;
  }
  // The unit begins at `unitFirst` where work is dealt out. Of what is cut, whose first part is not the last one.
  DEV void findBlocks(int64_t unitFirst, int64_t quota) {
    const auto blockOfPart = [&](int32_t part) { return blockOf(unitFirst + workBefore(part + 1) - 1, quota); };
    blockOfUnit = blockOfFirstTeam = blockOfLastTeam = 0;
    if (isWhole())
      return;
    blockOfUnit = blockOfFirstTeam = blockOfLastTeam = blockOfPart(begin);
    if (teamOf(first) > 0)
      blockOfFirstTeam = blockOfLastTeam = blockOfPart(firstOfTeam(teamOf(first)));
    if (teamOf(end - 1) > teamOf(first))
      blockOfLastTeam = blockOfPart(firstOfTeam(teamOf(end - 1)));
  }
  // In the walk of the unit.
  DEV int32_t tilesBefore(int32_t part) const { return max(Places::firstTile(origin + part) - base, 0); }
  DEV int32_t tilesOf(int32_t part) const {
    if (TallShape<K>::kHasSums && part > begin && origin + part < decode::kFirstParts)
      return Places::kTiles;
    return tilesBefore(part + 1) - tilesBefore(part);
  }
  DEV int32_t workBefore(int32_t part) const { return tilesBefore(part) * tileWork; }
  DEV BlockWork work() const {
    if (isEmpty())
      return {0, 0};
    return {workBefore(first), end == parts ? kNoTile : workBefore(end) - workBefore(first)};
  }

private:
  DEV int32_t partsBefore(int32_t work) const {
    return Places::partOf(base + static_cast<uint32_t>(work) / tileWork) - origin;
  }
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

  DEV SlotStates<K> ofPart(int32_t block, int32_t number, int32_t group) const { return at(block, number, group); }
  DEV SlotStates<K> ofTeam(int32_t block, int32_t team, int32_t group) const {
    return at(block, decode::kFanIn + team, group);
  }
  // `level` 0: of a team, 1: of a unit, that the block has all of.
  DEV SlotStates<K> ofSum(int32_t level, int32_t group) const {
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

// What the state of the keys before counts, and that of the next ones. The first row maximum, and that of both, are whole.
struct NextWeights {
  float whole, before, next;

  DEV NextWeights(float rowMaxBefore, float rowMax)
      : whole(ceilf(fmaxf(rowMaxBefore, rowMax))), before(powerOfTwo(rowMaxBefore - whole)),
        next(weightOfState(rowMax, whole)) {}
};

// The state of the next keys.
template <class K>
DEV void addNext(ColumnShare<K> &share, float rowMax, float sum, const float (&values)[K::kPairsOfWarp][4]) {
  const NextWeights weights(share.rowMax, rowMax);
  scaleShare(share, weights.before);
  share.rowMax = weights.whole;
  addState(share, weights.next, sum, values);
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

// Sums of a thread in shared memory, where there is room for them: else registers keep them.
template <class K, bool HasRoom> struct ThreadSums {
  static constexpr int kHalfBytes = (K::kPairsOfWarp * 16 + 8) * K::kThreads;
  uint32_t address;

  DEV void load(ColumnShare<K> &share, int32_t half) const {
    if constexpr (HasRoom) {
#pragma unroll
      for (int i = 0; i < K::kPairsOfWarp; ++i)
        ptx::loadShared16(place(half, i, 16), share.out[i]);
      int32_t words[2];
      ptx::loadShared8(place(half, K::kPairsOfWarp, 8), words);
      share.rowMax = __int_as_float(words[0]), share.sum = __int_as_float(words[1]);
    }
  }
  DEV void store(const ColumnShare<K> &share, int32_t half) const {
    if constexpr (HasRoom) {
#pragma unroll
      for (int i = 0; i < K::kPairsOfWarp; ++i)
        ptx::storeShared16(place(half, i, 16), __float_as_int(share.out[i][0]), __float_as_int(share.out[i][1]),
                           __float_as_int(share.out[i][2]), __float_as_int(share.out[i][3]));
      ptx::storeShared8(place(half, K::kPairsOfWarp, 8), __float_as_int(share.rowMax), __float_as_int(share.sum));
    }
  }

private:
  DEV uint32_t place(int32_t half, int32_t i, int32_t bytes) const {
    return address + half * kHalfBytes + i * K::kThreads * 16 + ptx::rereadThreadIndex() * bytes;
  }
};

// Rows of a warp, all columns of them, in the workspace: row maxima and sums once for each warp that joins columns.
template <class K> DEV void storeRowsOfWarp(const SlotStates<K> &to, const RowState<K> &rows, int half) {
  storePairs(to, 0, rows, half);
#pragma unroll
  for (int warp = 0; warp < K::kWarps; ++warp)
    to.store8(0, SlotStates<K>::pairOffset(half, K::kValuePairs) + warp * decode::kEndBytes + lanePlace(8),
              rows.rowMax[0][half], rows.sum[0][half]);
}

// `rows` become the sum of the state before and them: what addNext makes of shares. A lane finds what it left there itself;
// nothing is before the first.
template <class K> DEV void addRowsBefore(RowState<K> &rows, int half, const SlotStates<K> &from, bool isFirst) {
  constexpr int kPairsAtOnce =
      TallShape<K>::kHasSums ? 4 : 2; // on their way; patterns of several lattices lack registers
  const bool skips = isFirst;
  float end[2] = {}, before[4] = {};
  if (!skips)
    from.load8(0, SlotStates<K>::pairOffset(half, K::kValuePairs) + lanePlace(8), end);
  const float sum = isFirst ? 0.f : end[1];
  const NextWeights weights(isFirst ? kNoRowMax : end[0], rows.rowMax[0][half]);
  rows.rowMax[0][half] = weights.whole;
  rows.sum[0][half] = fmaf(rows.sum[0][half], weights.next, sum * weights.before);
#pragma unroll
  for (int pair = 0; pair < K::kValuePairs; ++pair) {
    if (pair % kPairsAtOnce == 0)
      __syncwarp();
    if (!skips)
      from.load16(0, SlotStates<K>::pairOffset(half, pair) + lanePlace(16), before);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      float &value = rows.out[0][2 * pair + e / 2][2 * half + e % 2];
      value = fmaf(value, weights.next, (isFirst ? 0.f : before[e]) * weights.before);
    }
  }
}

// The same with the sum of parts of the team before.
template <class K> DEV void addTeamBefore(RowState<K> &rows, int half, const TallSums<K> &team, bool isFirst) {
  float end[2] = {kNoRowMax, 0.f};
  if (!isFirst)
    team.loadEnd(end);
  const NextWeights weights(end[0], rows.rowMax[0][half]);
  rows.rowMax[0][half] = weights.whole;
  rows.sum[0][half] = fmaf(rows.sum[0][half], weights.next, end[1] * weights.before);
  const auto addPairs = [&](const auto &beforeOf) {
#pragma unroll
    for (int pair = 0; pair < K::kValuePairs; ++pair) {
      float before[4];
      beforeOf(pair, before);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float &value = rows.out[0][2 * pair + e / 2][2 * half + e % 2];
        value = fmaf(value, weights.next, before[e]);
      }
    }
  };
  if (isFirst)
    addPairs([](int, float (&before)[4]) { before[0] = before[1] = before[2] = before[3] = 0.f; });
  else if (__all_sync(kWholeWarp, weights.before == 1.f))
    addPairs([&](int pair, float (&before)[4]) { team.load(pair, before); });
  else
    addPairs([&](int pair, float (&before)[4]) {
      team.load(pair, before);
#pragma unroll
      for (int e = 0; e < 4; ++e)
        before[e] *= weights.before;
    });
}

} // namespace heddle
