// The producing warp: K and V of the item once, then for each query tile Q, d_out and what consumers must know of the
// rows. All lanes walk the tiles together; lane 0 copies.
#pragma once

#include "Backward/sm90_cta_teams.cuh"
#include "Backward/sm90_dq_order.cuh"
#include "Ptx/tensor_copy.cuh"

namespace heddle {

// Rows of a tensor by one of its maps: those from `number` on of a class.
struct RowBox {
  int32_t map, number, residue, head, batch;
};

template <class K, int Dim, int Rows>
DEV void copyColumns(const ParamsOf<K> &p, uint32_t to, uint32_t full, const RowBox &box) {
#pragma unroll
  for (int column = 0; column < K::kParts * columnsOf(Dim, K::kElementBytes); ++column)
    ptx::copyBox(to + column * Rows * kColumnRowBytes, &p.maps[box.map], full,
                 column * (kColumnRowBytes / K::kElementBytes), box.number, box.residue, box.head, box.batch);
}

// The rows of an item, which stay: of k or q, and by another map of v or d_out.
template <class K> DEV void sendRowsOfItem(const ParamsOf<K> &p, RowBox box, int32_t mapOfValues) {
  ptx::arriveExpecting(K::kKeysFull, K::kKeyTileBytes);
  copyColumns<K, K::kHeadDim, K::kBlockN>(p, K::kKeyTile, K::kKeysFull, box);
  box.map = mapOfValues;
  ptx::arriveExpecting(K::kValuesFull, K::kValueTileBytes);
  copyColumns<K, K::kValueDim, K::kBlockN>(p, K::kValueTile, K::kValuesFull, box);
}

template <class K> class Loader {
  using Params = ParamsOf<K>;
  using Maps = typename K::KeyWalkMaps;
  using ColumnWalk = typename OrderOf<K>::Walk;
  using QueryTileHeader = heddle::QueryTileHeader<K>;

public:
  DEV Loader(const Params &p, const KeyItem<K> &item)
      : p(p), item(item), lane(threadIdx.x % 32), queries(kFills), outs(kFills) {}

  DEV void run(const CtaTeamShare<K> &share) {
    sendKeys();
    Turns<K> turns(share);
    const int32_t group = p.heads / p.kvHeads;
#pragma unroll 1
    for (int32_t head = item.head; head < item.head + group; head += ColumnWalk::headsAtOnce(group)) {
      const Context<K> context = makeContext(p, item.batch, head);
      ColumnWalk walk(context, item, group);
      QueryTileHeader tile;
#pragma unroll 1
      while (walk.next(tile))
        if (turns.isOwn())
          send(walk, tile);
    }
    queries.acquire();
    if (lane == 0) {
      QueryTileHeader{{-1, 0, 0}}.write(queries.slot());
      ptx::arrive(queries.full());
    }
  }

private:
  DEV void sendKeys() const {
    if (lane != 0)
      return;
    const int32_t number = item.first / item.rate, residue = item.first - number * item.rate;
    const int32_t map = mapOfClass<K>(rateSlot<KeyRates<K>>(item.rate), item.rate, residue, p.seqlenK);
    sendRowsOfItem<K>(p, {Maps::kKeyMaps + map, number, residue, item.kvHead, item.batch}, Maps::kValueMaps + map);
  }

  DEV void send(const ColumnWalk &walk, const QueryTileHeader &tile) {
    const ClassTile place = walk.place();
    const int32_t slot = rateSlot<QueryRates<K>>(place.rate);
    const int32_t map = mapOfClass<K>(slot, place.rate, place.residue, p.seqlenQ);
    const int32_t firstNumber = place.number * K::kBlockM;
    queries.acquire();
    if (lane == 0) {
      tile.write(queries.slot());
      const uint32_t full = queries.full();
      ptx::arriveExpecting(full, K::kQueryTileBytes + K::kStatisticsBytes);
      copyColumns<K, K::kHeadDim, K::kBlockM>(
          p, K::kQueryTile + queries.slot() * K::kQueryTileBytes, full,
          {Maps::kQueryMaps + map, firstNumber, place.residue, tile.head, item.batch});
      const uint32_t statistics = K::kStatistics + queries.slot() * K::kStatisticsBytes;
      copyStatistics(statistics, K::kLseMap, slot, tile, place);
      copyStatistics(statistics + K::kStatisticBytes, K::kDeltaMap, K::Pattern::kIsDetached ? tile.branch() : slot,
                     tile, place);
      if constexpr (kIsRaised<K>) {
        copyStatistics(statistics + 2 * K::kStatisticBytes, K::kQueryFactorMap, slot, tile, place);
        copyStatistics(statistics + 3 * K::kStatisticBytes, K::kOutFactorMap, slot, tile, place);
      }
    }
    outs.acquire();
    if (lane == 0) {
      const uint32_t full = outs.full();
      ptx::arriveExpecting(full, K::kOutTileBytes);
      copyColumns<K, K::kValueDim, K::kBlockM>(
          p, K::kOutTile + outs.slot() * K::kOutTileBytes, full,
          {Maps::kOutMaps + map, firstNumber, place.residue, tile.head, item.batch});
    }
    queries.next();
    outs.next();
  }

  DEV void copyStatistics(uint32_t to, int32_t map, int32_t set, const QueryTileHeader &tile,
                          const ClassTile &place) const {
    const int32_t head = item.batch * p.heads + tile.head;
    ptx::copyRow(to, &p.maps[map], queries.full(), statisticsTile<K>(p.batch * p.heads, set, head, p.seqlenQ, place));
  }

  const Params &p;
  const KeyItem<K> &item;
  int32_t lane;
  Pipeline<K::kStages, typename K::QueryRing> queries;
  Pipeline<K::kStages, typename K::OutRing> outs;
};

} // namespace heddle
