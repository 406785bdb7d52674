// What an item visits: Q and d_out of query tiles, in all heads of the group, with lse and delta of their rows, or K
// and V of key tiles. A ring of kStages slots in shared memory, which asynchronous copies fill ahead of use. Every
// thread walks, every thread copies.
#pragma once

#include "Backward/branch_sums.cuh"
#include "Backward/portable_backward_shapes.cuh"
#include "Backward/walk_items.cuh"
#include "Ptx/registers.cuh"
#include "Shared/query_rates.cuh"
#include "Shared/shared_tiles.cuh"

namespace heddle {

// Rows of q or k, then of v or d_out, in a tile of the item and in one of a step.
using ItemRows = SharedTile<kBlockN, KernelTraits::kHeadDim, KernelTraits::kSmemRowBytesQK>;
using ItemValueRows = SharedTile<kBlockN, KernelTraits::kValueDim, KernelTraits::kSmemRowBytesV>;
using StepRows = SharedTile<kBlockM, KernelTraits::kHeadDim, KernelTraits::kSmemRowBytesQK>;
using StepValueRows = SharedTile<kBlockM, KernelTraits::kValueDim, KernelTraits::kSmemRowBytesV>;

// Rows of a head of two tensors: those from `first` on at a stride.
struct TileRows {
  int32_t batch, head, first, rate;

  DEV StridedRows of(const void *tensor, const int64_t (&stride)[3], int32_t end) const {
    return StridedRows{headBase(tensor, stride, batch, head), stride[1] * kElementBytes, first, rate, end};
  }
};
template <bool AreKeys> DEV StridedRows rowsOf(const KernelParams &p, const TileRows &rows) {
  return AreKeys ? rows.of(p.k, p.kStride, p.seqlenK) : rows.of(p.q, p.qStride, p.seqlenQ);
}
template <bool AreKeys> DEV StridedRows valueRowsOf(const KernelParams &p, const TileRows &rows) {
  return AreKeys ? rows.of(p.v, p.vStride, p.seqlenK) : rows.of(p.dOut, p.dOutStride, p.seqlenQ);
}

// K and V of the item, or Q and d_out: complete with the first group of copies that is committed behind.
template <class Item> DEV void loadItem(const KernelParams &p, const Item &item, uint32_t shared) {
  ItemRows::clearPadding(shared + KernelTraits::kSmemK);
  ItemValueRows::clearPadding(shared + KernelTraits::kSmemV);
  const TileRows rows = {item.batch, item.headOfRows(), item.first, item.rate};
  ItemRows::load(shared + KernelTraits::kSmemK, rowsOf<Item::kRowsAreKeys>(p, rows));
  ItemValueRows::load(shared + KernelTraits::kSmemV, valueRowsOf<Item::kRowsAreKeys>(p, rows));
}

// The tiles of all heads that an item visits, one head after the other. The context is that of the first, and changes:
// not a member, as an object that refers to itself stays in memory.
template <class Item> class GroupWalk {
public:
  DEV GroupWalk(const KernelParams &p, const Item &item, PatternContext &context)
      : context(context), tiles(context, item), lastHead(item.head + Item::headsOfItem(p) - 1) {
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
  TileWalk<Item> tiles;
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
    ptx::storeShared4(to + kBlockM * 4, __float_as_int(deltaOfRow()));
  }

private:
  DEV float deltaOfRow() const {
    if constexpr (Pattern::kIsDetached)
      return deltaOfBranch(product, weight, delta);
    return delta;
  }

  float lse, delta, product, weight;
};

template <class Item> class TileRing {
public:
  DEV TileRing(const KernelParams &p, const Item &item, PatternContext &context, uint32_t shared)
      : p(p), item(item), shared(shared), walk(p, item, context), slot(kStages - 1) {
#pragma unroll
    for (int stage = 0; stage < kStages; ++stage) {
      StepRows::clearPadding(rowSlot(stage));
      StepValueRows::clearPadding(valueSlot(stage));
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

  // Shared addresses of the tile that advance() returned last: of q or k, of d_out or v.
  DEV uint32_t rows() const { return rowSlot(slot); }
  DEV uint32_t values() const { return valueSlot(slot); }
  DEV uint32_t statistics() const { return statisticsSlot(slot); }

private:
  DEV uint32_t rowSlot(int at) const { return shared + KernelTraits::kSmemQ + at * KernelTraits::kSmemStageBytesQ; }
  DEV uint32_t valueSlot(int at) const {
    return shared + KernelTraits::kSmemOut + at * KernelTraits::kSmemStageBytesOut;
  }
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
      if (Item::kRowsAreKeys && threadIdx.x < kBlockM)
        loaded.load(p, item.batch, tile, place);
      const TileRows rows = {item.batch, tile.head, tile.firstRow, place.rate};
      StepRows::load(rowSlot(at), rowsOf<!Item::kRowsAreKeys>(p, rows));
      StepValueRows::load(valueSlot(at), valueRowsOf<!Item::kRowsAreKeys>(p, rows));
    }
    ptx::commitCopies();
    pending[kStages - 2] = tile;
  }

  DEV void storeStatistics(int at) const {
    if (Item::kRowsAreKeys && threadIdx.x < kBlockM)
      loaded.store(statisticsSlot(at) + threadIdx.x * 4);
  }

  const KernelParams &p;
  const Item &item;
  uint32_t shared;
  GroupWalk<Item> walk;
  QueryTile pending[kStages - 1];
  LoadedRow loaded;
  int slot;
};

} // namespace heddle
