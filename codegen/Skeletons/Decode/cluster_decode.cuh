// Decode of calls of so few units that clusters of blocks share each: what takes time there is one wait after the other, so
// nothing is dealt out, and what the warps of a cluster have of a unit is joined at once, in shared memory. A unit has its
// cluster, or several, whose blocks take every so many-th of its key tiles; the warps of all blocks send each block the
// columns that it joins. Of several clusters the last one joins what all have left in memory.
//
// Traits: those of portable_decode.cuh with a shared-memory plan of its own, and kSmemSlices: states that a block is sent.
// Launch: grid = (kClusterBlocks * kv heads, sequences, most clusters of a unit), clusters of kClusterBlocks blocks, with the
// parameters of decode. Patterns of one lattice, whose heads keep the same pairs; units have at most kClusterRows rows.
#pragma once

#include "Decode/cluster_layout.cuh"
#include "Decode/cluster_ring.cuh"
#include "Decode/decode_params.cuh"
#include "Decode/unit_rows.cuh"
#include "Decode/unit_tiles.cuh"
#include "Ptx/barriers.cuh"
#include "Ptx/cluster.cuh"
#include "Ptx/registers.cuh"
#include "Shared/shared_records.cuh"

namespace heddle {

// Where a block stands among those of its unit.
struct ClusterPlace : ClusterGrid<decode::kClusterBlocks> {
  int32_t number, clusters, rank; // of the cluster; how many have tiles; of the block

  DEV explicit ClusterPlace(int32_t tiles) : number(cluster()), rank(ptx::rankInCluster()) {
    clusters = min(ClusterGrid::clusters(), max(ceilDiv(tiles, kLeastTiles), 1));
  }
  // Whether the cluster has tiles of so many keys, if none is left out.
  DEV static bool isWithin(int32_t keys, int32_t blockN) {
    return cluster() == 0 || cluster() * (kLeastTiles * blockN) < keys;
  }
  DEV bool hasTiles() const { return number < clusters; }
  DEV int32_t blocks() const { return clusters * decode::kClusterBlocks; }

private:
  static constexpr int kLeastTiles = 2 * decode::kClusterBlocks; // of a cluster, where there are several
};

// 16 columns of rows, four of them in each lane.
struct ColumnSlice {
  float out[4], rowMax, sum;
};

// Of the same rows, what lanes load that have the same columns, Copies of them, all their states together: load(i, end, values)
// gives the i-th state of this lane, row maximum and sum, and columns of each slice. Always in the same order.
template <int Count, int Copies, int Slices, class Load>
DEV void joinSlices(ColumnSlice (&slices)[Slices], const Load &load) {
  float end[Count][2], values[Count][Slices][4];
#pragma unroll
  for (int i = 0; i < Count; ++i)
    load(i, end[i], values[i]);
  float rowMax = end[0][0], sum = 0.f;
#pragma unroll
  for (int i = 1; i < Count; ++i)
    rowMax = fmaxf(rowMax, end[i][0]);
#pragma unroll
  for (int distance = 16; distance > 16 / Copies; distance /= 2)
    rowMax = fmaxf(rowMax, __shfl_xor_sync(kWholeWarp, rowMax, distance));
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    const float weight = ptx::exp2Approx(end[i][0] - rowMax);
    sum = fmaf(end[i][1], weight, sum);
#pragma unroll
    for (int s = 0; s < Slices; ++s)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        slices[s].out[e] = fmaf(values[i][s][e], weight, i == 0 ? 0.f : slices[s].out[e]);
  }
#pragma unroll
  for (int distance = 16; distance > 16 / Copies; distance /= 2) {
    sum += __shfl_xor_sync(kWholeWarp, sum, distance);
#pragma unroll
    for (int s = 0; s < Slices; ++s)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        slices[s].out[e] += __shfl_xor_sync(kWholeWarp, slices[s].out[e], distance);
  }
#pragma unroll
  for (int s = 0; s < Slices; ++s)
    slices[s].rowMax = rowMax, slices[s].sum = sum;
}

// What each warp has of all columns, where its first values and keys were.
template <class K> struct WarpStates {
  uint32_t values, ends; // of the first warp

  DEV explicit WarpStates(uint32_t shared) : values(shared + K::kSmemV), ends(shared + K::kSmemK) {}

  DEV void store(const RowState<K> &rows) const {
    const int32_t warp = ptx::rereadThreadIndex() / 32, lane = ptx::rereadLane();
    const float sum = quadSum(rows.sum[0][0]);
#pragma unroll
    for (int pair = 0; pair < K::kValuePairs; ++pair) {
      const float (&low)[4] = rows.out[0][2 * pair], (&high)[4] = rows.out[0][2 * pair + 1];
      ptx::storeShared16(values + warp * K::kValueSliceBytes + pair * decode::kSliceValueBytes + lane * 16,
                         __float_as_int(low[0]), __float_as_int(low[1]), __float_as_int(high[0]),
                         __float_as_int(high[1]));
    }
    if (lane % 4 == 0)
      ptx::storeShared8(ends + warp * K::kKeySliceBytes + lane / 4 * 8, __float_as_int(rows.rowMax[0][0]),
                        __float_as_int(sum));
  }
  // All rows of the pairs of value tiles that this warp joins.
  DEV void join(ColumnSlice (&slices)[K::kPairsOfWarp]) const {
    const int32_t lane = ptx::rereadLane();
    joinSlices<K::kWarps, 1>(slices, [&](int i, float (&end)[2], float (&out)[K::kPairsOfWarp][4]) {
      loadEnd(ends + lane / 4 * 8 + i * K::kKeySliceBytes, end);
#pragma unroll
      for (int s = 0; s < K::kPairsOfWarp; ++s)
        ptx::loadShared16(values + min(ColumnShare<K>::pairOf(s), K::kValuePairs - 1) * decode::kSliceValueBytes +
                              lane * 16 + i * K::kValueSliceBytes,
                          out[s]);
    });
  }

  DEV static void loadEnd(uint32_t address, float (&end)[2]) {
    int32_t words[2];
    ptx::loadShared8(address, words);
    end[0] = __int_as_float(words[0]), end[1] = __int_as_float(words[1]);
  }
};

// Rows of a slice that a warp joins: a quad for each, as often as there are quads.
template <class K> struct JoinedRows {
  static constexpr int kRows = decode::kRowsOfClusterWarp, kCopies = 8 / kRows;

  DEV static int32_t lane() { return ptx::rereadLane(); }
  DEV static int32_t copy() { return lane() / (4 * kRows); }
  DEV static int32_t rowOfWarp() { return lane() % (4 * kRows) / 4; }
  DEV static int32_t row() { return ptx::rereadThreadIndex() / 32 * kRows + rowOfWarp(); }
};

// What the blocks of a cluster have of the columns that a block joins: each sends its own.
template <class K> struct SentSlices {
  using Rows = JoinedRows<K>;
  static constexpr int kBytes = decode::kClusterBlocks * decode::kSliceBytes;
  uint32_t slices, barrier;

  DEV explicit SentSlices(uint32_t shared) : slices(shared + K::kSmemSlices), barrier(shared + K::kSmemBarrier) {}

  // Call first, with all threads.
  DEV void expect() const {
    if (threadIdx.x == 0) {
      ptx::initBarrier(barrier, 1);
      ptx::fenceBarrierInit();
      ptx::arriveExpecting(barrier, kBytes);
    }
    __syncwarp();
    ptx::arriveInCluster();
  }
  DEV void send(const ColumnSlice &slice, int32_t rank, int32_t to) const {
    const int32_t lane = ptx::rereadLane();
    const uint32_t there = ptx::addressInBlock(slices, to), bell = ptx::addressInBlock(barrier, to);
    const uint32_t own = there + rank * decode::kSliceBytes;
    ptx::sendInCluster16(own + lane * 16, bell, slice.out[0], slice.out[1], slice.out[2], slice.out[3]);
    ptx::sendInCluster8(own + decode::kSliceValueBytes + lane / 4 * 8, bell, lane % 4 == 0, slice.rowMax, slice.sum);
  }
  DEV void join(ColumnSlice (&slice)[1]) const {
    ptx::waitParity(barrier, 0);
    const uint32_t first = slices + Rows::copy() * decode::kSliceBytes;
    joinSlices<decode::kClusterBlocks / Rows::kCopies, Rows::kCopies>(
        slice, [&](int i, float (&end)[2], float (&out)[1][4]) {
          const uint32_t state = first + i * Rows::kCopies * decode::kSliceBytes;
          WarpStates<K>::loadEnd(state + decode::kSliceValueBytes + Rows::row() * 8, end);
          ptx::loadShared16(state + Rows::row() * 64 + Rows::lane() % 4 * 16, out[0]);
        });
  }
};

// What clusters of a unit have of a block's columns, in memory that is zero before: a word that is not zero is there, so nobody
// fences, and nobody waits for a block that may not have begun.
template <class K> struct ClusterSlices {
  using Rows = JoinedRows<K>;
  static constexpr int kEnds = Rows::kRows * 64, kCounter = kEnds + Rows::kRows * 8,
                       kStates = decode::kMostClusters / Rows::kCopies;
  static_assert(kCounter + 16 == decode::kClusterRecordBytes, "records are as large as is planned");
  static_assert(decode::kMostClusters % Rows::kCopies == 0, "lanes of a row have as many states each");
  char *first; // of this warp in the first cluster
  int32_t cluster, clusters;

  DEV ClusterSlices(const ParamsOf<K> &p, const ClusterPlace &place) : cluster(place.number), clusters(place.clusters) {
    const uint32_t block = ClusterPlace::unit() * decode::kClusterBlocks + place.rank;
    first = reinterpret_cast<char *>(p.arrivals) +
            (block * K::kWarps + ptx::rereadThreadIndex() / 32) * decode::kClusterRecordBytes;
  }

  // True for the last cluster, which has what all have left, of which nothing stays. All is asked for before it is known who is
  // last, and may be on its way still.
  DEV bool join(ColumnSlice (&slice)[1]) const {
    float end[kStates][2], out[kStates][4];
    uint32_t *const counter = reinterpret_cast<uint32_t *>(first + kCounter);
    store(slice[0]);
    const uint32_t before = ptx::addGlobalIf(counter, 1, Rows::lane() == 0);
    load(end, out);
    if (static_cast<int32_t>(__shfl_sync(kWholeWarp, before, 0)) + 1 != clusters)
      return false;
    if (Rows::lane() == 0)
      ptx::storeCoherent4(counter, 0);
#pragma unroll 1
    while (!__all_sync(kWholeWarp, areThere(end, out)))
      load(end, out);
    clear();
    joinSlices<kStates, Rows::kCopies>(slice, [&](int i, float (&ofRow)[2], float (&values)[1][4]) {
      ofRow[0] = hasState(i) ? end[i][0] : kNoRowMax, ofRow[1] = end[i][1]; // the others are 0
#pragma unroll
      for (int e = 0; e < 4; ++e)
        values[0][e] = out[i][e];
    });
    return true;
  }

private:
  using Ends = float[kStates][2];
  using Values = float[kStates][4];

  // The i-th one of this lane, and what it has of a record: columns, and the ends of their row.
  DEV static int32_t clusterOf(int i) { return i * Rows::kCopies + Rows::copy(); }
  DEV bool hasState(int i) const { return clusterOf(i) < clusters; }
  DEV char *of(int32_t number) const {
    const uint32_t records = ClusterPlace::units() * (decode::kClusterBlocks * K::kWarps);
    return first + number * (records * decode::kClusterRecordBytes);
  }
  DEV static int32_t columns() { return Rows::lane() % (4 * Rows::kRows) * 16; }
  DEV static int32_t ends() { return kEnds + Rows::rowOfWarp() * 8; }

  DEV void store(const ColumnSlice &slice) const {
    const bool isOwn = Rows::copy() == 0;
    char *const to = of(cluster);
    ptx::storeCoherent16(to + columns(), isOwn, seen(slice.out[0]), seen(slice.out[1]), seen(slice.out[2]),
                         seen(slice.out[3]));
    ptx::storeCoherent8(to + ends(), isOwn && Rows::lane() % 4 == 0, seen(slice.rowMax), seen(slice.sum));
  }
  DEV void load(Ends &end, Values &out) const {
#pragma unroll
    for (int i = 0; i < kStates; ++i) {
      const char *const from = of(clusterOf(i));
      ptx::loadCoherent8(from + ends(), hasState(i), end[i]);
      ptx::loadCoherent16(from + columns(), hasState(i), out[i]);
    }
  }
  DEV bool areThere(const Ends &end, const Values &out) const {
    bool are = true;
#pragma unroll
    for (int i = 0; i < kStates; ++i) {
      uint32_t least = min(__float_as_uint(end[i][0]), __float_as_uint(end[i][1]));
#pragma unroll
      for (int e = 0; e < 4; ++e)
        least = min(least, __float_as_uint(out[i][e]));
      are &= !hasState(i) || least != 0;
    }
    return are;
  }
  DEV void clear() const {
#pragma unroll
    for (int i = 0; i < kStates; ++i) {
      char *const at = of(clusterOf(i));
      ptx::storeGlobal16(at + columns(), hasState(i), 0u, 0u, 0u, 0u);
      ptx::storeGlobal8(at + ends(), hasState(i) && Rows::lane() % 4 == 0, 0u, 0u);
    }
  }
  // 0 is -0.
  DEV static uint32_t seen(float value) {
    const uint32_t word = __float_as_uint(value);
    return word == 0 ? 1u << 31 : word;
  }
};

// Where a block writes its columns of this lane's row: known before they are.
template <class K> struct SliceTarget {
  char *to;
  float *lse;
  float scale;
  bool isOwn, hasLse;

  DEV SliceTarget(const ParamsOf<K> &p, const Unit<K> &unit, int32_t rank) {
    const PackedRow row(unit, JoinedRows<K>::row());
    const RowPlace place = placeOf<K>(p, unit.sequence, row.index);
    to = static_cast<char *>(p.out) +
         (rowOffset(place, row.head, p.outStride) + rank * decode::kSliceColumns) * kOutBytes;
    lse = p.lse + ((static_cast<int64_t>(place.batch) * p.heads + row.head) * p.seqlenQ + place.row);
    scale = p.ofValues(unit.scalePair(p));
    isOwn = row.exists && JoinedRows<K>::copy() == 0;
    hasLse = isOwn && rank == 0 && JoinedRows<K>::lane() % 4 == 0;
    ptx::keepHere(to);
    ptx::keepHere(lse);
  }

  DEV void write(const ColumnSlice &slice) const {
    const float sum = snappedSum<typename K::Element>(slice.rowMax, slice.sum);
    const float inverse = sum == 0.f ? 0.f : ptx::reciprocalApprox(sum) * scale;
    float values[2][2];
#pragma unroll
    for (int e = 0; e < 4; ++e)
      values[e / 2][e % 2] = slice.out[e] * inverse;
    K::Values::Columns::template store<K::kOutFloat32 != 0>(to, isOwn, values);
    ptx::storeGlobal4(lse, hasLse, __float_as_uint((slice.rowMax + ptx::log2Approx(slice.sum)) * kLogOf2));
  }

private:
  static constexpr int kOutBytes = K::kOutFloat32 ? 4 : K::kElementBytes;
};

// Traits are those of decode with numbers of their own.
template <class Traits, class P>
struct ClusterDecode
    : RowStateShape<KeySlices<SoftmaxNumbers<KeyProductShape<WarpProductShape<WarpBlock<ElementNumbers<Traits>>>>>>> {
  using K = ClusterDecode;
  using Pattern = P;
  using Params = DecodeParams<K, false, false>;
  static constexpr bool kIsInvariant = false;

  DEV static void run(const Params &p) {
    const uint32_t shared = ptx::sharedAddress(ptx::launchedMemory());
    SentSlices<K>(shared).expect();
    const int32_t number = ClusterPlace::sequence(), kvHead = ClusterPlace::kvHead();
    Sequence<K> sequence = Sequence<K>::readRows(p, number);
    const int32_t used = ptx::loadGlobal4(p.sequsedK + listOf(p, number, kvHead), p.sequsedK != nullptr);
    GuessedTile<K> guess(p, number, kvHead, ClusterPlace::block());
    Unit<K> unit(p, sequence, kvHead);
    if (!unit.hasRows())
      return;
    loadQueries(p, unit, shared + K::kSmemQ);
    ptx::commitCopies();
    const int32_t most = mostKeysOf(p, number);
    unit.sequence.takeKeys(p, p.sequsedK ? min(max(used, 0), most) : most);
    guess.copy(unit.sequence.keys, ClusterPlace::isWithin(unit.sequence.keys, K::kBlockN), shared);
    const Context<K> context = unit.sequence.context(p, unit.firstHead);
    StridedWalk<K> walk(context, unit.span());
    const int32_t tiles = walk.count();
    const ClusterPlace place(tiles);
    if (!place.hasTiles())
      return ptx::waitCopies<0>();
    walk.take(place.block(), place.blocks());
    ClusterRing<K> ring(guess, unit.sequence.keys, walk, tiles <= K::kEvictTiles * place.blocks(), shared);
    compute(p, unit, context, ring, place.block() == 0, shared);
    join(p, unit, place, shared);
  }

private:
  static_assert(K::kWarps == decode::kClusterWarps && decode::kClusterRows % K::kWarps == 0, "warps join whole rows");
  static_assert(K::kBlockM == decode::kRows && K::kRowWarps == 1 && K::kRowTiles == 1, "a warp has 16 rows");
  static_assert(K::kValuePairs <= decode::kClusterBlocks, "each block joins a pair of tiles");
  static_assert(K::kValuePairs * decode::kSliceValueBytes <= K::kValueSliceBytes &&
                    decode::kClusterRows * 8 <= K::kKeySliceBytes,
                "states of a warp fit where its own values and keys were");
  static_assert(K::kPacksHeads && K::Pattern::kVariantCount == 1 && K::Pattern::kBranchCount == 1, "one lattice");
  static_assert(areApart({{K::kSmemQ, decode::kRows * K::kSmemRowBytesQK},
                          {K::kSmemK, K::kStages * K::kSmemStageBytesK},
                          {K::kSmemV, K::kStages * K::kSmemStageBytesV},
                          {K::kSmemSlices, SentSlices<K>::kBytes},
                          {K::kSmemBarrier, 8}},
                         K::kSmemBytes),
                "tiles, rings and states lie apart in the shared memory that is planned");

  DEV static void compute(const Params &p, const Unit<K> &unit, const Context<K> &context, ClusterRing<K> &ring,
                          bool isFirst, uint32_t shared) {
    typename KeyProducts<K>::Query query(shared + K::kSmemQ, p.ofKeys(unit.scalePair(p)));
    RowState<K> rows;
    clearRows(rows);
    if (K::Pattern::kHasSink && isFirst && threadIdx.x < 32)
      startFromSinks(rows, p, unit, 0);
    ring.walkAll(
        [&] {
          __syncthreads();
          query.keepInRegisters();
        },
        [&](const KeyTile &tile) {
          const LaneScope<K> lane(p, context, unit, 0); // looked at by few tiles, or by all
          addSlice(rows, ring, query, lane, tile, ptx::rereadThreadIndex() / 32, p.scaleLog2,
                   [&] { ring.waitForValues(); });
        });
    WarpStates<K>(shared).store(rows);
  }

  // The warps have stored what they have.
  DEV static void join(const Params &p, const Unit<K> &unit, const ClusterPlace &place, uint32_t shared) {
    const SentSlices<K> sent(shared);
    ColumnSlice own[K::kPairsOfWarp], slice[1];
    __syncthreads();
    ptx::waitForCluster(); // all blocks are there
    WarpStates<K>(shared).join(own);
#pragma unroll
    for (int s = 0; s < K::kPairsOfWarp; ++s)
      if (ColumnShare<K>::hasPair(s))
        sent.send(own[s], place.rank, ColumnShare<K>::pairOf(s));
    if (place.rank >= K::kValuePairs)
      return;
    const SliceTarget<K> target(p, unit, place.rank);
    sent.join(slice);
    if (place.clusters > 1 && !ClusterSlices<K>(p, place).join(slice))
      return;
    target.write(slice[0]);
  }
};

} // namespace heddle
