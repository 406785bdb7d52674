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
  // Of row maxima and sums, once for the four lanes of a row.
  DEV void load8(int32_t state, int32_t, float (&values)[2]) const {
    int32_t words[2];
    ptx::loadShared8(endOf(state), words);
    values[0] = __int_as_float(words[0]);
    values[1] = ptx::rereadThreadIndex() % 4 == 0 ? __int_as_float(words[1]) : 0.f;
  }
  DEV void store16(int32_t state, int32_t offset, float a, float b, float c, float d) const {
    ptx::storeShared16(columns + state * stride + offset, __float_as_int(a), __float_as_int(b), __float_as_int(c),
                       __float_as_int(d));
  }
  DEV void store8(int32_t state, int32_t, float rowMax, float sum) const {
    sum = quadSum(sum);
    if (ptx::rereadThreadIndex() % 4 == 0)
      ptx::storeShared8(endOf(state), __float_as_int(rowMax), __float_as_int(sum));
  }

  static constexpr int kEndBytes = 8 * 8; // of 8 rows

private:
  DEV uint32_t endOf(int32_t state) const { return ends + state * kEndBytes + ptx::rereadThreadIndex() % 32 / 4 * 8; }
};

// What becomes of the parts of one unit that a block has. All threads of the block call everything together. Which parts these
// are is parked, behind a barrier, where the block's second words were, which nobody looks at any more; sums and row maxima
// lie where rows of q were.
template <class K> class PartEnds {
  static_assert(K::kWarps * 8 + sizeof(PartRun) <= kParkedWord * 8, "before what else is parked");
  static constexpr int kQueryBytes = K::kWarps * decode::kRows * K::kSmemRowBytesQK;
  static constexpr int kEndsOffset = kQueryBytes - 2 * K::kWarps * SliceStates<K>::kEndBytes;
  static_assert(kEndsOffset >= decode::kRows * K::kSmemRowBytesQK, "row maxima lie behind the rows of one group");
  static_assert(kEndsOffset >= 2 * ThreadSums<K>::kHalfBytes, "and behind sums");
  static constexpr bool kHasRoom = kEndsOffset >= 3 * ThreadSums<K>::kHalfBytes; // for a sum of a team's upper halves

public:
  DEV PartEnds(const ParamsOf<K> &p, const Unit<K> &unit, const PartRun &run, uint32_t shared)
      : p(p), unit(unit), queries(shared + K::kSmemQ),
        parked(shared + K::kSmemControl + (K::kWarps - kParkedWord) * 8) {
    park(parked, run);
  }

  // Of a unit whose rows all warps have. `sum`: of the parts of its team before this one.
  DEV void finish(int32_t part, const RowState<K> &rows, const PageRing<K> &ring, ColumnShare<K> (&sum)[2]) const {
    const bool hasUpperHalf = unit.hasUpperHalf(0);
    const int32_t warp = ptx::rereadThreadIndex() / 32;
    __syncwarp();
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (half == 0 || hasUpperHalf)
        storeHalf(statesOf(ring, half), warp, rows, half);
    const PartRun run = parkedRun();
    const bool isOwn = run.hasTeam(PartRun::teamOf(part));
    __syncthreads();
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (half == 0 || hasUpperHalf) {
        ColumnShare<K> share;
        joinStates(share, statesOf(ring, half), K::kWarps, half);
        if (!isOwn) {
          share.store(partOf(run, part, 0), half);
          continue;
        }
        if (part % decode::kFanIn == 0)
          clearShare(sum[half]);
        else if (half == 1)
          loadUpper(sum[1]);
        addNext(sum[half], share.rowMax, share.sum, share.out);
        if (run.endsTeam(part))
          keepTeam(run, PartRun::teamOf(part), sum[half], half);
        if (half == 1)
          storeUpper(sum[1]);
      }
    __syncthreads();
  }

  // Of a tall unit, of which each warp has rows.
  DEV void finishTall(int32_t part, RowState<K> &rows) const {
    const int32_t group = ptx::rereadThreadIndex() / 32, team = PartRun::teamOf(part);
    const PartRun run = parkedRun();
    const bool isOwn = run.hasTeam(team), endsTeam = run.endsTeam(part), hasTeams = run.teams() > 1;
    SlotStates<K> to = slots().ofSum(endsTeam && hasTeams, group);
    if (!isOwn)
      to = partOf(run, part, group);
    else if (endsTeam && !run.isWhole())
      to = slots().ofTeam(run.blockOfUnit, team, group);
    const int32_t sums = !isOwn ? 0 : endsTeam && run.isWhole() && hasTeams ? 2 : 1; // that the part is added to
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (half == 1 && !unit.hasUpperHalf(group))
        return;
#pragma unroll 1
      for (int32_t level = 0; level < sums; ++level)
        if ((level == 0 ? part % decode::kFanIn : team) == 0)
          addRowsBefore<true>(to, rows, half);
        else
          addRowsBefore<false>(slots().ofSum(level, group), rows, half);
      storeRowsOfWarp(to, rows, half);
    }
  }

  // Behind the last part: says what is there, and writes results if nothing is missing. Each warp has columns of its own.
  DEV void end(const ColumnShare<K> (&sum)[2]) const {
    if (unit.isTall)
      __syncthreads(); // warps have left states of all columns
    const PartRun run = parkedRun();
    const bool isWhole = run.isWhole();
    const int32_t first = PartRun::teamOf(run.first), last = PartRun::teamOf(run.end - 1), teams = run.teams();
    int32_t here = last + 1 - first - !run.hasTeam(first) - (last > first && !run.hasTeam(last)); // teams
#pragma unroll 1
    for (int32_t step = isWhole || here == last + 1 - first ? 2 : 0; step < 3; ++step) {
      const int32_t team = step == 0 ? first : last;
      int32_t count = teams;
      if (step == 2 && !isWhole && (here == 0 || !arrivesLast(slots().arrivals(run.blockOfUnit, 1), teams, here)))
        return;
      if (step < 2) {
        if (run.hasTeam(team) || (step == 1 && last == first))
          continue;
        const int32_t begin = PartRun::firstOfTeam(team), end = run.endOfTeam(team);
        count = end - begin;
        const int32_t own = min(run.end, end) - max(run.first, begin);
        if (!arrivesLast(slots().arrivals(run.blockOfTeam(team), 0), count, own))
          continue;
        ++here;
      }
      forEachHalf(unit, [&](int32_t group, int32_t half) {
        ColumnShare<K> share;
        if (isWhole && !unit.isTall) {
          share = half == 0 ? sum[0] : sum[1];
          if (half == 1)
            loadUpper(share);
        } else {
          SlotStates<K> from = slots().ofTeam(run.blockOfUnit, 0, group);
          if (isWhole)
            from = slots().ofSum(teams > 1, group);
          else if (step < 2)
            from = slots().ofPart(run.blockOfTeam(team), 0, group);
          sumStates(share, from, isWhole ? 1 : count, half);
        }
        if (step == 2 || teams == 1)
          writeHalf(p, unit, share, group, half);
        else
          share.store(slots().ofTeam(run.blockOfUnit, team, group), half);
      });
      if (teams == 1)
        return;
    }
  }

private:
  DEV PartRun parkedRun() const {
    PartRun run;
    unpark(parked, run);
    return run;
  }
  DEV Slots<K> slots() const { return {p}; }
  DEV SliceStates<K> statesOf(const PageRing<K> &ring, int32_t half) const {
    const uint32_t ends = queries + kEndsOffset;
    if (half == 0)
      return {ring.keysOfSlice(0), ends, K::kKeySliceBytes};
    return {ring.valuesOfSlice(0), ends + K::kWarps * SliceStates<K>::kEndBytes, K::kValueSliceBytes};
  }
  // Where others look for a part of a team that they have a part of.
  DEV SlotStates<K> partOf(const PartRun &run, int32_t part, int32_t group) const {
    return slots().ofPart(run.blockOfTeam(PartRun::teamOf(part)), part % decode::kFanIn, group);
  }

  // The sum of upper halves is not in registers meanwhile, where there is room: few units have such rows.
  DEV ThreadSums<K> upperSum() const { return {queries + 2 * ThreadSums<K>::kHalfBytes}; }
  DEV void loadUpper(ColumnShare<K> &share) const {
    if constexpr (kHasRoom)
      upperSum().load(share, 0);
  }
  DEV void storeUpper(const ColumnShare<K> &share) const {
    if constexpr (kHasRoom)
      upperSum().store(share, 0);
  }

  // A team that the block has all of; of a unit that it has all of, `share` becomes the sum of its teams so far.
  DEV void keepTeam(const PartRun &run, int32_t team, ColumnShare<K> &share, int32_t half) const {
    if (!run.isWhole())
      return share.store(slots().ofTeam(run.blockOfUnit, team, 0), half);
    if (run.teams() == 1)
      return;
    const ThreadSums<K> sums = {queries};
    const ColumnShare<K> next = share;
    if (team == 0)
      clearShare(share);
    else
      sums.load(share, half);
    addNext(share, next.rowMax, next.sum, next.out);
    sums.store(share, half);
  }

  const ParamsOf<K> &p;
  const Unit<K> &unit;
  const uint32_t queries, parked;
};

// The keys of the parts of a block, one behind the other. A unit that has fewer than were counted has empty parts.
template <bool IsTall, class K>
DEV void walkParts(const PartEnds<K> &parts, const PartRun &run, PageRing<K> &ring,
                   const typename KeyProducts<K>::Query &query, const LaneScope<K> &lane, RowState<K> &rows,
                   ColumnShare<K> (&sum)[2], float dotScale, bool hasRows) {
  const int32_t tilesOfPart = run.work / (IsTall ? decode::tallWork(K::kWarps) : 1);
  int32_t part = run.first, left = tilesOfPart;
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
    if constexpr (!IsTall)
      parts.finish(part, rows, ring, sum);
    else if (hasRows)
      parts.finishTall(part, rows);
    if (++part == run.end)
      return;
    clearRows(rows);
    left = tilesOfPart;
  }
}

template <class K>
DEV void computeParts(const ParamsOf<K> &p, const Line<K> &line, int32_t number, const UnitPart &tiles, int64_t quota,
                      uint32_t shared) {
  const Unit<K> unit(p, line, number);
  PartRun run(line, tiles);
  if (!unit.hasRows() || run.isEmpty())
    return __syncthreads();
  const Context<K> context = unit.sequence.context(p, unit.firstHead);
  const int32_t warp = threadIdx.x / 32, group = unit.isTall ? warp : 0;
  const bool hasRows = group < unit.groups();
  typename KeyProducts<K>::Query query(shared + K::kSmemQ + group * decode::kRows * K::kSmemRowBytesQK,
                                       p.ofKeys(unit.scalePair(p)));
  PageRing<K> ring(p, context, unit, quota <= K::kEvictTiles, shared);
  ring.prime(run.first * run.work, run.allWork(), [&] { loadQueries(p, unit, shared + K::kSmemQ); });
  run.findBlocks(tiles.unitFirst, quota);
  const PartEnds<K> parts(p, unit, run, shared);
  RowState<K> rows;
  clearRows(rows);
  if (K::Pattern::kHasSink && run.first == 0 && (unit.isTall || warp == 0))
    startFromSinks(rows, p, unit, group);
  ptx::waitCopies<K::kStages - 1>();
  __syncthreads();
  query.keepInRegisters();
  const LaneScope<K> lane(p, context, unit, group);
  ColumnShare<K> sum[2];
  if (unit.isTall)
    walkParts<true>(parts, run, ring, query, lane, rows, sum, p.scaleLog2, hasRows);
  else
    walkParts<false>(parts, run, ring, query, lane, rows, sum, p.scaleLog2, hasRows);
  parts.end(sum);
  ptx::waitCopies<0>();
  __syncthreads();
}

template <class Traits, class P> struct PortableDecodeInvariant : PortableDecode<Traits, P, true> {
  using K = typename PortableDecode<Traits, P, true>::K;

  DEV static void run(const ParamsOf<K> &p) {
    const uint32_t shared = ptx::sharedAddress(ptx::launchedMemory());
    PortableDecodeInvariant::computeBlock(p, shared,
                                          [&](const Line<K> &line, int32_t unit, const UnitPart &tiles, int64_t quota) {
                                            computeParts<K>(p, line, unit, tiles, quota, shared);
                                          });
  }

private:
  static_assert(!K::kShares, "groups of sequences are made of the batch");
  static constexpr int kHalfBytes = K::kValuePairs * decode::kPairBytes;
  static_assert(kHalfBytes <= K::kKeySliceBytes && kHalfBytes <= K::kValueSliceBytes, "a state fits a slice of a tile");
};

} // namespace heddle
