// Q and d_out of the query tiles that a key tile visits, in all heads of its group, with lse and delta of their rows: a
// ring of kStages slots in shared memory, which asynchronous copies fill ahead of use. Every thread walks, every thread
// copies.
#pragma once

#include "Backward/branch_sums.cuh"
#include "Shared/query_rates.cuh"

namespace heddle {

using KeyRows = SharedTile<kBlockN, KernelTraits::kHeadDim, KernelTraits::kSmemRowBytesQK>;
using ValueRows = SharedTile<kBlockN, KernelTraits::kValueDim, KernelTraits::kSmemRowBytesV>;
using QueryRows = SharedTile<kBlockM, KernelTraits::kHeadDim, KernelTraits::kSmemRowBytesQK>;
using OutRows = SharedTile<kBlockM, KernelTraits::kValueDim, KernelTraits::kSmemRowBytesV>;

// K and V of the item, complete with the first group of copies that is committed behind.
DEV void loadKeys(const KernelParams &p, const KeyItem &item, uint32_t shared) {
  KeyRows::clearPadding(shared + KernelTraits::kSmemK);
  ValueRows::clearPadding(shared + KernelTraits::kSmemV);
  KeyRows::load(shared + KernelTraits::kSmemK,
                StridedRows{headBase(p.k, p.kStride, item.batch, item.kvHead), p.kStride[1] * kElementBytes, item.first,
                            item.rate, p.seqlenK});
  ValueRows::load(shared + KernelTraits::kSmemV,
                  StridedRows{headBase(p.v, p.vStride, item.batch, item.kvHead), p.vStride[1] * kElementBytes,
                              item.first, item.rate, p.seqlenK});
}

// The tiles of all heads of the group, one head after the other. The context is that of the first, and changes: not a
// member, as an object that refers to itself stays in memory.
class GroupWalk {
public:
  DEV GroupWalk(const KernelParams &p, const KeyItem &item, PatternContext &context)
      : context(context), tiles(context, item), lastHead(item.head + p.heads / p.kvHeads - 1) {
    if constexpr (KernelTraits::kWalkInMemory) {
      ptx::keepInMemory(context);
      ptx::keepInMemory(tiles);
    }
  }

  DEV QueryTile next() {
    QueryTile tile;
#pragma unroll 1
    while (!tiles.next(tile)) {
      if (context.head == lastHead)
        return QueryTile{-1, 0, 0};
      ++context.head;
      tiles.enterHead();
    }
    return tile;
  }
  DEV ClassTile place() const { return tiles.place(); } // of the last tile

private:
  PatternContext &context;
  TileWalk<KeyItem> tiles;
  int32_t lastHead;
};

// What a thread reads of one row (row_statistics.cuh).
class LoadedRow {
public:
  DEV void load(const KernelParams &p, int32_t batch, const QueryTile &tile, const ClassTile &place) {
    const int32_t heads = p.batch * p.heads, head = batch * p.heads + tile.head;
    const int64_t row = statisticsPlace(heads, rateSlot<QueryRates>(place.rate), head, p.seqlenQ, place) + threadIdx.x;
    const bool exists = tile.firstRow + place.rate * static_cast<int32_t>(threadIdx.x) < p.seqlenQ;
    lse = exists ? p.lse[row] : INFINITY; // no weight, whatever the chain of scores makes of a row of zeros
    delta = p.delta[row];
    if constexpr (Pattern::kIsDetached) {
      const BranchSums sums(p, batch, tile, place);
      product = sums.products[threadIdx.x];
      weight = sums.weights[threadIdx.x];
    }
  }

  DEV void store(uint32_t to) const {
    ptx::storeShared4(to, __float_as_int(lse));
    ptx::storeShared4(to + kBlockM * 4, __float_as_int(deltaOfBranch()));
  }

private:
  // heddle_prepare leaves the gradient of lse in the place of delta where branches are detached.
  DEV float deltaOfBranch() const {
    if constexpr (Pattern::kIsDetached)
      return (weight > 0.f ? product / weight : 0.f) - delta;
    return delta;
  }

  float lse, delta, product, weight;
};

class QueryRing {
public:
  DEV QueryRing(const KernelParams &p, const KeyItem &item, PatternContext &context, uint32_t shared)
      : p(p), item(item), shared(shared), walk(p, item, context), slot(kStages - 1) {
#pragma unroll
    for (int stage = 0; stage < kStages; ++stage) {
      QueryRows::clearPadding(querySlot(stage));
      OutRows::clearPadding(outSlot(stage));
    }
  }

  // Starts the first kStages - 1 tiles, one group each.
  DEV void prime() {
#pragma unroll
    for (int t = 0; t + 1 < kStages; ++t) {
      load(t);
      storeStatistics(t);
    }
  }

  // Waits for the next tile, then refills the slot of the one before it. A block barrier: every warp must be done with
  // that one. endStep() must follow before the next call.
  DEV QueryTile advance() {
    ptx::waitCopies<kStages - 2>();
    __syncthreads();
    const int freed = slot;
    slot = slot + 1 == kStages ? 0 : slot + 1;
    const QueryTile tile = pending[0];
    load(freed);
    return tile;
  }

  // What was read of the rows of the tile that advance() started has arrived meanwhile.
  DEV void endStep() const { storeStatistics(slot == 0 ? kStages - 1 : slot - 1); }

  // Shared addresses of the tile that advance() returned last.
  DEV uint32_t queries() const { return querySlot(slot); }
  DEV uint32_t outs() const { return outSlot(slot); }
  DEV uint32_t statistics() const { return statisticsSlot(slot); }

private:
  DEV uint32_t querySlot(int at) const { return shared + KernelTraits::kSmemQ + at * KernelTraits::kSmemStageBytesQ; }
  DEV uint32_t outSlot(int at) const { return shared + KernelTraits::kSmemOut + at * KernelTraits::kSmemStageBytesOut; }
  DEV uint32_t statisticsSlot(int at) const {
    return shared + KernelTraits::kSmemStatistics + at * KernelTraits::kSmemStageBytesStatistics;
  }

  // The next tile, into slot `at`; a group of copies also where none follows.
  DEV void load(int at) {
#pragma unroll
    for (int i = 0; i + 2 < kStages; ++i)
      pending[i] = pending[i + 1];
    const QueryTile tile = walk.next();
    if (!tile.isEnd()) {
      const ClassTile place = walk.place();
      if (threadIdx.x < kBlockM)
        loaded.load(p, item.batch, tile, place);
      QueryRows::load(querySlot(at), StridedRows{headBase(p.q, p.qStride, item.batch, tile.head),
                                                 p.qStride[1] * kElementBytes, tile.firstRow, place.rate, p.seqlenQ});
      OutRows::load(outSlot(at), StridedRows{headBase(p.dOut, p.dOutStride, item.batch, tile.head),
                                             p.dOutStride[1] * kElementBytes, tile.firstRow, place.rate, p.seqlenQ});
    }
    ptx::commitCopies();
    pending[kStages - 2] = tile;
  }

  DEV void storeStatistics(int at) const {
    if (threadIdx.x < kBlockM)
      loaded.store(statisticsSlot(at) + threadIdx.x * 4);
  }

  const KernelParams &p;
  const KeyItem &item;
  uint32_t shared;
  GroupWalk walk;
  QueryTile pending[kStages - 1];
  LoadedRow loaded;
  int slot;
};

} // namespace heddle
