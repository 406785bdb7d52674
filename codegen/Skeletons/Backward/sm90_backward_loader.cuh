// The producing warp: K and V of the item once, then for each query tile Q, d_out and what consumers must know of the
// rows. All lanes walk the tiles together; lane 0 copies.
#pragma once

namespace heddle {

class Loader {
public:
  DEV Loader(const KernelParams &p, const KeyItem &item)
      : p(p), item(item), lane(threadIdx.x % 32), queries(1), outs(1) {}

  DEV void run() {
    sendKeys();
    const int32_t group = p.heads / p.kvHeads;
#pragma unroll 1
    for (int32_t head = item.firstHead; head < item.firstHead + group; ++head) {
      const PatternContext context = makeContext(p, item.batch, head);
      QueryTileWalk walk(context, item);
      QueryTileHeader tile;
#pragma unroll 1
      while (walk.next(tile))
        send(walk, tile);
    }
    ptx::waitParity(kQueryEmpty + 8 * queries.slot(), queries.parity());
    if (lane == 0) {
      QueryTileHeader{-1, 0, 0}.write(queries.slot());
      ptx::arrive(kQueryFull + 8 * queries.slot());
    }
  }

private:
  struct RowClass {
    int32_t map, number, residue; // of maps; row number in its class
  };

  static constexpr int kLaneRows = kBlockM / 32;

  DEV void sendKeys() const {
    if (lane != 0)
      return;
    const int32_t number = item.firstKey / item.keyRate, residue = item.firstKey - number * item.keyRate;
    const int32_t map = mapOfClass(keyRateSlot(item.keyRate), item.keyRate, residue, p.seqlenK);
    ptx::arriveExpecting(kKeysFull, kKeyTileBytes);
    copyColumns<KernelTraits::kHeadDim, kBlockN>(kKeyTile, kKeysFull, RowClass{kKeyMaps + map, number, residue},
                                                 item.kvHead);
    ptx::arriveExpecting(kValuesFull, kValueTileBytes);
    copyColumns<KernelTraits::kValueDim, kBlockN>(kValueTile, kValuesFull, RowClass{kValueMaps + map, number, residue},
                                                  item.kvHead);
  }

  DEV void send(const QueryTileWalk &walk, const QueryTileHeader &tile) {
    float lse[kLaneRows], delta[kLaneRows];
    loadStatistics(tile, walk.queryRate(), lse, delta);
    const int32_t map = mapOfClass(queryRateSlot(walk.queryRate()), walk.queryRate(), walk.residueOfRows(), p.seqlenQ);
    ptx::waitParity(kQueryEmpty + 8 * queries.slot(), queries.parity());
    storeStatistics(lse, delta);
    __syncwarp();
    if (lane == 0) {
      tile.write(queries.slot());
      const uint32_t full = kQueryFull + 8 * queries.slot();
      ptx::arriveExpecting(full, kQueryTileBytes);
      copyColumns<KernelTraits::kHeadDim, kBlockM>(kQueryTile + queries.slot() * kQueryTileBytes, full,
                                                   RowClass{kQueryMaps + map, walk.rowNumber(), walk.residueOfRows()},
                                                   tile.head);
    }
    ptx::waitParity(kOutEmpty + 8 * outs.slot(), outs.parity());
    if (lane == 0) {
      const uint32_t full = kOutFull + 8 * outs.slot();
      ptx::arriveExpecting(full, kOutTileBytes);
      copyColumns<KernelTraits::kValueDim, kBlockM>(kOutTile + outs.slot() * kOutTileBytes, full,
                                                    RowClass{kOutMaps + map, walk.rowNumber(), walk.residueOfRows()},
                                                    tile.head);
    }
    queries.next();
    outs.next();
  }

  // Rows that do not exist, and rows that keep nothing, have weights of zero: their lse is infinite here.
  DEV void loadStatistics(const QueryTileHeader &tile, int32_t rate, float (&lse)[kLaneRows],
                          float (&delta)[kLaneRows]) const {
    const int64_t first = (static_cast<int64_t>(item.batch) * p.heads + tile.head) * p.seqlenQ;
#pragma unroll
    for (int i = 0; i < kLaneRows; ++i) {
      const int32_t row = tile.firstRow + rate * (i * 32 + lane);
      const bool exists = row < p.seqlenQ;
      const float natural = exists ? p.lse[first + row] : -INFINITY;
      lse[i] = natural == -INFINITY ? INFINITY : natural * kLog2OfE;
      delta[i] = exists ? p.delta[first + row] : 0.f;
    }
  }

  DEV void storeStatistics(const float (&lse)[kLaneRows], const float (&delta)[kLaneRows]) const {
    const uint32_t to = kStatistics + queries.slot() * kStatisticsBytes;
#pragma unroll
    for (int i = 0; i < kLaneRows; ++i) {
      ptx::storeShared4(to + (i * 32 + lane) * 4, __float_as_int(lse[i]));
      ptx::storeShared4(to + (kBlockM + i * 32 + lane) * 4, __float_as_int(delta[i]));
    }
  }

  template <int Dim, int Rows>
  DEV void copyColumns(uint32_t to, uint32_t full, const RowClass &rows, int32_t head) const {
#pragma unroll
    for (int column = 0; column < kColumns<Dim>; ++column)
      ptx::copyBox(to + column * Rows * kColumnRowBytes, &p.maps[rows.map], full, column * kColumnElements, rows.number,
                   rows.residue, head, item.batch);
  }

  const KernelParams &p;
  const KeyItem &item;
  int32_t lane;
  RingCursor<kStages> queries, outs;
};

} // namespace heddle
