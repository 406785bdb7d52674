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

template <int Dim, int Rows>
DEV void copyColumns(const KernelParams &p, uint32_t to, uint32_t full, const RowBox &box) {
#pragma unroll
  for (int column = 0; column < kColumns<Dim>; ++column)
    ptx::copyBox(to + column * Rows * kColumnRowBytes, &p.maps[box.map], full, column * kColumnElements, box.number,
                 box.residue, box.head, box.batch);
}

class Loader {
public:
  DEV Loader(const KernelParams &p, const KeyItem &item)
      : p(p), item(item), lane(threadIdx.x % 32), queries(kFills), outs(kFills) {}

  DEV void run(const CtaTeamShare &share) {
    sendKeys();
    Turns turns(share);
    const int32_t group = p.heads / p.kvHeads;
#pragma unroll 1
    for (int32_t head = item.head; head < item.head + group; head += ColumnWalk::headsAtOnce(group)) {
      const PatternContext context = makeContext(p, item.batch, head);
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
    const int32_t map = mapOfClass(rateSlot<KeyRates>(item.rate), item.rate, residue, p.seqlenK);
    ptx::arriveExpecting(kKeysFull, kKeyTileBytes);
    copyColumns<KernelTraits::kHeadDim, kBlockN>(p, kKeyTile, kKeysFull,
                                                 {kKeyMaps + map, number, residue, item.kvHead, item.batch});
    ptx::arriveExpecting(kValuesFull, kValueTileBytes);
    copyColumns<KernelTraits::kValueDim, kBlockN>(p, kValueTile, kValuesFull,
                                                  {kValueMaps + map, number, residue, item.kvHead, item.batch});
  }

  DEV void send(const ColumnWalk &walk, const QueryTileHeader &tile) {
    const ClassTile place = walk.place();
    const int32_t slot = rateSlot<QueryRates>(place.rate), map = mapOfClass(slot, place.rate, place.residue, p.seqlenQ);
    const int32_t firstNumber = place.number * kBlockM;
    queries.acquire();
    if (lane == 0) {
      tile.write(queries.slot());
      const uint32_t full = queries.full();
      ptx::arriveExpecting(full, kQueryTileBytes + kStatisticsBytes);
      copyColumns<KernelTraits::kHeadDim, kBlockM>(
          p, kQueryTile + queries.slot() * kQueryTileBytes, full,
          {kQueryMaps + map, firstNumber, place.residue, tile.head, item.batch});
      const uint32_t statistics = kStatistics + queries.slot() * kStatisticsBytes;
      copyStatistics(statistics, kLseMap, slot, tile, place);
      copyStatistics(statistics + kStatisticsBytes / 2, kDeltaMap, Pattern::kIsDetached ? tile.branch() : slot, tile,
                     place);
    }
    outs.acquire();
    if (lane == 0) {
      const uint32_t full = outs.full();
      ptx::arriveExpecting(full, kOutTileBytes);
      copyColumns<KernelTraits::kValueDim, kBlockM>(
          p, kOutTile + outs.slot() * kOutTileBytes, full,
          {kOutMaps + map, firstNumber, place.residue, tile.head, item.batch});
    }
    queries.next();
    outs.next();
  }

  DEV void copyStatistics(uint32_t to, int32_t map, int32_t set, const QueryTileHeader &tile,
                          const ClassTile &place) const {
    const int32_t head = item.batch * p.heads + tile.head;
    ptx::copyRow(to, &p.maps[map], queries.full(), statisticsTile(p.batch * p.heads, set, head, p.seqlenQ, place));
  }

  const KernelParams &p;
  const KeyItem &item;
  int32_t lane;
  Pipeline<kStages, QueryRing> queries;
  Pipeline<kStages, OutRing> outs;
};

} // namespace heddle
