// d_q by a walk of its own, with neither sums in memory nor an order of additions: a consumer warpgroup has 64 queries
// and walks the key tiles that they visit. Scores have queries in rows, so that dS is the register operand of d_q += dS
// K.
// Shared memory is that of the walk over key tiles with the roles exchanged: Q and d_out of the item lie in the places
// of K and V, the rings hold K and V in the places of Q and d_out.
#pragma once

#include "Backward/query_rows.cuh"
#include "Backward/sm90_backward_loader.cuh"
#include "Backward/sm90_backward_products.cuh"
#include "Ptx/warp.cuh"

namespace heddle {

// Warps that read a tile: the two consumers of wide heads share rows, and take tiles in turn.
template <class K> constexpr int kReadersOfKeys = K::kIsWide ? kWarpsOfConsumer : K::kConsumerWarps;

// The producing warp: Q and d_out of the item once, then K and V of each tile.
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
    ptx::arriveExpecting(K::kKeysFull, K::kKeyTileBytes);
    copyColumns<K, K::kHeadDim, K::kBlockN>(p, K::kKeyTile, K::kKeysFull,
                                            {Maps::kQueryMaps + map, number, residue, item.head, item.batch});
    ptx::arriveExpecting(K::kValuesFull, K::kValueTileBytes);
    copyColumns<K, K::kValueDim, K::kBlockN>(p, K::kValueTile, K::kValuesFull,
                                             {Maps::kOutMaps + map, number, residue, item.head, item.batch});
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
    ptx::arriveExpecting(full, K::kQueryTileBytes);
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

// The two rows of a lane of an item, and what of them does not depend on what is summed.
template <class K> class QueryRows {
  using Params = ParamsOf<K>;
  using Pattern = typename K::Pattern;
  using QueryTileHeader = heddle::QueryTileHeader<K>;

public:
  DEV QueryRows(const Params &p, const QueryItem<K> &item, int32_t consumer) : p(p), item(item), consumer(consumer) {}

  DEV int32_t row(int half) const { return item.first + item.rate * (consumer * kConsumerRows + laneRow() + half * 8); }
  DEV uint32_t own(uint32_t tile) const { return tile + consumer * kConsumerRows * kColumnRowBytes; }

  DEV void readLse() {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      lse[half] = statistic(p.lse, 0, K::kQueryRates[0], half);
  }

  // What an array of row_statistics.cuh has for a row.
  DEV float statistic(const float *from, int32_t set, int32_t rate, int half) const {
    return from[place(set, rate, half)];
  }
  DEV int64_t place(int32_t set, int32_t rate, int half) const { return placeOfRow(p, item, row(half), set, rate); }

  DEV void makeWeights(ScoreFactors<K, K::kQueryTiles> &factors, typename K::Scores &scores,
                       const QueryTileHeader &tile) const {
    const QueryPlace<K> place(p, item, tile, row(0));
    makeRowWeights(
        factors, scores, [&]() -> const QueryPlace<K> & { return place; }, tile.isMasked(), p.scaleLog2, lse);
  }

private:
  const Params &p;
  const QueryItem<K> &item;
  int32_t consumer;
  float lse[2];
};

template <class K> class QueryConsumer {
  using Params = ParamsOf<K>;
  using Pattern = typename K::Pattern;
  using QueryTileHeader = heddle::QueryTileHeader<K>;

public:
  static constexpr bool kHasTeams = true;

  DEV QueryConsumer(const Params &p, const QueryItem<K> &item, int32_t consumer)
      : p(p), item(item), turn(consumer), rows(p, item, K::kIsWide ? 0 : consumer), keys(kReads) {}

  DEV void run(const CtaTeamShare<K> &share) {
    clearSums(queryGradient);
    if (K::kIsWide && turn != 0)
      keys.next();
    rows.readLse();
    readDelta(0);
    ptx::waitParity(K::kKeysFull, 0);
    ptx::waitParity(K::kValuesFull, 0);
    walkTiles();
    ptx::waitMma<0>();
    ptx::pin(queryGradient);
    if constexpr (K::kIsWide) {
      joinSums();
      if (turn != 0)
        return;
    }
    if (share.isAlone() || joinTeam(share))
      storeGradient();
  }

private:
  // True: the sums are those of all blocks of the team.
  DEV bool joinTeam(const CtaTeamShare<K> &share) {
    const CtaTeamSums<K, K::kHeadDim / 8> sums(p, share, pairsOf<QueryItem<K>>(p));
    sums.leave(queryGradient, 0);
    if (!sums.isLast())
      return false;
    sums.collect(queryGradient, 0);
    return true;
  }

  DEV void storeGradient() const {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      storeGradientRow<K, K::kAddsToQueries>(p.queryGradient, p.queryGradientStride,
                                             {item.batch, rows.row(half), item.head, rows.row(half) <= item.last, half},
                                             queryGradient, p.scaleLog2 * kLogOf2);
  }

  DEV void walkTiles() {
    bool hasPrevious = false;
#pragma unroll 1
    for (;;) {
      const QueryTileHeader tile = QueryTileHeader::await(keys);
      if (tile.isEnd())
        return;
      addTile(tile, hasPrevious);
      hasPrevious = true;
      keys.next();
      if constexpr (K::kIsWide)
        keys.next();
    }
  }

  // Sums of the second consumer reach the first by way of the rings, which nobody reads any more.
  DEV void joinSums() {
    constexpr uint32_t kPieceStep = kWarpgroupThreads * kPieceBytes;
    static_assert(K::kHeadDim / 8 * kPieceStep <= K::kStages * K::kQueryTileBytes, "sums fit the ring");
    const uint32_t place = K::kQueryTile + threadIdx.x % kWarpgroupThreads * kPieceBytes;
    ptx::syncNamed(kWalkEnded, K::kConsumerThreads);
    if (turn != 0) {
#pragma unroll
      for (int n = 0; n < K::kHeadDim / 8; ++n)
        ptx::storeShared16(place + n * kPieceStep, queryGradient[n][0], queryGradient[n][1], queryGradient[n][2],
                           queryGradient[n][3]);
    }
    ptx::syncNamed(kWalkEnded, K::kConsumerThreads);
    if (turn == 0) {
#pragma unroll
      for (int n = 0; n < K::kHeadDim / 8; ++n) {
        int32_t others[4];
        ptx::loadShared16(place + n * kPieceStep, others);
#pragma unroll
        for (int slot = 0; slot < 4; ++slot)
          queryGradient[n][slot] += __int_as_float(others[slot]);
      }
    }
  }

  // The product of a tile runs under the scores of the next one.
  DEV void addTile(const QueryTileHeader &tile, bool hasPrevious) {
    typename K::Scores scores, products;
    ScoreFactors<K, K::kQueryTiles> factors;
    keys.of(typename K::OutRing()).waitFull();
    ptx::forget(scores);
    ptx::forget(products);
    ptx::fenceMma();
    startScores<K, K::kHeadSteps>(scores, rows.own(K::kKeyTile), keyAddress());
    ptx::commitMma();
    startScores<K, K::kValueSteps>(products, rows.own(K::kValueTile), K::kOutTile + keys.slot() * K::kOutTileBytes);
    ptx::commitMma();
    ptx::waitMma<1>();
    ptx::pin(scores);
    ptx::pin(queryGradient);
    if (hasPrevious && !K::kIsWide)
      keys.releasePrevious();
    if (Pattern::kIsDetached)
      readDelta(tile.branch());
    rows.makeWeights(factors, scores, tile);
    ptx::waitMma<0>();
    ptx::pin(products);
    keys.of(typename K::OutRing()).release();
    typename K::ScoreOperand gradients;
    makeRowGradients(gradients, products, scores, factors, delta);
    ptx::fenceMma();
    startSum<K>(queryGradient, gradients, keyAddress());
    ptx::commitMma();
    if constexpr (K::kIsWide) { // the tile of its next turn may take the same slot
      ptx::waitMma<0>();
      ptx::pin(queryGradient);
      keys.release();
    }
  }

  DEV void readDelta(int32_t branch) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      delta[half] = Pattern::kIsDetached
                        ? rows.statistic(p.delta, branch, Pattern::Transposed::queryRate(item.variant, branch), half)
                        : rows.statistic(p.delta, 0, K::kQueryRates[0], half);
  }

  DEV uint32_t keyAddress() const { return K::kQueryTile + keys.slot() * K::kQueryTileBytes; }

  const Params &p;
  const QueryItem<K> &item;
  int32_t turn; // of wide heads: the first tile that it takes
  QueryRows<K> rows;
  Pipeline<K::kStages, typename K::QueryRing> keys;
  float delta[2]; // of the rows
  typename K::KeyGradient queryGradient;
};

} // namespace heddle
