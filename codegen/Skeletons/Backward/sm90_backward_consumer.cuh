// A consumer warpgroup: 64 keys of the item. Scores are transposed, keys in rows and queries in columns, so that the
// weights P and dS are operands of dV += P^T d_out and dK += dS^T Q from registers; dS goes through shared memory to
// dQ = dS K, which the consumers share or a warpgroup of its own makes (sm90_query_reducer.cuh).
#pragma once

#include "Backward/sm90_backward_products.cuh"
#include "Backward/sm90_cta_teams.cuh"
#include "Backward/tile_places.cuh"
#include "Ptx/warp.cuh"
#include "Shared/score_units.cuh"

namespace heddle {

// lse or delta of the queries that a lane's columns are: read where they are used.
struct ColumnStatistics {
  uint32_t from;

  DEV void read(int n, float (&values)[2]) const {
    int32_t words[2];
    ptx::loadShared8(from + n * 32, words);
    values[0] = __int_as_float(words[0]);
    values[1] = __int_as_float(words[1]);
  }
};

// The same statistics read ahead of a wait, where registers hold them.
template <class K> struct EarlyStatistics {
  float values[K::kQueryTiles][2];

  DEV explicit EarlyStatistics(const ColumnStatistics &statistics) {
#pragma unroll
    for (int n = 0; n < K::kQueryTiles; ++n)
      statistics.read(n, values[n]);
  }
  DEV void read(int n, float (&to)[2]) const {
    to[0] = values[n][0];
    to[1] = values[n][1];
  }
};

// P as an operand, and the derivative of the chain of scores.
template <class K> struct Weights {
  typename K::ScoreOperand operand;
  ScoreFactors<K, K::kQueryTiles> factors;
};

template <class K> class Consumer {
protected:
  using Params = ParamsOf<K>;
  using Pattern = typename K::Pattern;
  using Item = KeyItem<K>;
  using Share = CtaTeamShare<K>;
  using Weights = heddle::Weights<K>;
  using QueryTileHeader = heddle::QueryTileHeader<K>;
  using QueryGradient = typename K::QueryGradient;
  using Scores = typename K::Scores;
  using ScoreOperand = typename K::ScoreOperand;

private:
  static constexpr bool kMakesWeightsUnderProducts = K::kBlockM == kConsumerRows && !K::kHasReducer;

public:
  DEV Consumer(const Params &p, const Item &item, int32_t consumer)
      : p(p), item(item), consumer(consumer), queries(kReads), published(kReads), arguments(p, item.batch, item.head) {}

  DEV void run(const Share &share) {
    clearSums(keyGradient);
    clearSums(valueGradient);
    ptx::waitParity(K::kKeysFull, 0);
    const QueryTileHeader tile = awaitQueries();
    ptx::waitParity(K::kValuesFull, 0);
    if (!tile.isEnd()) {
      if constexpr (K::kWalksQueries || K::kHasReducer)
        walkTilesAlone(tile);
      else
        walkTiles(tile);
    }
    arguments.leave();
    if (share.isAlone() || joinTeam(share))
      storeGradients();
  }

protected:
  DEV QueryTileHeader awaitQueries() const { return QueryTileHeader::await(queries); }

  // The weights of a tile are made under the query gradient of the one before, which leaves under this tile's value
  // gradient, as do its score gradients. All is waited for before a query gradient starts: with more in flight the
  // registers of a whole step do not suffice, and ptxas serialises the mma.
  DEV void walkTiles(QueryTileHeader tile) {
    Scores scores;
    QueryTileHeader previous = tile;
    bool hasPrevious = false;
    beginScores(scores);
#pragma unroll 1
    for (;;) {
      QueryGradient queryGradient;
      Weights weights;
      ScoreOperand gradients;
      awaitScores();
      ptx::waitMma<0>();
      ptx::pin(scores);
      ptx::pin(keyGradient);
      ptx::pin(valueGradient);
      beginQueryGradient(queryGradient, splitOf<K>(consumer)); // of nothing in the first round, and then not used
      if (hasPrevious)
        releasePrevious();
      makeWeights(weights, scores, tile);
      outs().waitFull();
      ptx::waitMma<0>();
      ptx::pin(queryGradient);
      Scores products;
      beginProducts(products);
      beginValues(weights.operand);
      if (hasPrevious)
        leave(queryGradient, previous, consumer);
      ptx::waitMma<1>();
      ptx::pin(products);
      makeGradients(gradients, products, weights, delta(), tile);
      storeScores(gradients);
      publishScores();
      ptx::fenceMma();
      startSum<K>(keyGradient, gradients, queryAddress());
      ptx::commitMma();
      queries.next();
      previous = tile;
      hasPrevious = true;
      tile = awaitQueries();
      if (tile.isEnd())
        break;
      beginScores(scores);
    }
    lastQueryGradient(previous);
  }

  // Without the query gradient: scores start under the key gradient of the tile before; score gradients are made under
  // the value gradient and, where registers hold both, weights under dP. Beside a reducer all is waited for before the
  // key gradient starts, under which dS becomes visible to it: registers hold no more in flight.
  DEV void walkTilesAlone(QueryTileHeader tile) {
    Scores scores;
    bool hasPrevious = false;
    beginScores(scores);
#pragma unroll 1
    for (;;) {
      Weights weights;
      ScoreOperand gradients;
      Scores products;
      outs().waitFull();
      ptx::waitMma<kMakesWeightsUnderProducts ? 1 : 0>();
      ptx::pin(keyGradient);
      ptx::pin(valueGradient);
      if (hasPrevious)
        releasePrevious();
      if constexpr (kMakesWeightsUnderProducts) {
        beginProducts(products);
        ptx::waitMma<1>();
      }
      ptx::pin(scores);
      makeWeights(weights, scores, tile);
      if constexpr (kMakesWeightsUnderProducts) {
        ptx::waitMma<0>();
        ptx::fenceMma();
      } else {
        beginProducts(products);
      }
      beginValues(weights.operand);
      const EarlyStatistics<K> deltas(delta());
      ptx::waitMma<1>();
      ptx::pin(products);
      makeGradients(gradients, products, weights, deltas, tile);
      if constexpr (K::kHasReducer) {
        ptx::waitMma<0>();
        ptx::pin(keyGradient);
        ptx::pin(valueGradient);
      }
      if constexpr (K::kHasReducer) {
        published.acquire();
        storeScores(gradients);
      }
      ptx::fenceMma();
      startSum<K>(keyGradient, gradients, queryAddress());
      ptx::commitMma();
      if constexpr (K::kHasReducer)
        publishScores();
      queries.next();
      hasPrevious = true;
      tile = awaitQueries();
      if (tile.isEnd())
        break;
      beginScores(scores);
    }
    ptx::waitMma<0>();
    ptx::pin(keyGradient);
    ptx::pin(valueGradient);
  }

  DEV void lastQueryGradient(const QueryTileHeader &tile) {
    QueryGradient queryGradient;
    awaitScores();
    beginQueryGradient(queryGradient, splitOf<K>(consumer));
    ptx::waitMma<0>();
    ptx::pin(queryGradient);
    ptx::pin(keyGradient);
    ptx::pin(valueGradient);
    leave(queryGradient, tile, consumer);
  }

  DEV void beginScores(Scores &scores) const {
    ptx::forget(scores);
    ptx::fenceMma();
    startScores<K, K::kHeadSteps>(scores, ownRows(K::kKeyTile), queryAddress());
    ptx::commitMma();
  }

  // dP in a group of its own.
  DEV void beginProducts(Scores &products) const {
    ptx::fenceMma();
    startScores<K, K::kValueSteps>(products, ownRows(K::kValueTile), outAddress());
    ptx::commitMma();
  }

  DEV void beginValues(const ScoreOperand &weights) {
    startSum<K>(valueGradient, weights, outAddress());
    ptx::commitMma();
  }

  DEV void beginQueryGradient(QueryGradient &sum, int32_t split) const {
    ptx::fenceMma();
    startQueryGradient<K>(sum, scoreOperand<K>(published.before().slot(), consumer), keyColumns<K>(split));
    ptx::commitMma();
  }

  // dS of the tile before, of all consumers.
  DEV void awaitScores() const { published.before().waitFull(); }

  DEV void publishScores() {
    ptx::fenceShared();
    __syncwarp();
    published.publish();
    published.next();
  }

  DEV void releasePrevious() const {
    const int32_t slot = (queries.slot() == 0 ? K::kStages : queries.slot()) - 1;
    release(K::QueryRing::kEmpty + kBarrierStep * slot);
    release(K::OutRing::kEmpty + kBarrierStep * slot);
  }

  // P = 2^(s - lse), 0 where a pair is not kept.
  DEV void weigh(ScoreFactors<K, K::kQueryTiles> &factors, Scores &scores, const QueryTileHeader &tile) const {
    if constexpr (Pattern::kHasScore) {
      const float natural = p.scaleLog2 * kLogOf2;
      packFactors(factors, scores, placeOf(tile), natural);
      applyScores(scores, placeOf(tile), natural);
    }
    if (tile.isMasked())
      maskScores(scores, placeOf(tile));
    const float scale = Pattern::kHasScore ? kLog2OfE : p.scaleLog2;
#pragma unroll
    for (int n = 0; n < K::kQueryTiles; ++n) {
      float ofColumn[2];
      lse().read(n, ofColumn);
#pragma unroll
      for (int slot = 0; slot < 4; ++slot)
        scores[n][slot] = ptx::exp2Approx(fmaf(scores[n][slot], scale, -ofColumn[slot % 2]));
    }
  }

  DEV void makeWeights(Weights &weights, Scores &scores, const QueryTileHeader &tile) const {
    weigh(weights.factors, scores, tile);
    packScores<K>(weights.operand, scores);
    if (mayPassOne<K>(tileStatistics()))
      cutWeights<typename K::Element>(weights.operand);
  }

  // dS = P (dP - delta), times the derivative of the chain of scores. P is rounded, as it is in the value gradient.
  template <class Statistics>
  DEV void makeGradients(ScoreOperand &gradients, Scores &products, const Weights &weights, const Statistics &delta,
                         const QueryTileHeader &tile) {
#pragma unroll
    for (int n = 0; n < K::kQueryTiles; ++n) {
      float ofColumn[2];
      delta.read(n, ofColumn);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float weight[2];
        K::Element::unpack(weights.operand[n / 2][n % 2 * 2 + half], weight[0], weight[1]);
#pragma unroll
        for (int e = 0; e < 2; ++e)
          products[n][2 * half + e] = weight[e] * (products[n][2 * half + e] - ofColumn[e]);
      }
    }
    if constexpr (K::kGradientCount > 0)
      arguments.add(ptx::valueOfLane(tile.head, 0), products, weights.factors, placeOf(tile));
    applyFactors(products, weights.factors);
    packScores<K>(gradients, products);
  }

  // dS, keys in rows, for the query gradient of all consumers.
  DEV void storeScores(const ScoreOperand &operand) const {
    const uint32_t thread = threadIdx.x % kWarpgroupThreads, lane = thread % 32;
    const uint32_t row = consumer * kConsumerRows + thread / 32 * kWarpRows + lane % 16, piece = lane / 16;
#pragma unroll
    for (int step = 0; step < K::kQuerySteps; ++step) {
      const uint32_t inColumn = step % kStepsPerColumn * 2 + piece;
      ptx::storeMatrix4(scoreTile<K>(published.slot()) + step / kStepsPerColumn * (K::kBlockN * kColumnRowBytes) +
                            row * kColumnRowBytes + (inColumn ^ row % 8) * kPieceBytes,
                        operand[step]);
    }
  }

  DEV void leave(const QueryGradient &sums, const QueryTileHeader &tile, int32_t part) const {
    addQueryGradient<K>(p.sums, sums, sumRowsOf(p, item, tile, placeOf(tile).queryRate, part));
  }

  // True: the sums are those of all blocks of the team.
  DEV bool joinTeam(const Share &share) {
    constexpr int kKeyPieces = K::kHeadDim / 8, kPieces = kKeyPieces + K::kValueDim / 8;
    const CtaTeamSums<K, kPieces> sums(p, share, pairsOf<Item>(p));
    sums.leave(keyGradient, 0);
    sums.leave(valueGradient, kKeyPieces);
    if (!sums.isLast())
      return false;
    sums.collect(keyGradient, 0);
    sums.collect(valueGradient, kKeyPieces);
    return true;
  }

  DEV void storeGradients() const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      storeKeyGradient(half);
      storeValueGradient(half);
    }
  }

  DEV void storeKeyGradient(int half) const {
    storeGradientRow<K, K::kAddsToKeys>(p.keyGradient, p.keyGradientStride, gradientRow(half), keyGradient,
                                        p.scaleLog2 * kLogOf2);
  }

  DEV void storeValueGradient(int half) const {
    storeGradientRow<K, K::kAddsToKeys>(p.valueGradient, p.valueGradientStride, gradientRow(half), valueGradient, 1.f);
  }

  DEV GradientRow gradientRow(int half) const {
    const int32_t key = firstKey() + item.rate * half * 8;
    return GradientRow{item.batch, key, item.kvHead, key <= item.last, half};
  }

  // The ring of d_out goes round with that of the queries.
  DEV Pipeline<K::kStages, typename K::OutRing> outs() const { return queries.of(typename K::OutRing()); }
  DEV TilePlace<K> placeOf(const QueryTileHeader &tile) const { return TilePlace<K>(p, item, tile, firstKey()); }
  DEV int32_t firstKey() const { return item.first + item.rate * (consumer * kConsumerRows + laneRow()); }
  DEV ColumnStatistics lse() const { return {statistics()}; }
  DEV ColumnStatistics delta() const { return {statistics() + K::kStatisticBytes}; }
  DEV uint32_t statistics() const { return tileStatistics() + threadIdx.x % 4 * 8; }
  DEV uint32_t tileStatistics() const { return K::kStatistics + queries.slot() * K::kStatisticsBytes; }
  DEV uint32_t ownRows(uint32_t tile) const { return tile + consumer * kConsumerRows * kColumnRowBytes; }
  DEV uint32_t queryAddress() const { return K::kQueryTile + queries.slot() * K::kQueryTileBytes; }
  DEV uint32_t outAddress() const { return K::kOutTile + queries.slot() * K::kOutTileBytes; }

  const Params &p;
  const Item &item;
  int32_t consumer;
  Pipeline<K::kStages, typename K::QueryRing> queries;
  Pipeline<kScoreStages, typename K::ScoreRing, CountingCursor> published; // tiles whose dS is written
  ArgumentGradients<K> arguments;
  typename K::KeyGradient keyGradient;
  typename K::ValueGradient valueGradient;
};

} // namespace heddle
