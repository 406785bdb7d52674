// A warpgroup of its own for the query gradient: dQ = dS K of each step, a part after the other, added to its sums
// straight from registers. Nobody waits for the additions but the warpgroup itself.
#pragma once

#include "Backward/sm90_backward_products.cuh"
#include "Backward/sm90_dq_order.cuh"
#include "Backward/tile_places.cuh"

namespace heddle {

template <class K> class QueryReducer {
  using Params = ParamsOf<K>;
  using QueryTileHeader = heddle::QueryTileHeader<K>;

public:
  DEV QueryReducer(const Params &p, const KeyItem<K> &item) : p(p), item(item), queries(0), scores(0) {}

  DEV void run() {
    ptx::waitParity(K::kKeysFull, 0);
#pragma unroll 1
    for (;;) {
      ptx::waitParity(K::QueryRing::full(queries.slot()), queries.parity());
      const QueryTileHeader tile = QueryTileHeader::read(queries.slot());
      if (tile.isEnd())
        break;
      release(K::QueryRing::empty(queries.slot()));
      queries.next();
      reduce(tile);
      scores.next();
    }
    turns.end();
  }

private:
  DEV void reduce(const QueryTileHeader &tile) {
    const int32_t rate = TilePlace<K>(p, item, tile, item.first).queryRate;
    bool hasSums = false;
    ptx::waitParity(K::ScoreRing::full(scores.slot()), scores.parity());
#pragma unroll
    for (int part = 0; part < K::kConsumers; ++part) {
      QueryGradient<K> sums;
      ptx::forget(sums);
      ptx::fenceMma();
      startQueryGradient<K>(sums, scoreOperand<K>(scores.slot(), part), keyColumns<K>(splitOf<K>(part)));
      ptx::commitMma();
      if (part == 0)
        hasSums = turns.await();
      ptx::waitMma<0>();
      ptx::pin(sums);
      if (part + 1 == K::kConsumers)
        release(K::ScoreRing::empty(scores.slot()));
      const SumRows rows = sumRowsOf(p, item, tile, rate, part);
      if (hasSums)
        addQueryGradient<K>(p.sums, sums, rows);
      else
        storeQueryGradient<K>(p.sums, sums, rows);
    }
    turns.leave();
  }

  DEV static void release(uint32_t barrier) {
    if (isLastLane())
      ptx::arrive(barrier);
  }

  const Params &p;
  const KeyItem<K> &item;
  RingCursor<K::kStages> queries;
  RingCursor<kScoreStages> scores;
  typename OrderOf<K>::Sums turns;
};

} // namespace heddle
