// The portable decode_invariant skeleton: portable_decode.cuh where bits of the results of a sequence do not depend on the others of
// its batch. Units fall into parts that follow from the sequence and the grid (line_parts.cuh), and blocks get whole parts. What
// a part sums, and in which order parts become one (invariant_parts.cuh), does not depend on which block has it; copies of
// keys run on from part to part.
//
// Traits and launch: those of portable_decode.cuh, with kShares 0. While a part ends, states of warps lie where each of them had
// its slice of the last tile, and their row maxima and sums where rows of q were.
#pragma once

#include "Decode/invariant_parts.cuh"
#include "Decode/portable_decode.cuh"

namespace heddle {

// A half of the warps' states, each in that warp's slice of a tile.
template <class K> struct SliceStates {
  static constexpr int kStatesAtOnce = K::kWarps;
  uint32_t columns, ends;
  int32_t stride;

  DEV static int32_t pairOffset(int32_t, int32_t pair) { return pair * decode::kPairBytes; }
  DEV static int32_t endOffset(int32_t) { return 0; }
  DEV void load16(int32_t state, int32_t offset, float (&values)[4]) const {
    int32_t words[4];
    ptx::loadShared16(columns + state * stride + offset, words);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      values[i] = __int_as_float(words[i]);
  }
  DEV void load8(int32_t state, int32_t offset, float (&values)[2]) const {
    int32_t words[2];
    ptx::loadShared8(ends + state * decode::kEndBytes + offset, words);
#pragma unroll
    for (int i = 0; i < 2; ++i)
      values[i] = __int_as_float(words[i]);
  }
  DEV void store16(int32_t state, int32_t offset, float a, float b, float c, float d) const {
    ptx::storeShared16(columns + state * stride + offset, __float_as_int(a), __float_as_int(b), __float_as_int(c),
                       __float_as_int(d));
  }
  DEV void store8(int32_t state, int32_t offset, float a, float b) const {
    ptx::storeShared8(ends + state * decode::kEndBytes + offset, __float_as_int(a), __float_as_int(b));
  }
};

// How the parts of one unit that a block has end. All threads of the block call everything together. Which parts these are is
// parked, behind a barrier, where words of the block were.
template <class K> class PartEnds {
public:
  DEV PartEnds(const ParamsOf<K> &p, const Unit<K> &unit, const PartRun &run, uint32_t shared)
      : p(p), unit(unit), ends(shared + K::kSmemQ + decode::kRows * K::kSmemRowBytesQK),
        parked(shared + K::kSmemControl - kParkedWord * 8) {
    park(parked, run);
  }

  // Of a unit whose rows all warps have. `sum`: of the parts of its team before this one; of the unit's last part of a block
  // that has all, the sum of the unit.
  DEV void finish(int32_t part, const RowState<K> &rows, const PageRing<K> &ring, ColumnShare<K> (&sum)[2]) const {
    const bool hasUpperHalf = unit.hasUpperHalf(0);
    const int32_t warp = ptx::rereadThreadIndex() / 32;
    const PartRun run = parkedRun();
    __syncwarp();
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (half == 0 || hasUpperHalf)
        storeHalf(statesOf(ring, half), warp, rows, half);
    __syncthreads();
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (half == 0 || hasUpperHalf) {
        ColumnShare<K> share;
        joinStates(share, statesOf(ring, half), K::kWarps, half);
        if (!run.hasTeam(PartRun::teamOf(part))) {
          share.store(partOf(run, part, 0), half);
          continue;
        }
        if (part % decode::kFanIn == 0)
          clearShare(sum[half]);
        addNext(sum[half], share.rowMax, share.sum, share.out);
        if (run.endsTeam(part))
          keepTeam(run, PartRun::teamOf(part), sum[half], 0, half);
      }
    __syncthreads();
  }

  // Of a tall unit, whose sums lie in the workspace.
  DEV void finishTall(int32_t part, const RowState<K> &rows, const PageRing<K> &ring, bool hasRows) const {
    const int32_t warp = ptx::rereadThreadIndex() / 32, team = PartRun::teamOf(part);
    const PartRun run = parkedRun();
    __syncthreads();
    if (hasRows)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        if (half == 0 || unit.hasUpperHalf(warp))
          storeHalf(statesOf(ring, half), warp, rows, half);
    __syncthreads();
    forEachHalf(unit, [&](int32_t group, int32_t half) {
      SliceStates<K> own = statesOf(ring, half);
      own.columns += group * own.stride, own.ends += group * decode::kEndBytes;
      ColumnShare<K> share;
      joinStates(share, own, 1, half);
      if (!run.hasTeam(team))
        return share.store(partOf(run, part, group), half);
      addToSum(slots().ofSums(0, group), share, half, part % decode::kFanIn == 0);
      if (run.endsTeam(part))
        keepTeam(run, team, share, group, half);
    });
    __syncthreads();
  }

  // Behind the last part: says what is there, and writes results if nothing is missing. Each warp has columns of its own.
  template <bool IsTall> DEV void end(const ColumnShare<K> (&sum)[2]) const {
    const PartRun run = parkedRun();
    const bool isWhole = run.isWhole();
    if (!isWhole && !arrivesLastOfUnit(run))
      return;
    const int32_t teams = run.teams(), block = isWhole ? 0 : run.blockOfPart(0);
    forEachHalf(unit, [&](int32_t group, int32_t half) {
      ColumnShare<K> share;
      if (!isWhole && teams > 1)
        sumStates(share, slots().ofTeams(block, group), teams, half);
      else if (!isWhole)
        sumStates(share, slots().ofParts(block, group), run.parts, half);
      else if constexpr (IsTall)
        loadShare(share, slots().ofSums(teams > 1, group), half);
      else
        share = half == 0 ? sum[0] : sum[1];
      writeHalf(p, unit, share, group, half);
    });
  }

private:
  DEV PartRun parkedRun() const {
    PartRun run;
    unpark(parked, run);
    return run;
  }
  DEV Slots<K> slots() const { return {p}; }
  DEV SliceStates<K> statesOf(const PageRing<K> &ring, int32_t half) const {
    if (half == 0)
      return {ring.keysOfSlice(0), ends, K::kKeySliceBytes};
    return {ring.valuesOfSlice(0), ends + K::kWarps * decode::kEndBytes, K::kValueSliceBytes};
  }

  // Where others look for a part of a team that they have a part of, and for a team.
  DEV SlotStates<K> partOf(const PartRun &run, int32_t part, int32_t group) const {
    SlotStates<K> states = slots().ofParts(run.blockOfTeam(PartRun::teamOf(part)), group);
    states.first = states.at(part % decode::kFanIn, 0);
    return states;
  }
  DEV SlotStates<K> teamOf(const PartRun &run, int32_t team, int32_t group) const {
    SlotStates<K> states = slots().ofTeams(run.blockOfPart(0), group);
    states.first = states.at(team, 0);
    return states;
  }

  DEV void keepTeam(const PartRun &run, int32_t team, ColumnShare<K> &share, int32_t group, int32_t half) const {
    if (!run.isWhole())
      share.store(teamOf(run, team, group), half);
    else if (run.teams() > 1)
      addToSum(slots().ofSums(1, group), share, half, team == 0);
  }

  // The block's parts of a team that others have parts of, too. True: the team is there.
  DEV bool arrivesLastOfTeam(const PartRun &run, int32_t team) const {
    const int32_t first = PartRun::firstOfTeam(team), end = run.endOfTeam(team), block = run.blockOfTeam(team);
    const int32_t own = min(run.end, end) - max(run.first, first);
    if (!arrivesLast(slots().arrivals(block, 0), end - first, own))
      return false;
    if (run.teams() > 1)
      forEachHalf(unit, [&](int32_t group, int32_t half) {
        ColumnShare<K> share;
        sumStates(share, slots().ofParts(block, group), end - first, half);
        share.store(teamOf(run, team, group), half);
      });
    return true;
  }

  DEV bool arrivesLastOfUnit(const PartRun &run) const {
    const int32_t last = PartRun::teamOf(run.end - 1);
    int32_t team = PartRun::teamOf(run.first), own = last + 1 - team; // those that are there
#pragma unroll 1
    for (int32_t step = max(last - team, 1); team <= last;
         team += step) // only the first and the last may be others', too
      own -= !run.hasTeam(team) && !arrivesLastOfTeam(run, team);
    if (run.teams() == 1 || own == 0)
      return own > 0;
    return arrivesLast(slots().arrivals(run.blockOfPart(0), 1), run.teams(), own);
  }

  const ParamsOf<K> &p;
  const Unit<K> &unit;
  const uint32_t ends, parked;
};

// The keys of the parts of a block, one behind the other. A unit that has fewer than were counted has empty parts.
template <bool IsTall, class K>
DEV void walkParts(const PartEnds<K> &parts, const PartRun &run, PageRing<K> &ring,
                   const typename KeyProducts<K>::Query &query, const LaneScope<K> &lane, RowState<K> &rows,
                   float dotScale, bool hasRows) {
  const int32_t tilesOfPart = run.work / (IsTall ? decode::tallWork(K::kWarps) : 1);
  int32_t part = run.first, left = tilesOfPart;
  ColumnShare<K> sum[2];
#pragma unroll 1
  for (;;) {
    const KeyTile tile = ring.template advance<IsTall>();
    if (tile.exists()) {
      if constexpr (!IsTall)
        addSlice(rows, ring, query, lane, tile, ptx::rereadThreadIndex() / 32, dotScale);
      else if (hasRows)
#pragma unroll 1
        for (int32_t slice = 0; slice < K::kWarps; ++slice)
          addSlice(rows, ring, query, lane, tile, slice, dotScale);
      if (--left > 0 || part + 1 == run.end)
        continue;
    }
    if constexpr (IsTall)
      parts.finishTall(part, rows, ring, hasRows);
    else
      parts.finish(part, rows, ring, sum);
    if (++part == run.end)
      break;
    clearRows(rows);
    left = tilesOfPart;
  }
  parts.template end<IsTall>(sum);
}

template <class K>
DEV void computeParts(const ParamsOf<K> &p, const Line<K> &line, int32_t number, const PartRun &run, uint32_t shared) {
  const Unit<K> unit(p, line, number);
  if (!unit.hasRows() || run.isEmpty())
    return __syncthreads();
  const Context<K> context = unit.sequence.context(p, unit.firstHead);
  const int32_t warp = threadIdx.x / 32, group = unit.isTall ? warp : 0;
  const bool hasRows = group < unit.groups();
  typename KeyProducts<K>::Query query(shared + K::kSmemQ + group * decode::kRows * K::kSmemRowBytesQK,
                                       p.ofKeys(unit.scalePair(p)));
  PageRing<K> ring(p, context, unit, run.quota <= K::kEvictTiles, shared);
  ring.prime(run.first * run.work, run.allWork(), [&] { loadQueries(p, unit, shared + K::kSmemQ); });
  const PartEnds<K> parts(p, unit, run, shared);
  RowState<K> rows;
  clearRows(rows);
  if (K::Pattern::kHasSink && run.first == 0 && (unit.isTall || warp == 0))
    startFromSinks(rows, p, unit, group);
  ptx::waitCopies<K::kStages - 1>();
  __syncthreads();
  query.keepInRegisters();
  const LaneScope<K> lane(p, context, unit, group);
  if (unit.isTall)
    walkParts<true>(parts, run, ring, query, lane, rows, p.scaleLog2, hasRows);
  else
    walkParts<false>(parts, run, ring, query, lane, rows, p.scaleLog2, hasRows);
  ptx::waitCopies<0>();
  __syncthreads();
}

template <class Traits, class P> struct PortableDecodeInvariant : PortableDecode<Traits, P, true> {
  using K = typename PortableDecode<Traits, P, true>::K;

  DEV static void run(const ParamsOf<K> &p) {
    const uint32_t shared = ptx::sharedAddress(ptx::launchedMemory());
    PortableDecodeInvariant::computeBlock(p, shared,
                                          [&](const Line<K> &line, int32_t unit, const UnitPart &tiles, int64_t quota) {
                                            computeParts<K>(p, line, unit, PartRun(line, tiles, quota), shared);
                                          });
  }

private:
  static_assert(!K::kShares, "groups of sequences are made of the batch");
  static constexpr int kHalfBytes = K::kValuePairs * decode::kPairBytes;
  static_assert(kHalfBytes <= K::kKeySliceBytes && kHalfBytes <= K::kValueSliceBytes, "a state fits a slice of a tile");
  static_assert((K::kWarps - 1) * decode::kRows * K::kSmemRowBytesQK >= 2 * K::kWarps * decode::kEndBytes,
                "row maxima and sums fit behind the rows of a group");
};

} // namespace heddle
