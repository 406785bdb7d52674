// The portable decode_invariant skeleton: portable_decode.cuh where bits of the result of a query depend on neither the other
// sequences of a batch nor the other queries of its own. Units fall into parts by places of keys (line_parts.cuh), and blocks
// get whole parts. What a part sums (slice_rows.cuh), and in which order parts become one (invariant_parts.cuh), depends
// neither on which block has it nor on whether warps share rows; copies of keys run on from part to part.
//
// Traits and launch: those of portable_decode.cuh, with kShares 0. What warps tell each other of a tile lies where rows of q
// were, behind those of the first group.
#pragma once

#include "Decode/invariant_parts.cuh"
#include "Decode/portable_decode.cuh"
#include "Decode/slice_rows.cuh"
#include "Decode/team_decode.cuh"

namespace heddle {

// What warps tell each other of a tile lies in the last bytes of where rows of q of other groups would be.
template <class K> constexpr int kWordsOffset = K::kWarps * decode::kRows * K::kSmemRowBytesQK - SliceWords<K>::kBytes;

// What becomes of the parts of one unit that a block has. All threads of the block call everything together. Which parts these
// are is parked, behind a barrier, where the block's second words were, which nobody looks at any more.
template <class K> class PartEnds {
  using Run = BlockParts<K>;
  static_assert(K::kWarps * 8 + sizeof(Run) <= kParkedWord * 8, "before what else is parked");

  static_assert(kWordsOffset<K> >= decode::kRows * K::kSmemRowBytesQK, "behind the rows that the warps read last");
  static constexpr bool kHasRoom = 2 * ThreadSums<K, true>::kHalfBytes <= kWordsOffset<K>;
  using Sums = ThreadSums<K, kHasRoom>;
  static constexpr bool kHasTallSums = TallShape<K>::kHasSums;

public:
  DEV PartEnds(const ParamsOf<K> &p, const Unit<K> &unit, const Run &run, uint32_t shared)
      : p(p), unit(unit), queries(shared + K::kSmemQ),
        parked(shared + K::kSmemControl + (K::kWarps - kParkedWord) * 8) {
    park(parked, run);
  }

  // How many of the block's tiles the part has; of the last one, kNoTile: whatever is left.
  DEV int32_t tilesOf(int32_t part) const {
    const Run run = parkedRun();
    return part + 1 == run.end ? kNoTile : run.tilesOf(part);
  }

  // Of a unit whose rows all warps have; `team`, `all`: sums of the parts before this one. A warp has its columns to the end.
  DEV void finish(int32_t part, const SharedRows<K> &rows, ColumnShare<K> (&team)[2], ColumnShare<K> (&all)[2]) const {
    const bool hasUpperHalf = unit.hasUpperHalf(0);
    const Run run = parkedRun();
    const int32_t number = Run::teamOf(part);
    const bool isOwn = run.hasTeam(number), isFirst = run.beginsTeam(part);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (half == 0 || hasUpperHalf) {
        ColumnShare<K> share;
        rows.give(share, half);
        if (!isOwn) {
          share.store(partOf(run, part, 0), half);
          continue;
        }
        if (isFirst)
          clearShare(team[half]);
        addNext(team[half], share.rowMax, share.sum, share.out);
        if (!run.endsTeam(part))
          continue;
        if (!run.isWhole()) {
          team[half].store(slots().ofTeam(run.blockOfUnit, number, 0), half);
          continue;
        }
        if (number == 0)
          clearShare(all[half]);
        else
          sums().load(all[half], half);
        addNext(all[half], team[half].rowMax, team[half].sum, team[half].out);
        sums().store(all[half], half);
      }
  }

  // Of a tall unit, of which each warp has rows, which are of no further use.
  DEV void finishTall(int32_t part, RowState<K> &rows) const {
    const int32_t group = ptx::rereadThreadIndex() / 32;
    const Run run = parkedRun();
    if (kHasTallSums && run.isOwn(part)) {
      const bool goesOn = run.goesOn(part);
#pragma unroll
      for (int half = 0; half < 2; ++half)
        if (half == 0 || unit.hasUpperHalf(group)) {
          const TallSums<K> team(queries - K::kSmemQ, group, half);
          rows.sum[0][half] = sumInFirstLane(rows.sum[0][half]);
          addTeamBefore(rows, half, team, run.beginsTeam(part));
          if (goesOn)
            team.store(rows.out[0], rows.rowMax[0][half], rows.sum[0][half], half);
        }
      if (goesOn)
        return;
    }
    leaveTall(run, part, group, rows);
  }

  // Behind the last part: says what is there, and writes results if nothing is missing. Each warp has columns of its own.
  DEV void end(const ColumnShare<K> (&all)[2]) const {
    if (unit.isTall)
      __syncthreads(); // warps have left states of all columns
    const Run run = parkedRun();
    const bool isWhole = run.isWhole();
    const int32_t first = Run::teamOf(run.first), last = Run::teamOf(run.end - 1), teams = run.teams();
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
        const int32_t begin = run.firstOfTeam(team), end = run.endOfTeam(team);
        count = end - begin;
        const int32_t own = min(run.end, end) - max(run.first, begin);
        if (!arrivesLast(slots().arrivals(run.blockOfTeam(team), 0), count, own))
          continue;
        ++here;
      }
      forEachHalfThereIs([&](int32_t group, int32_t half) {
        ColumnShare<K> share;
        if (isWhole && !unit.isTall) {
          share = half == 0 ? all[0] : all[1];
          sums().load(share, half);
        } else {
          SlotStates<K> from = slots().ofTeam(run.blockOfUnit, 0, group);
          if (isWhole)
            from = slots().ofSum(1, group);
          else if (step < 2)
            from = partOf(run, run.firstOfTeam(team), group);
          sumStates(share, from, isWhole ? 1 : count, half);
        }
        if (step == 2 || teams == 1) {
          addSink(share, group, half);
          writeHalf(p, unit, share, group, half);
        } else {
          share.store(slots().ofTeam(run.blockOfUnit, team, group), half);
        }
      });
      if (teams == 1)
        return;
    }
  }

private:
  // In the workspace.
  DEV void leaveTall(const Run &run, int32_t part, int32_t group, RowState<K> &rows) const {
    const int32_t number = Run::teamOf(part);
    const bool isOwn = run.hasTeam(number), endsTeam = run.endsTeam(part);
    SlotStates<K> to = slots().ofSum(endsTeam, group);
    if (!isOwn)
      to = partOf(run, part, group);
    else if (endsTeam && !run.isWhole())
      to = slots().ofTeam(run.blockOfUnit, number, group);
    const int32_t sums = !isOwn ? 0 : endsTeam && run.isWhole() ? 2 : 1; // that the part is added to
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (half == 1 && !unit.hasUpperHalf(group))
        return;
      rows.sum[0][half] = sumInFirstLane(rows.sum[0][half]);
#pragma unroll 1
      for (int32_t level = kHasTallSums; level < sums; ++level)
        addRowsBefore(rows, half, slots().ofSum(level, group), level == 0 ? run.beginsTeam(part) : number == 0);
      storeRowsOfWarp(to, rows, half);
    }
  }

  DEV Run parkedRun() const {
    Run run;
    unpark(parked, run);
    return run;
  }
  DEV Slots<K> slots() const { return {p}; }
  DEV Sums sums() const { return {queries}; }
  // forEachHalf() without a count of groups, which a register would keep from where rows of q are loaded until here.
  template <class F> DEV void forEachHalfThereIs(const F &f) const {
    int32_t row = unit.firstRow;
#pragma unroll 1
    for (int32_t group = 0; group < (unit.isTall ? K::kWarps : 1) && row < unit.rows; ++group, row += decode::kRows)
#pragma unroll 1
      for (int32_t half = 0; half <= static_cast<int32_t>(unit.hasUpperHalf(group)); ++half)
        f(group, half);
  }
  // Behind all keys, wherever a row's own begin.
  DEV void addSink(ColumnShare<K> &share, int32_t group, int32_t half) const {
    if constexpr (K::Pattern::kHasSink) {
      float rowMax, sum;
      findSink(rowMax, sum, p, unit, group * decode::kRows + rowOfLane(half));
      const float none[K::kPairsOfWarp][4] = {};
      addNext(share, rowMax, sum, none);
    }
  }
  // Where others look for a part of a team that they have a part of.
  DEV SlotStates<K> partOf(const Run &run, int32_t part, int32_t group) const {
    return slots().ofPart(run.blockOfTeam(Run::teamOf(part)), part % decode::kFanIn, group);
  }

  const ParamsOf<K> &p;
  const Unit<K> &unit;
  const uint32_t queries, parked;
};

// The keys of the parts of a block from `part` on, one behind the other: take() the next tile, which is none behind the last
// one, and end() parts. A unit that has fewer than were counted has empty parts.
template <class K, class Take, class End>
DEV void walkParts(const PartEnds<K> &parts, int32_t part, const Take &take, const End &end) {
#pragma unroll 1
  for (;;) {
    int32_t left = parts.tilesOf(part);
#pragma unroll 1
    while (take() && --left > 0) {
    }
    end(part);
    if (left > kNoTile / 2)
      return;
    ++part;
  }
}

template <class K>
DEV void computeParts(const ParamsOf<K> &p, const Line<K> &line, int32_t number, const UnitPart &tiles, int64_t quota,
                      uint32_t shared) {
  const Unit<K> unit(p, line, number);
  if (!unit.hasRows())
    return __syncthreads();
  const Context<K> context = unit.sequence.context(p, unit.firstHead);
  const int32_t warp = threadIdx.x / 32, group = unit.isTall ? warp : 0;
  const bool hasRows = group < unit.groups();
  typename KeyProducts<K>::Query query(shared + K::kSmemQ + group * decode::kRows * K::kSmemRowBytesQK,
                                       p.ofKeys(unit.scalePair(p)));
  PageRing<K> ring(p, context, unit, quota <= K::kEvictTiles, shared);
  int32_t base = 0;
  ring.primeParts(
      [&](int32_t tile) {
        base = K::Pattern::kBranchCount == 1 ? tile : 0;
        return BlockParts<K>(line, tiles, unit.isTall, base).work();
      },
      [&] { loadQueries(p, unit, shared + K::kSmemQ); });
  BlockParts<K> run(line, tiles, unit.isTall,
                    base); // anew, while keys are on their way, for fewer registers until then
  if (run.isEmpty()) {
    ptx::waitCopies<0>();
    return __syncthreads();
  }
  run.findBlocks(tiles.unitFirst, quota);
  const PartEnds<K> parts(p, unit, run, shared);
  ptx::waitCopies<K::kStages - 1>();
  __syncthreads();
  query.keepInRegisters();
  const LaneScope<K> lane(p, context, unit, group);
  ColumnShare<K> all[2];
  if (unit.isTall) {
    RowState<K> rows;
    clearRows(rows);
    walkParts(
        parts, run.first,
        [&] {
          const KeyTile tile = ring.template advance<true>();
          if (tile.exists() && hasRows)
            addAllSlices(ring, query, lane, tile, p.scaleLog2, [&](const Scores<K> &scores, uint32_t values) {
              addScoredInOrder(rows, scores, values, K::Pattern::kHasScore ? kLog2OfE : p.scaleLog2);
            });
          return tile.exists();
        },
        [&](int32_t part) {
          if (hasRows)
            parts.finishTall(part, rows);
          clearRows(rows);
        });
  } else {
    const SliceWords<K> words(shared + K::kSmemQ + kWordsOffset<K>);
    SharedRows<K> rows;
    ColumnShare<K> team[2];
    rows.clear();
    walkParts(
        parts, run.first,
        [&] {
          const KeyTile tile = ring.advanceTogether();
          if (tile.exists())
            addTileOfAll(rows, ring, query, lane, tile, words, p.scaleLog2);
          return tile.exists();
        },
        [&](int32_t part) {
          parts.finish(part, rows, team, all);
          rows.clear();
        });
  }
  parts.end(all);
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
};

} // namespace heddle
