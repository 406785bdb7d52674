// Consumers of floats (sm90_raised_rows.cuh), with d_q by a walk of its own: a warpgroup that sums d_k and d_v of its 64
// keys, or in blocks of 64 keys two that share them, as in sm90_wide_consumer.cuh. Products for the next tile start
// before the sum of the last one is waited for. That tile is waited for before the sum starts: ptxas serialises mma across a
// loop that waits.
#pragma once

#include "Backward/sm90_raised_rows.cuh"
#include "Backward/sm90_wide_consumer.cuh"

namespace heddle {

template <class K> class RaisedKeys : protected Consumer<K> {
protected:
  using Base = Consumer<K>;
  using typename Base::Item, typename Base::Params, typename Base::QueryTileHeader, typename Base::Scores;
  using Factors = ScoreFactors<K, K::kQueryTiles>;
  using Operand = RaisedOperand<K>;

  DEV RaisedKeys(const Params &p, const Item &item, int32_t consumer)
      : Base(p, item, consumer), rows(keyFactorsOf<K>(p, item, this->firstKey())) {}

  DEV void makeWeights(Factors &factors, Scores &scores, const QueryTileHeader &tile) const {
    takeBack(scores, queryFactors(), rows.first);
    this->weigh(factors, scores, tile);
    if (mayPassOne<K>(this->tileStatistics())) {
#pragma unroll
      for (int n = 0; n < K::kQueryTiles; ++n)
#pragma unroll
        for (int slot = 0; slot < 4; ++slot)
          scores[n][slot] = ptx::smallerOf(scores[n][slot], 1.f);
    }
  }

  // Derivatives of the chain of scores go into weights that nothing else reads, as registers do not hold both for long;
  // gradients of arguments need them apart.
  static constexpr bool kKeepsFactors = K::kGradientCount > 0;
  DEV static void foldFactors(Scores &weights, const Factors &factors) {
    if constexpr (!kKeepsFactors)
      applyFactors(weights, factors);
  }

  // dS in the place of dP, of weights after foldFactors().
  DEV void makeGradients(Scores &products, const Scores &weights, const Factors &factors, const QueryTileHeader &tile) {
    takeBack(products, outFactors(), rows.second);
#pragma unroll
    for (int n = 0; n < K::kQueryTiles; ++n) {
      float deltas[2];
      this->delta().read(n, deltas);
#pragma unroll
      for (int slot = 0; slot < 4; ++slot)
        products[n][slot] = weights[n][slot] * (products[n][slot] - deltas[slot % 2]);
    }
    if constexpr (kKeepsFactors) {
      this->arguments.add(ptx::valueOfLane(tile.head, 0), products, factors, this->placeOf(tile));
      applyFactors(products, factors);
    }
  }

  DEV ColumnStatistics queryFactors() const { return {this->statistics() + 2 * K::kStatisticBytes}; }
  DEV ColumnStatistics outFactors() const { return {this->statistics() + 3 * K::kStatisticBytes}; }

private:
  RowFactors rows;
};

template <class K> class RaisedConsumer : RaisedKeys<K> {
  using Keys = RaisedKeys<K>;
  using Keys::queries, Keys::keyGradient, Keys::valueGradient, Keys::outs;
  using typename Keys::Factors, typename Keys::Operand;
  using typename Keys::Item, typename Keys::Params, typename Keys::QueryTileHeader, typename Keys::Scores;

public:
  DEV RaisedConsumer(const Params &p, const Item &item, int32_t consumer) : Keys(p, item, consumer) {}

  DEV void run(const CtaTeamShare<K> &) {
    clearSums(keyGradient);
    clearSums(valueGradient);
    ptx::waitParity(K::kKeysFull, 0);
    const QueryTileHeader tile = this->awaitQueries();
    ptx::waitParity(K::kValuesFull, 0);
    if (!tile.isEnd())
      walkTiles(tile);
    this->arguments.leave();
    const CtaTeamShare<K> share = shareOfBlock<K, Item>(this->p);
    if (share.isAlone() || this->joinTeam(share))
      this->storeGradients();
  }

private:
  DEV void walkTiles(QueryTileHeader tile) {
    Scores scores, products;
    typename K::KeyGradient keySum;
    typename K::ValueGradient valueSum;
    float ofKeySum[2];
    outs().waitFull();
    begin(scores, products);
#pragma unroll 1
    for (;;) {
      Factors factors;
      ptx::waitMma<1>();
      ptx::pin(scores);
      this->makeWeights(factors, scores, tile);
      const Operand weights(scores, this->outFactors());
      this->foldFactors(scores, factors);
      ptx::waitMma<0>();
      ptx::pin(products);
      startRaisedSum(valueSum, weights, this->outAddress());
      this->makeGradients(products, scores, factors, tile);
      const Operand gradients(products, this->queryFactors());
      ofKeySum[0] = gradients.ofSums[0];
      ofKeySum[1] = gradients.ofSums[1];
      ptx::waitMma<0>();
      ptx::pin(valueSum);
      addRaised(valueGradient, valueSum, weights.ofSums);
      const uint32_t rowsOfTile = this->queryAddress();
      queries.next();
      tile = this->awaitQueries();
      if (tile.isEnd()) {
        startRaisedSum(keySum, gradients, rowsOfTile);
        break;
      }
      outs().waitFull();
      startRaisedSum(keySum, gradients, rowsOfTile);
      begin(scores, products);
      ptx::waitMma<2>();
      ptx::pin(keySum);
      addRaised(keyGradient, keySum, ofKeySum);
      this->releasePrevious();
    }
    ptx::waitMma<0>();
    ptx::pin(keySum);
    addRaised(keyGradient, keySum, ofKeySum);
  }

  DEV void begin(Scores &scores, Scores &products) const {
    ptx::forget(products);
    this->beginScores(scores);
    this->beginProducts(products);
  }
};

// For the sum of one tile beside products for the next, in wide heads.
template <class K> constexpr bool kHasAmpleRegisters = K::kConsumerRegisters >= 224;

template <class K> class RaisedValueConsumer : RaisedKeys<K> {
  using Keys = RaisedKeys<K>;
  using Keys::queries, Keys::valueGradient, Keys::outs;
  using typename Keys::Factors, typename Keys::Operand;
  using typename Keys::Item, typename Keys::Params, typename Keys::QueryTileHeader, typename Keys::Scores;

public:
  DEV RaisedValueConsumer(const Params &p, const Item &item) : Keys(p, item, 0), passed(kFills) {}

  DEV void run() {
    clearSums(valueGradient);
    ptx::waitParity(K::kKeysFull, 0);
    const QueryTileHeader tile = this->awaitQueries();
    if (!tile.isEnd())
      walkTiles(tile);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      this->storeValueGradient(half);
  }

private:
  static constexpr bool kOverlaps = kHasAmpleRegisters<K>;

  DEV void walkTiles(QueryTileHeader tile) {
    Scores scores;
    typename K::ValueGradient sum;
    float ofSum[2];
    this->beginScores(scores);
#pragma unroll 1
    for (;;) {
      Factors factors;
      ptx::waitMma<0>();
      ptx::pin(scores);
      this->makeWeights(factors, scores, tile);
      if constexpr (K::kPassesWeights)
        passed.pass(scores);
      const Operand weights(scores, this->outFactors());
      ofSum[0] = weights.ofSums[0];
      ofSum[1] = weights.ofSums[1];
      queries.release();
      outs().waitFull();
      const uint32_t rowsOfTile = this->outAddress();
      queries.next();
      tile = this->awaitQueries();
      if (tile.isEnd()) {
        startRaisedSum(sum, weights, rowsOfTile);
        break;
      }
      startRaisedSum(sum, weights, rowsOfTile);
      if constexpr (kOverlaps)
        this->beginScores(scores);
      ptx::waitMma<kOverlaps ? 1 : 0>();
      ptx::pin(sum);
      addRaised(valueGradient, sum, ofSum);
      outs().releasePrevious();
      if constexpr (!kOverlaps)
        this->beginScores(scores);
    }
    ptx::waitMma<0>();
    ptx::pin(sum);
    addRaised(valueGradient, sum, ofSum);
  }

  PassedWeights<K> passed;
};

template <class K> class RaisedKeyConsumer : RaisedKeys<K> {
  using Keys = RaisedKeys<K>;
  using Keys::queries, Keys::keyGradient, Keys::outs;
  using typename Keys::Factors, typename Keys::Operand;
  using typename Keys::Item, typename Keys::Params, typename Keys::QueryTileHeader, typename Keys::Scores;

public:
  DEV RaisedKeyConsumer(const Params &p, const Item &item) : Keys(p, item, 0), passed(kReads) {}

  DEV void run() {
    clearSums(keyGradient);
    ptx::waitParity(K::kKeysFull, 0);
    ptx::waitParity(K::kValuesFull, 0);
    const QueryTileHeader tile = this->awaitQueries();
    if (!tile.isEnd())
      walkTiles(tile);
    this->arguments.leave();
#pragma unroll
    for (int half = 0; half < 2; ++half)
      this->storeKeyGradient(half);
  }

private:
  // With scores of its own registers do not hold the sum of one tile beside the products of the next.
  static constexpr bool kOverlaps = K::kPassesWeights && kHasAmpleRegisters<K>;
  // dP has a second sum in the place of scores that are not here yet.
  static constexpr bool kHalvesProducts = K::kPassesWeights && K::kConsumerRegisters >= 240;

  DEV void walkTiles(QueryTileHeader tile) {
    Scores scores, products;
    typename K::KeyGradient sum;
    float ofSum[2];
    outs().waitFull();
    begin(scores, products);
#pragma unroll 1
    for (;;) {
      Factors factors;
      ptx::waitMma<0>();
      if constexpr (kHalvesProducts)
        joinProducts<K>(products, scores);
      else
        ptx::pin(products);
      outs().release();
      if constexpr (K::kPassesWeights) {
        passed.take(scores);
      } else {
        ptx::pin(scores);
        this->makeWeights(factors, scores, tile);
        this->foldFactors(scores, factors);
      }
      this->makeGradients(products, scores, factors, tile);
      const Operand gradients(products, this->queryFactors());
      ofSum[0] = gradients.ofSums[0];
      ofSum[1] = gradients.ofSums[1];
      const uint32_t rowsOfTile = this->queryAddress();
      queries.next();
      tile = this->awaitQueries();
      if (tile.isEnd()) {
        startRaisedSum(sum, gradients, rowsOfTile);
        break;
      }
      outs().waitFull();
      startRaisedSum(sum, gradients, rowsOfTile);
      if constexpr (kOverlaps)
        begin(scores, products);
      ptx::waitMma<kOverlaps ? 1 : 0>();
      ptx::pin(sum);
      addRaised(keyGradient, sum, ofSum);
      queries.releasePrevious();
      if constexpr (!kOverlaps)
        begin(scores, products);
    }
    ptx::waitMma<0>();
    ptx::pin(sum);
    addRaised(keyGradient, sum, ofSum);
  }

  DEV void begin(Scores &scores, Scores &products) const {
    if constexpr (!K::kPassesWeights)
      this->beginScores(scores);
    if constexpr (kHalvesProducts) {
      startProducts<K>(products, scores, this->ownRows(K::kValueTile), this->outAddress());
    } else {
      ptx::forget(products);
      this->beginProducts(products);
    }
  }

  PassedWeights<K> passed;
};

// Who consumes.
template <class K, bool IsRaised = kIsRaised<K>> struct ConsumersOf {
  using Joint = Consumer<K>;
  using OfValues = ValueConsumer<K>;
  using OfKeys = KeyConsumer<K>;
};
template <class K> struct ConsumersOf<K, true> {
  using Joint = RaisedConsumer<K>;
  using OfValues = RaisedValueConsumer<K>;
  using OfKeys = RaisedKeyConsumer<K>;
};

} // namespace heddle
