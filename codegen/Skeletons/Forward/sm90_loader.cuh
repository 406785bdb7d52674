// The loading thread: follows the plan and copies query tiles and key tiles into the rings, ahead of use, with the
// headers that the consumers need. Order of the copies: K(0), Q, then K(n + 1) before V(n), as the consumers use them.
#pragma once

#include "Forward/sm90_tile_walk.cuh"
#include "Forward/turned_values.cuh"
#include "Ptx/tensor_copy.cuh"

namespace heddle {

// Where values arrive: in the ring of the consumers, which know where it ends.
template <class K, bool AreTurned> struct Arriving {
  using Slots = Pipeline<K::kValueStages, typename K::ValueRing, PackedRingCursor>;
  static constexpr uint32_t kTile = K::kValueTile, kSlotBytes = K::kSmemStageBytesV;
  DEV static void setEnd(int32_t, bool) {}
  DEV static void end(Slots &) {}
};
// In that of the warps that turn them over, and know of nothing else.
template <class K> struct Arriving<K, true> {
  using Slots = Pipeline<K::kRawStages, typename K::RawRing, PackedRingCursor>;
  static constexpr uint32_t kTile = K::kRawTile, kSlotBytes = K::kSmemStageBytesRaw;
  DEV static void setEnd(int32_t slot, bool isEnd) { ptx::storeShared4(K::rawEnd(slot), isEnd); }
  DEV static void end(Slots &values) {
    values.acquire();
    setEnd(values.slot(), true);
    ptx::arrive(values.full());
  }
};

template <class K> class Loader {
  using Params = ParamsOf<K>;
  using ArrivingValues = Arriving<K, K::Values::kAreTurned>;

public:
  DEV explicit Loader(const Params &p)
      : p(p), plan(kReads), queries(kFills), queryTile(kFills), keys(kFills), values(kFills) {}

  DEV void run() {
    bool isFirst = true; // the next tile is the first of its item
    PlannedTile last{};  // whose values are still to be sent
#pragma unroll 1
    for (;;) {
      plan.waitFull();
      const uint32_t from = K::planEntry(plan.slot());
      const int32_t flags = ptx::loadShared4(flagsOf(from));
      const bool isItem = hasBit(flags, flag::kIsItem), hasNext = hasBit(flags, flag::kNextExists);
      const auto tile = loadRecord<PlannedTile>(from);
      if (isItem)
        copyHeader(K::kLoaderItem, from);
      releasePlan();
      if (!isItem)
        sendKeys(tile, flags);
      if (isItem ? !hasNext : isFirst)
        sendQuery(!isItem);
      if (hasBit(flags, flag::kIsEnd))
        return ArrivingValues::end(values);
      if (!isItem)
        sendValuesBehind(last, tile, isFirst, hasNext);
      isFirst = isItem;
    }
  }

private:
  DEV void releasePlan() {
    ptx::arrive(plan.empty());
    plan.next();
  }

  // Headers stay in shared memory: registers are scarce.
  DEV static void copyHeader(uint32_t to, uint32_t from) { storeRecord(to, loadRecord<ItemHeader>(from)); }

  DEV void sendKeys(const PlannedTile &tile, int32_t flags) {
    const uint32_t full = keys.full();
    keys.acquire();
    storeRecord(K::tileHeader(keys.slot()), TileHeader{tile.firstKey, flags});
    ptx::arriveExpecting(full, K::kKeyTileBytes + K::kKeyFactorTileBytes);
    const uint32_t to = K::kKeyTile + keys.slot() * K::kSmemStageBytesK;
    if constexpr (K::kAreKeyMajor)
      copyKeyHalves(to, full, tile.firstKey);
    else
      copyColumns<K::kTileHeadDim>(to, full, K::kKeyMaps, tile);
    if constexpr (K::kArePairs)
      copyColumns<1>(K::keyFactors(keys.slot()), full, K::kFactorMaps, tile);
    keys.next();
  }

  // Behind the keys of a tile: the values of the tile before, then its own if no keys follow. `last` becomes the tile.
  DEV void sendValuesBehind(PlannedTile &last, const PlannedTile &tile, bool isFirst, bool hasNext) {
    if (isFirst)
      last = tile;
#pragma unroll 1
    for (int32_t rest = !isFirst + !hasNext; rest > 0; --rest) {
      sendValues(last);
      last = tile;
    }
  }

  DEV void sendValues(const PlannedTile &tile) {
    const uint32_t full = values.full();
    values.acquire();
    if constexpr (K::kTurnsValues)
      turned.waitFor(p, batch() * p.kvHeads + kvHead(), tile.firstKey);
    ArrivingValues::setEnd(values.slot(), false);
    ptx::arriveExpecting(full, K::kArrivingBytes);
    const uint32_t to = ArrivingValues::kTile + values.slot() * ArrivingValues::kSlotBytes;
    if constexpr (K::kAreKeyMajor)
      ptx::copyBox(to, &p.maps[K::kValueMaps], full, tile.firstKey, 0, 0, kvHead(), batch());
    else
      copyColumns<K::kTileValueDim>(to, full, K::kValueMaps, tile);
    values.next();
  }

  DEV static int32_t batch() { return ptx::loadShared4(K::kLoaderItem + HEDDLE_OFFSET(ItemPlace, batch)); }
  DEV static int32_t kvHead() { return ptx::loadShared4(K::kLoaderItem + HEDDLE_OFFSET(ItemHeader, kvHead)); }

  // As EvenKeysFirst has them.
  DEV void copyKeyHalves(uint32_t to, uint32_t full, int32_t firstKey) const {
    constexpr int kRows = K::kBlockN / kKeyHalves;
    const int32_t ofBatch = batch(), ofHead = kvHead();
#pragma unroll
    for (int column = 0; column < columnsOf(K::kTileHeadDim, K::kElementBytes); ++column)
#pragma unroll
      for (int half = 0; half < kKeyHalves; ++half)
        ptx::copyBox(to + (column * K::kBlockN + half * kRows) * kColumnRowBytes, &p.maps[K::kKeyMaps + half], full,
                     column * kColumnElements, firstKey / kKeyHalves, 0, ofHead, ofBatch);
  }

  template <int Dim> DEV void copyColumns(uint32_t to, uint32_t full, int firstMap, const PlannedTile &tile) const {
    const int32_t ofBatch = batch(), ofHead = kvHead();
    const TensorMap *map = &p.maps[firstMap + ConsumerTile::mapOf(tile.place)];
    const int32_t first = tile.number * K::kBlockN;
#pragma unroll
    for (int column = 0; column < columnsOf(Dim, K::kElementBytes); ++column)
      ptx::copyBox(to + column * K::kBlockN * kColumnRowBytes, map, full, column * kColumnElements, first,
                   ConsumerTile::residueOf(tile.place), ofHead, ofBatch);
  }

  DEV void sendQuery(bool hasTiles) {
    const uint32_t full = queries.full();
    queries.acquire();
    copyHeader(K::itemHeader(queries.slot()), K::kLoaderItem);
    if (K::kFreesQueries && hasTiles) {
      queryTile.acquire();
      queryTile.next();
    }
    if (hasTiles) {
      ptx::arriveExpecting(full, K::kQueryTileBytes);
      copyQuery(full);
    } else {
      ptx::arrive(full);
    }
    queries.next();
  }

  DEV void copyQuery(uint32_t full) const {
    const auto item = loadRecord<ItemPlace>(K::kLoaderItem);
    const int32_t rate = kHasDocumentTiles<K> ? 1 : item.rateOrEnd;
    const int32_t row = item.firstRow / rate, residue = item.firstRow - row * rate;
    const int32_t map = mapOfClass<K>(rateSlot<QueryRates<K>>(rate), rate, residue, p.seqlenQ);
    const uint32_t to = queryTileOf<K>(queries.slot());
#pragma unroll
    for (int column = 0; column < columnsOf(K::kTileHeadDim, K::kElementBytes); ++column)
      ptx::copyBox(to + column * K::kBlockM * kColumnRowBytes, &p.maps[K::kQueryMaps + map], full,
                   column * kColumnElements, row, residue, item.head, item.batch);
  }

  static constexpr int kColumnElements = kColumnRowBytes / K::kElementBytes;

  const Params &p;
  Pipeline<kPlanSlots, typename K::PlanRing, PackedRingCursor> plan;
  Pipeline<K::kHeaderStages, typename K::QueryRing, PackedRingCursor> queries;
  Pipeline<1, typename K::QueryTileRing, PackedRingCursor> queryTile; // kFreesQueries
  Pipeline<K::kStages, typename K::KeyRing, PackedRingCursor> keys;
  typename ArrivingValues::Slots values;
  TurnedKeys<K, K::kTurnsValues> turned;
};

} // namespace heddle
