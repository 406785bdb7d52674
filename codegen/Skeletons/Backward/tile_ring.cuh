// What an item visits: Q and d_out of query tiles, in all heads of the group, with lse and delta of their rows, or K
// and V of key tiles. A ring of kStages slots in shared memory, which asynchronous copies fill ahead of use. Every
// thread walks, every thread copies.
#pragma once

#include "Backward/branch_sums.cuh"
#include "Backward/walk_items.cuh"
#include "Ptx/registers.cuh"
#include "Shared/query_rates.cuh"
#include "Shared/shared_tiles.cuh"

namespace heddle {

// Rows of q or k, then of v or d_out, in a tile of so many.
template <class K, int Rows> struct RingTiles {
  using Keys = SharedTile<K, Rows, K::kHeadDim, K::kSmemRowBytesQK>;
  using Values = SharedTile<K, Rows, K::kValueDim, K::kSmemRowBytesV>;
};

// Rows of a head of two tensors: those from `first` on at a stride.
template <class K> struct TileRows {
  using Params = ParamsOf<K>;
  int32_t batch, head, first, rate;

  template <bool AreKeys> DEV StridedRows of(const Params &p) const {
    return AreKeys ? of(p.k, p.kStride, p.seqlenK) : of(p.q, p.qStride, p.seqlenQ);
  }
  template <bool AreKeys> DEV StridedRows valuesOf(const Params &p) const {
    return AreKeys ? of(p.v, p.vStride, p.seqlenK) : of(p.dOut, p.dOutStride, p.seqlenQ);
  }

private:
  DEV StridedRows of(const void *tensor, const int64_t (&stride)[3], int32_t end) const {
    return StridedRows{headBase<K>(tensor, stride, batch, head), stride[1] * K::kElementBytes, first, rate, end};
  }
};

// K and V of the item, or Q and d_out: complete with the first group of copies that is committed behind.
template <class Item> DEV void loadItem(const typename Item::Params &p, const Item &item, uint32_t shared) {
  using K = typename Item::Kernel;
  using Tiles = RingTiles<K, K::kBlockN>;
  Tiles::Keys::clearPadding(shared + K::kSmemK);
  Tiles::Values::clearPadding(shared + K::kSmemV);
  const TileRows<K> rows = {item.batch, item.headOfRows(), item.first, item.rate};
  Tiles::Keys::load(shared + K::kSmemK, rows.template of<Item::kRowsAreKeys>(p));
  Tiles::Values::load(shared + K::kSmemV, rows.template valuesOf<Item::kRowsAreKeys>(p));
}

// The tiles of all heads that an item visits, one head after the other. The context is that of the first, and changes:
// not a member, as an object that refers to itself stays in memory.
template <class Item> class GroupWalk {
  using Context = typename Item::Context;

public:
  DEV GroupWalk(const typename Item::Params &p, const Item &item, Context &context)
      : context(context), tiles(context, item), lastHead(item.head + Item::headsOfItem(p) - 1) {
    if constexpr (Item::Kernel::kWalkInMemory) {
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
  Context &context;
  TileWalk<Item> tiles;
  int32_t lastHead;
};

// What a thread reads of one row (row_statistics.cuh).
template <class K> class LoadedRow {
  static constexpr bool kIsDetached = K::Pattern::kIsDetached;

public:
  DEV void load(const ParamsOf<K> &p, int32_t batch, const QueryTile &tile, const ClassTile &place) {
    const int32_t heads = p.batch * p.heads, head = batch * p.heads + tile.head;
    const int64_t row =
        statisticsPlace<K>(heads, rateSlot<QueryRates<K>>(place.rate), head, p.seqlenQ, place) + threadIdx.x;
    const bool exists = tile.firstRow + place.rate * static_cast<int32_t>(threadIdx.x) < p.seqlenQ;
    lse = exists ? p.lse[row] : INFINITY; // no weight, whatever the chain of scores makes of a row of zeros
    delta = p.delta[row];
    if constexpr (kIsDetached) {
      const BranchSums<K> sums(p, batch, tile, place);
      product = sums.products[threadIdx.x];
      weight = sums.weights[threadIdx.x];
    }
  }

  DEV void store(uint32_t to) const {
    ptx::storeShared4(to, __float_as_int(lse));
    ptx::storeShared4(to + K::kBlockM * 4, __float_as_int(deltaOfRow()));
  }

private:
  DEV float deltaOfRow() const {
    if constexpr (kIsDetached)
      return deltaOfBranch(product, weight, delta);
    return delta;
  }

  float lse, delta, product, weight;
};

template <class Item> class TileRing {
  using K = typename Item::Kernel;
  using Params = typename Item::Params;
  using Tiles = RingTiles<K, K::kBlockM>;
  static constexpr int kStages = K::kStages;

public:
  DEV TileRing(const Params &p, const Item &item, typename Item::Context &context, uint32_t shared)
      : p(p), item(item), shared(shared), walk(p, item, context), slot(kStages - 1) {
#pragma unroll
    for (int stage = 0; stage < kStages; ++stage) {
      Tiles::Keys::clearPadding(rowSlot(stage));
      Tiles::Values::clearPadding(valueSlot(stage));
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
  DEV uint32_t rowSlot(int at) const { return shared + K::kSmemQ + at * K::kSmemStageBytesQ; }
  DEV uint32_t valueSlot(int at) const { return shared + K::kSmemOut + at * K::kSmemStageBytesOut; }
  DEV uint32_t statisticsSlot(int at) const { return shared + K::kSmemStatistics + at * K::kSmemStageBytesStatistics; }

  // The next tile, into slot `at`; a group of copies also where none follows.
  DEV void load(int at) {
#pragma unroll
    for (int i = 0; i + 2 < kStages; ++i)
      pending[i] = pending[i + 1];
    const QueryTile tile = walk.next();
    if (!tile.isEnd()) {
      const ClassTile place = walk.place();
      if (Item::kRowsAreKeys && threadIdx.x < K::kBlockM)
        loaded.load(p, item.batch, tile, place);
      const TileRows<K> rows = {item.batch, tile.head, tile.firstRow, place.rate};
      Tiles::Keys::load(rowSlot(at), rows.template of<!Item::kRowsAreKeys>(p));
      Tiles::Values::load(valueSlot(at), rows.template valuesOf<!Item::kRowsAreKeys>(p));
    }
    ptx::commitCopies();
    pending[kStages - 2] = tile;
  }

  DEV void storeStatistics(int at) const {
    if (Item::kRowsAreKeys && threadIdx.x < K::kBlockM)
      loaded.store(statisticsSlot(at) + threadIdx.x * 4);
  }

  const Params &p;
  const Item &item;
  uint32_t shared;
  GroupWalk<Item> walk;
  QueryTile pending[kStages - 1];
  LoadedRow<K> loaded;
  int slot;
};

} // namespace heddle
