// d_q by a walk of its own, with neither sums in memory nor an order of additions: a consumer warpgroup has 64 queries
// and walks the key tiles that they visit. Scores have queries in rows, so that dS is the register operand of d_q += dS
// K.
// Shared memory is that of the walk over key tiles with the roles exchanged: Q and d_out of the item lie in the places
// of K and V, the rings hold K and V in the places of Q and d_out.
#pragma once

#include "Backward/query_rows.cuh"
#include "Backward/sm90_key_loader.cuh"
#include "Backward/sm90_raised_rows.cuh"
#include "Ptx/warp.cuh"

namespace heddle {

// The two rows of a lane of an item, and what of them does not depend on what is summed.
template <class K> class QueryRows {
  using Params = ParamsOf<K>;
  using Pattern = typename K::Pattern;
  using QueryTileHeader = heddle::QueryTileHeader<K>;

public:
  DEV QueryRows(const Params &p, const QueryItem<K> &item, int32_t consumer) : p(p), item(item), consumer(consumer) {}

  DEV int32_t row(int half) const { return item.first + item.rate * (consumer * kConsumerRows + laneRow() + half * 8); }
  DEV uint32_t own(uint32_t tile) const { return tile + consumer * kConsumerRows * kColumnRowBytes; }

  DEV void readStatistics() {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      lse[half] = statistic(p.lse, 0, K::kQueryRates[0], half);
      if constexpr (kIsRaised<K>) {
        factors.first[half] = statistic(p.queryFactors, 0, K::kQueryRates[0], half);
        factors.second[half] = statistic(p.outFactors, 0, K::kQueryRates[0], half);
      }
    }
  }

  // Products of raised rows as they are; of the others they are so. `slot`: of the key tile.
  DEV void takeScoresBack(typename K::Scores &scores, int32_t slot) const {
    if constexpr (kIsRaised<K>)
      takeBack(scores, keyFactors(slot), factors.first);
  }
  DEV void takeProductsBack(typename K::Scores &products, int32_t slot) const {
    if constexpr (kIsRaised<K>)
      takeBack(products, valueFactors(slot), factors.second);
  }
  DEV KeyFactorColumns keyFactors(int32_t slot) const {
    return {K::kStatistics + slot * K::kStatisticsBytes + threadIdx.x % 4 * (2 * kKeyFactorBytes)};
  }
  DEV KeyFactorColumns valueFactors(int32_t slot) const { return {keyFactors(slot).from + 4}; }

  // What an array of row_statistics.cuh has for a row.
  DEV float statistic(const float *from, int32_t set, int32_t rate, int half) const {
    return from[place(set, rate, half)];
  }
  DEV int64_t place(int32_t set, int32_t rate, int half) const { return placeOfRow(p, item, row(half), set, rate); }

  DEV void makeWeights(ScoreFactors<K, K::kQueryTiles> &factors, typename K::Scores &scores,
                       const QueryTileHeader &tile) const {
    const auto placeOf = [&] { return QueryPlace<K>(p, item, tile, row(0)); };
    if constexpr (kIsRaised<K>) {
      makeRowWeights(factors, scores, placeOf, tile.isMasked(), p.scaleLog2, lse);
    } else {
      const QueryPlace<K> place = placeOf();
      makeRowWeights(
          factors, scores, [&]() -> const QueryPlace<K> & { return place; }, tile.isMasked(), p.scaleLog2, lse);
    }
  }

private:
  const Params &p;
  const QueryItem<K> &item;
  int32_t consumer;
  float lse[2];
  RowFactors factors; // of raised rows
};

template <class K> class QueryConsumer {
  using Params = ParamsOf<K>;
  using Pattern = typename K::Pattern;
  using QueryTileHeader = heddle::QueryTileHeader<K>;

public:
  static constexpr bool kHasTeams = true;

  DEV QueryConsumer(const Params &p, const QueryItem<K> &item, int32_t consumer)
      : p(p), item(item), rows(p, item, K::kIsWide ? 0 : consumer), keys(kReads) {}

  DEV void run(const CtaTeamShare<K> &share) {
    clearSums(queryGradient);
    if (K::kIsWide && !takesFirst())
      keys.next();
    rows.readStatistics();
    readDelta(0);
    ptx::waitParity(K::kKeysFull, 0);
    ptx::waitParity(K::kValuesFull, 0);
    walkTiles();
    ptx::waitMma<0>();
    ptx::pin(queryGradient);
    if constexpr (K::kIsWide) {
      joinSums();
      if (!takesFirst())
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
    if constexpr (kIsRaised<K> && !K::kIsWide)
      return walkRaisedTiles();
    bool hasPrevious = false;
#pragma unroll 1
    for (;;) {
      const QueryTileHeader tile = QueryTileHeader::await(keys);
      if (tile.isEnd())
        return;
      if constexpr (kIsRaised<K>)
        addRaisedTile(tile);
      else
        addTile(tile, hasPrevious);
      hasPrevious = true;
      keys.next();
      if constexpr (K::kIsWide)
        keys.next();
    }
  }

  // Of wide heads the first consumer, which takes the first tile. Asked anew: a number would be spilled over all tiles. Of one
  // lane: slots that depend on it stay in uniform registers, as operands of mma want them.
  DEV static bool takesFirst() { return ptx::valueOfLane(ptx::rereadThreadIndex(), 0) < kWarpgroupThreads; }

  // Sums of the second consumer reach the first by way of the rings, which nobody reads any more.
  DEV void joinSums() {
    constexpr uint32_t kPieceStep = kWarpgroupThreads * kPieceBytes;
    static_assert(K::kHeadDim / 8 * kPieceStep <= K::kStages * K::kQueryTileBytes, "sums fit the ring");
    const uint32_t place = K::kQueryTile + threadIdx.x % kWarpgroupThreads * kPieceBytes;
    ptx::syncNamed(kWalkEnded, K::kConsumerThreads);
    if (!takesFirst()) {
#pragma unroll
      for (int n = 0; n < K::kHeadDim / 8; ++n)
        ptx::storeShared16(place + n * kPieceStep, queryGradient[n][0], queryGradient[n][1], queryGradient[n][2],
                           queryGradient[n][3]);
    }
    ptx::syncNamed(kWalkEnded, K::kConsumerThreads);
    if (takesFirst()) {
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
    beginScores(scores, products);
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

  // The consumers of wide heads hide each other's weights. dP, in two sums, starts when registers hold no masks any more.
  DEV void addRaisedTile(const QueryTileHeader &tile) {
    typename K::Scores scores, products, rest;
    typename K::KeyGradient sum;
    beginScores(scores);
    ptx::waitMma<0>();
    makeRaisedWeights(scores, tile);
    keys.of(typename K::OutRing()).waitFull();
    startProducts<K>(products, rest, rows.own(K::kValueTile), outAddress());
    ptx::waitMma<0>();
    joinProducts<K>(products, rest);
    const RaisedOperand<K> gradients = raisedGradients(products, scores);
    startRaisedSum(sum, gradients, keyAddress());
    ptx::waitMma<0>();
    ptx::pin(sum);
    addRaised(queryGradient, sum, gradients.ofSums);
    keys.release();
  }

  // The sum of a tile runs under the scores of the next one, which is waited for before (sm90_raised_consumer.cuh).
  DEV void walkRaisedTiles() {
    typename K::Scores scores, products;
    typename K::KeyGradient sum;
    float ofSum[2];
    QueryTileHeader tile = QueryTileHeader::await(keys);
    if (tile.isEnd())
      return;
    keys.of(typename K::OutRing()).waitFull();
    beginScores(scores, products);
#pragma unroll 1
    for (;;) {
      ptx::waitMma<1>();
      makeRaisedWeights(scores, tile);
      ptx::waitMma<0>();
      ptx::pin(products);
      const RaisedOperand<K> gradients = raisedGradients(products, scores);
      ofSum[0] = gradients.ofSums[0];
      ofSum[1] = gradients.ofSums[1];
      const uint32_t rowsOfTile = keyAddress();
      keys.next();
      tile = QueryTileHeader::await(keys);
      if (tile.isEnd()) {
        startRaisedSum(sum, gradients, rowsOfTile);
        break;
      }
      keys.of(typename K::OutRing()).waitFull();
      startRaisedSum(sum, gradients, rowsOfTile);
      beginScores(scores, products);
      ptx::waitMma<2>();
      ptx::pin(sum);
      addRaised(queryGradient, sum, ofSum);
      keys.releasePrevious();
    }
    ptx::waitMma<0>();
    ptx::pin(sum);
    addRaised(queryGradient, sum, ofSum);
  }

  // P, times the derivatives of scores, in the place of S.
  DEV void makeRaisedWeights(typename K::Scores &scores, const QueryTileHeader &tile) {
    ScoreFactors<K, K::kQueryTiles> factors;
    ptx::pin(scores);
    rows.takeScoresBack(scores, keys.slot());
    if (Pattern::kIsDetached)
      readDelta(tile.branch());
    rows.makeWeights(factors, scores, tile);
    applyFactors(scores, factors);
  }

  // dS of dP and these.
  DEV RaisedOperand<K> raisedGradients(typename K::Scores &products, const typename K::Scores &weights) {
    rows.takeProductsBack(products, keys.slot());
    keys.of(typename K::OutRing()).release();
    weighProducts(products, weights, delta);
    return RaisedOperand<K>(products, rows.keyFactors(keys.slot()));
  }

  // S and dP, each a group.
  DEV void beginScores(typename K::Scores &scores, typename K::Scores &products) const {
    ptx::forget(products);
    beginScores(scores);
    startScores<K, K::kValueSteps>(products, rows.own(K::kValueTile), outAddress());
    ptx::commitMma();
  }
  DEV void beginScores(typename K::Scores &scores) const {
    ptx::forget(scores);
    ptx::fenceMma();
    startScores<K, K::kHeadSteps>(scores, rows.own(K::kKeyTile), keyAddress());
    ptx::commitMma();
  }

  DEV void readDelta(int32_t branch) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      delta[half] = Pattern::kIsDetached
                        ? rows.statistic(p.delta, branch, Pattern::Transposed::queryRate(item.variant, branch), half)
                        : rows.statistic(p.delta, 0, K::kQueryRates[0], half);
  }

  DEV uint32_t keyAddress() const { return K::kQueryTile + keys.slot() * K::kQueryTileBytes; }
  DEV uint32_t outAddress() const { return K::kOutTile + keys.slot() * K::kOutTileBytes; }

  const Params &p;
  const QueryItem<K> &item;
  QueryRows<K> rows;
  Pipeline<K::kStages, typename K::QueryRing> keys;
  float delta[2]; // of the rows
  typename K::KeyGradient queryGradient;
};

} // namespace heddle
