// A warpgroup of its own for the query gradient: dQ = dS K of each step, a part after the other, added to its sums
// straight from registers. Nobody waits for the additions but the warpgroup itself.
#pragma once

#include "Backward/sm90_backward_products.cuh"
#include "Backward/sm90_dq_order.cuh"
#include "Backward/tile_places.cuh"

namespace heddle {

class QueryReducer {
public:
  DEV QueryReducer(const KernelParams &p, const KeyItem &item) : p(p), item(item), queries(0), scores(0) {}

  DEV void run() {
    ptx::waitParity(kKeysFull, 0);
#pragma unroll 1
    for (;;) {
      ptx::waitParity(QueryRing::full(queries.slot()), queries.parity());
      const QueryTileHeader tile = QueryTileHeader::read(queries.slot());
      if (tile.isEnd())
        break;
      release(QueryRing::empty(queries.slot()));
      queries.next();
      reduce(tile);
      scores.next();
    }
    turns.end();
  }

private:
  DEV void reduce(const QueryTileHeader &tile) {
    const int32_t rate = TilePlace(p, item, tile, item.first).queryRate;
    bool hasSums = false;
    ptx::waitParity(ScoreRing::full(scores.slot()), scores.parity());
#pragma unroll
    for (int part = 0; part < kConsumers; ++part) {
      QueryGradient sums;
      ptx::forget(sums);
      ptx::fenceMma();
      startQueryGradient(sums, scoreOperand(scores.slot(), part), keyColumns(splitOf(part)));
      ptx::commitMma();
      if (part == 0)
        hasSums = turns.await();
      ptx::waitMma<0>();
      ptx::pin(sums);
      if (part + 1 == kConsumers)
        release(ScoreRing::empty(scores.slot()));
      const SumRows rows = sumRowsOf(p, item, tile, rate, part);
      if (hasSums)
        addQueryGradient(p.sums, sums, rows);
      else
        storeQueryGradient(p.sums, sums, rows);
    }
    turns.leave();
  }

  DEV static void release(uint32_t barrier) {
    if (isLastLane())
      ptx::arrive(barrier);
  }

  const KernelParams &p;
  const KeyItem &item;
  RingCursor<kStages> queries;
  RingCursor<kScoreStages> scores;
  OrderOf<kHasOrder>::Sums turns;
};

} // namespace heddle
