// Batch-invariant decode of calls of so few units that clusters of blocks share each, with the bits of
// portable_decode_invariant.cuh: the same parts of the keys, and the same sums of them. A cluster has a team of eight parts at a
// time, each of its blocks one. What comes of a part is sent to all blocks, each of which adds the eight in their order for
// columns of its own; of several clusters, which have every so many-th team, the last one that is done adds what all left.
//
// Traits: those of portable_decode.cuh with a shared-memory plan of its own, and kSmemSlices: what is sent, kSmemWords: what
// warps tell each other, kSmemBarrier: a barrier for each buffer of slices.
// Launch: grid = (kTeamBlocks * kv heads, sequences, most clusters of a unit), clusters of kTeamBlocks blocks, with the
// parameters of decode_invariant. Patterns of one lattice, whose heads keep the same pairs; units have at most kTeamRows rows.
#pragma once

#include "Decode/arrivals.cuh"
#include "Decode/cluster_ring.cuh"
#include "Decode/decode_params.cuh"
#include "Decode/invariant_parts.cuh"
#include "Decode/line_parts.cuh"
#include "Decode/slice_rows.cuh"
#include "Decode/team_layout.cuh"
#include "Decode/team_slices.cuh"
#include "Decode/unit_rows.cuh"
#include "Shared/shared_records.cuh"

namespace heddle {

// The parts of a unit. Numbers count from the team that it begins in.
template <class K> struct TeamParts {
  using Places = PartPlaces<K>;
  int32_t base, tiles;        // number of the first tile, and how many there are
  int32_t origin, begin, end; // part that numbers count from; of those with tiles

  DEV TeamParts() {}
  DEV TeamParts(int32_t base, int32_t tiles) : base(base), tiles(tiles) {
    const int32_t number = Places::partOf(base);
    origin = number / decode::kFanIn * decode::kFanIn;
    begin = number - origin;
    end = Places::partOf(base + max(tiles, 1) - 1) + 1 - origin;
  }
  DEV int32_t teams() const { return ceilDiv(end, decode::kFanIn); }
  DEV int32_t tilesBefore(int32_t part) const { return min(max(Places::firstTile(origin + part) - base, 0), tiles); }
  DEV int32_t tilesOf(int32_t part) const { return tilesBefore(part + 1) - tilesBefore(part); }
};

// Of every so many-th part the tiles, as steps of a walk.
template <class K> struct PartSteps {
  TeamParts<K> parts;
  int32_t part, every, number, left; // `number`: of the last tile in the walk; `left`: tiles of the part

  DEV PartSteps() {}
  DEV PartSteps(const TeamParts<K> &parts, int32_t first, int32_t every)
      : parts(parts), part(first - every), every(every), number(0), left(0) {}

  // Tiles until the next one.
  DEV int32_t next() {
    int32_t to = number + 1;
#pragma unroll 1
    while (left == 0) {
      part += every;
      if (part >= parts.end)
        return kNoTile;
      to = parts.tilesBefore(part);
      left = parts.tilesOf(part);
    }
    const int32_t step = to - number;
    number = to;
    --left;
    return step;
  }
};

// Slices of all warps of a tile in a ring of each.
template <class K, class Ring> struct RingOfAll {
  const Ring &ring;

  DEV uint32_t keysOfSlice(int32_t slice) const { return ring.keysOfSlice(slice); } // its own
  DEV uint32_t valuesOfSlice(int32_t slice) const {
    return ring.valuesOfSlice(slice) + (slice - SliceRows<K>::warp()) * K::kValueSliceBytes;
  }
};

// Traits are those of decode_invariant with numbers of their own.
template <class Traits, class P>
struct TeamDecode
    : RowStateShape<KeySlices<SoftmaxNumbers<KeyProductShape<WarpProductShape<WarpBlock<ElementNumbers<Traits>>>>>>> {
  using K = TeamDecode;
  using Pattern = P;
  using Params = DecodeParams<K, false, true>;
  static constexpr bool kIsInvariant = true;

  DEV static void run(const Params &p) {
    const uint32_t shared = ptx::sharedAddress(ptx::launchedMemory());
    SentParts<K>(shared).expect();
    const int32_t number = Grid::sequence(), kvHead = Grid::kvHead(), block = Grid::block();
    Sequence<K> sequence = Sequence<K>::readRows(p, number);
    const int32_t used = ptx::loadGlobal4(p.sequsedK + listOf(p, number, kvHead), p.sequsedK != nullptr);
    GuessedTile<K> guess(p, number, kvHead, PartPlaces<K>::firstTile(block));
    Unit<K> unit(p, sequence, kvHead);
    if (!unit.hasRows())
      return;
    loadQueries(p, unit, shared + K::kSmemQ);
    ptx::commitCopies();
    const int32_t most = mostKeysOf(p, number);
    unit.sequence.takeKeys(p, p.sequsedK ? min(max(used, 0), most) : most);
    guess.copy(unit.sequence.keys, true, shared);
    const Context<K> context = unit.sequence.context(p, unit.firstHead);
    Walk walk(context, unit.span());
    const int32_t tiles = walk.count();
    const TeamParts<K> parts(tiles > 0 ? walk.firstTile() : 0, tiles);
    const int32_t clusters = min(Grid::clusters(), parts.teams());
    const int32_t every = clusters * decode::kTeamBlocks;
    if (block >= every)
      return ptx::waitCopies<0>();
    walk.take(PartSteps<K>(parts, block, every));
    Ring ring(guess, unit.sequence.keys, walk, tiles <= K::kEvictTiles * every, shared);
    TeamSums<K> sums(p, unit, shared, clusters, parts.teams());
    compute(p, unit, context, ring, parts, every, sums, shared);
    sums.end();
  }

private:
  using Grid = ClusterGrid<decode::kTeamBlocks>;
  using Walk = StridedWalk<K, PartSteps<K>>;
  using Ring = ClusterRing<K, Walk>;
  static_assert(K::kWarps == decode::kTeamWarps && decode::kTeamRows % K::kWarps == 0, "warps join whole rows");
  static_assert(K::kBlockM == decode::kRows && K::kRowWarps == 1 && K::kRowTiles == 1, "a warp has 16 rows");
  static_assert(K::kValuePairs <= decode::kTeamBlocks, "each block joins a pair of tiles");
  static_assert(K::kPacksHeads && K::Pattern::kVariantCount == 1 && K::Pattern::kBranchCount == 1, "one lattice");
  static_assert(areApart({{K::kSmemQ, decode::kRows * K::kSmemRowBytesQK},
                          {K::kSmemK, K::kStages * K::kSmemStageBytesK},
                          {K::kSmemV, K::kStages * K::kSmemStageBytesV},
                          {K::kSmemSlices, SentParts<K>::kBytes},
                          {K::kSmemWords, SliceWords<K>::kBytes},
                          {K::kSmemBarrier, 8 * decode::kTeamBuffers}},
                         K::kSmemBytes),
                "tiles, rings and states lie apart in the shared memory that is planned");

  // The block's parts, one of each team of the cluster, which may lack it.
  DEV static void compute(const Params &p, const Unit<K> &unit, const Context<K> &context, Ring &ring,
                          const TeamParts<K> &parts, int32_t every, TeamSums<K> &sums, uint32_t shared) {
    typename KeyProducts<K>::Query query(shared + K::kSmemQ, p.ofKeys(unit.scalePair(p)));
    const SliceWords<K> words(shared + K::kSmemWords);
    SharedRows<K> rows;
    rows.clear();
    int32_t part = Grid::block(), left = parts.tilesOf(part);
    ring.walkAll(
        [&] {
          __syncthreads();
          query.keepInRegisters();
        },
        [&](const KeyTile &tile) {
          if (left == 0) {
            sums.finish(rows);
            rows.clear();
            left = parts.tilesOf(part += every);
          }
          --left;
          const LaneScope<K> lane(p, context, unit, 0); // looked at by few tiles, or by all
          addTileOfAll(rows, RingOfAll<K, Ring>{ring}, query, lane, tile, words, p.scaleLog2,
                       [&] { ring.waitForValues(); });
          __syncthreads(); // the slot is refilled
        });
#pragma unroll 1
    do {
      sums.finish(rows);
      rows.clear();
    } while (sums.areLeft());
  }
};

} // namespace heddle
