// The producing warp of a walk over query tiles: Q and d_out of the item once, then for each key tile K and V, of floats with
// what their rows are to be multiplied by. All lanes walk the tiles together; lane 0 copies.
#pragma once

#include "Backward/sm90_backward_loader.cuh"

namespace heddle {

// Warps that read a tile: the two consumers of wide heads share rows, and take tiles in turn.
template <class K> constexpr int kReadersOfKeys = K::kIsWide ? kWarpsOfConsumer : K::kConsumerWarps;

template <class K> class KeyLoader {
  using Params = ParamsOf<K>;
  using Maps = typename K::QueryWalkMaps;
  using QueryTileHeader = heddle::QueryTileHeader<K>;

public:
  DEV KeyLoader(const Params &p, const QueryItem<K> &item) : p(p), item(item), keys(kFills) {}

  DEV void run(const CtaTeamShare<K> &share) {
    const bool copies = threadIdx.x % 32 == 0;
    if (copies)
      sendQueries();
    const Context<K> context = makeContext(p, item.batch, item.head);
    TileWalk<QueryItem<K>> walk(context, item);
    QueryTileHeader tile;
    Turns<K> turns(share);
#pragma unroll 1
    while (walk.next(tile)) {
      if (!turns.isOwn())
        continue;
      if constexpr (K::kIsWide) {
        sendValuesFirst(tile, walk.place(), copies);
      } else {
        keys.acquire();
        keys.of(typename K::OutRing()).acquire();
        if (copies)
          send(tile, walk.place());
      }
      keys.next();
    }
    sendEnd(copies);
    if constexpr (K::kIsWide) {
      keys.next();
      sendEnd(copies);
    }
  }

private:
  DEV void sendEnd(bool copies) const {
    keys.acquire();
    if (copies) {
      QueryTileHeader{{-1, 0, 0}}.write(keys.slot());
      ptx::arrive(keys.full());
    }
  }

  DEV void sendQueries() const {
    const int32_t number = item.first / item.rate, residue = item.first - number * item.rate;
    const int32_t map = mapOfClass<K>(rateSlot<QueryRates<K>>(item.rate), item.rate, residue, p.seqlenQ);
    sendRowsOfItem<K>(p, {Maps::kQueryMaps + map, number, residue, item.head, item.batch}, Maps::kOutMaps + map);
  }

  DEV void send(const QueryTileHeader &tile, const ClassTile &place) const {
    const int32_t map = mapOf(place), first = place.number * K::kBlockM;
    sendKeysOf(tile, {Maps::kKeyMaps + map, first, place.residue, item.kvHead, item.batch});
    sendValuesOf({Maps::kValueMaps + map, first, place.residue, item.kvHead, item.batch});
  }

  // A consumer that has only this slot is done with values before keys.
  DEV void sendValuesFirst(const QueryTileHeader &tile, const ClassTile &place, bool copies) const {
    const int32_t map = mapOf(place), first = place.number * K::kBlockM;
    keys.of(typename K::OutRing()).acquire();
    if (copies)
      sendValuesOf({Maps::kValueMaps + map, first, place.residue, item.kvHead, item.batch});
    keys.acquire();
    if (copies)
      sendKeysOf(tile, {Maps::kKeyMaps + map, first, place.residue, item.kvHead, item.batch});
  }

  DEV int32_t mapOf(const ClassTile &place) const {
    return mapOfClass<K>(rateSlot<KeyRates<K>>(place.rate), place.rate, place.residue, p.seqlenK);
  }

  DEV void sendKeysOf(const QueryTileHeader &tile, const RowBox &box) const {
    const uint32_t full = keys.full();
    tile.write(keys.slot());
    ptx::arriveExpecting(full, K::kQueryTileBytes + (kIsRaised<K> ? K::kStatisticsBytes : 0));
    if constexpr (kIsRaised<K>)
      ptx::copyBox(K::kStatistics + keys.slot() * K::kStatisticsBytes,
                   &p.maps[K::kKeyFactorMaps + box.map - Maps::kKeyMaps], full, 0, box.number, box.residue, box.head,
                   box.batch);
    copyColumns<K, K::kHeadDim, K::kBlockM>(p, K::kQueryTile + keys.slot() * K::kQueryTileBytes, full, box);
  }

  DEV void sendValuesOf(const RowBox &box) const {
    const uint32_t full = keys.of(typename K::OutRing()).full();
    ptx::arriveExpecting(full, K::kOutTileBytes);
    copyColumns<K, K::kValueDim, K::kBlockM>(p, K::kOutTile + keys.slot() * K::kOutTileBytes, full, box);
  }

  const Params &p;
  const QueryItem<K> &item;
  Pipeline<K::kStages, typename K::QueryRing> keys;
};

} // namespace heddle
