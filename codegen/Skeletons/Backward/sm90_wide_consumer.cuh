// Consumers of wide heads, where no warpgroup can hold d_k and d_v of 64 keys: two share the keys of a block by what
// they sum. ValueConsumer makes P for d_v, KeyConsumer dS for d_k and d_q. P reaches KeyConsumer through a ring of
// kScoreStages tiles; where a chain of scores needs the scores again, it makes P itself.
#pragma once

#include "Backward/sm90_backward_consumer.cuh"
#include "Ptx/wide_memory.cuh"

namespace heddle {

// P of a tile as lanes hold it: of every step, each lane's words beside those of the others.
template <class K> struct WeightTile {
  uint32_t address;
  DEV explicit WeightTile(int32_t slot)
      : address(K::kWeightTile + slot * K::kWeightTileBytes + threadIdx.x % kWarpgroupThreads * kPieceBytes) {}
  DEV uint32_t piece(int step) const { return address + step * (kWarpgroupThreads * kPieceBytes); }

  DEV void write(const typename K::ScoreOperand &weights) const {
#pragma unroll
    for (int step = 0; step < K::kQuerySteps; ++step)
      ptx::storeShared16(piece(step), static_cast<int32_t>(weights[step][0]), static_cast<int32_t>(weights[step][1]),
                         static_cast<int32_t>(weights[step][2]), static_cast<int32_t>(weights[step][3]));
  }
  DEV void read(typename K::ScoreOperand &weights) const {
#pragma unroll
    for (int step = 0; step < K::kQuerySteps; ++step) {
      int32_t words[4];
      ptx::loadShared16(piece(step), words);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        weights[step][i] = words[i];
    }
  }

  // The same of floats.
  DEV void write(const typename K::Scores &weights) const {
#pragma unroll
    for (int n = 0; n < K::kQueryTiles; ++n)
      ptx::storeShared16(piece(n), weights[n][0], weights[n][1], weights[n][2], weights[n][3]);
  }
  DEV void read(typename K::Scores &weights) const {
#pragma unroll
    for (int n = 0; n < K::kQueryTiles; ++n)
      ptx::loadShared16(piece(n), weights[n]);
  }
};

// One side of the ring through which a consumer hands P to the other.
template <class K> class PassedWeights {
public:
  DEV explicit PassedWeights(uint32_t side) : ring(side) {}

  template <class Tile> DEV void pass(const Tile &weights) {
    ring.acquire();
    WeightTile<K>(ring.slot()).write(weights);
    ptx::arrive(ring.full());
    ring.next();
  }
  template <class Tile> DEV void take(Tile &weights) {
    ring.waitFull();
    WeightTile<K>(ring.slot()).read(weights);
    ptx::arrive(ring.empty());
    ring.next();
  }

private:
  Pipeline<kScoreStages, typename K::WeightRing> ring;
};

template <class K> class WideConsumer : protected Consumer<K> {
protected:
  using Base = Consumer<K>;
  using Base::queries, Base::awaitQueries, Base::outs;
  using typename Base::Params, typename Base::Item, typename Base::QueryTileHeader;

  DEV WideConsumer(const Params &p, const Item &item) : Base(p, item, 0) {}

  // Until the last product is complete.
  template <class AddTile> DEV void forEachTile(AddTile addTile) {
    bool hasPrevious = false;
#pragma unroll 1
    for (;;) {
      const QueryTileHeader tile = awaitQueries();
      if (tile.isEnd())
        break;
      addTile(tile, hasPrevious);
      hasPrevious = true;
      queries.next();
    }
    ptx::waitMma<0>();
  }
};

template <class K> class ValueConsumer : WideConsumer<K> {
  using Wide = WideConsumer<K>;
  using typename Wide::Params, typename Wide::Item, typename Wide::QueryTileHeader;
  using typename Wide::Scores, typename Wide::ScoreOperand, typename Wide::Weights;
  using Wide::queries, Wide::valueGradient, Wide::outs, Wide::outAddress;

public:
  DEV ValueConsumer(const Params &p, const Item &item) : Wide(p, item), passed(kFills) {}

  DEV void run() {
    clearSums(valueGradient);
    ptx::waitParity(K::kKeysFull, 0);
    this->forEachTile([this](const QueryTileHeader &tile, bool hasPrevious) { addTile(tile, hasPrevious); });
    ptx::pin(valueGradient);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      this->storeValueGradient(half);
  }

private:
  // The value gradient of a tile runs under the scores of the next one.
  DEV void addTile(const QueryTileHeader &tile, bool hasPrevious) {
    Scores scores;
    Weights weights;
    this->beginScores(scores);
    ptx::waitMma<0>();
    ptx::pin(scores);
    ptx::pin(valueGradient);
    if (hasPrevious)
      outs().releasePrevious();
    this->makeWeights(weights, scores, tile);
    if constexpr (K::kPassesWeights)
      passed.pass(weights.operand);
    outs().waitFull();
    ptx::fenceMma();
    startSum<K>(valueGradient, weights.operand, outAddress());
    ptx::commitMma();
    queries.release();
  }

  PassedWeights<K> passed;
};

template <class K> class KeyConsumer : WideConsumer<K> {
  using Wide = WideConsumer<K>;
  using typename Wide::Params, typename Wide::Item, typename Wide::QueryTileHeader;
  using typename Wide::Scores, typename Wide::ScoreOperand, typename Wide::Weights, typename Wide::QueryGradient;
  using Wide::queries, Wide::keyGradient, Wide::outs, Wide::queryAddress;

public:
  DEV KeyConsumer(const Params &p, const Item &item) : Wide(p, item), passed(kReads) {}

  DEV void run() {
    clearSums(keyGradient);
    ptx::waitParity(K::kKeysFull, 0);
    ptx::waitParity(K::kValuesFull, 0);
    this->forEachTile([this](const QueryTileHeader &tile, bool hasPrevious) { addTile(tile, hasPrevious); });
    ptx::pin(keyGradient);
    this->arguments.leave();
#pragma unroll
    for (int half = 0; half < 2; ++half)
      this->storeKeyGradient(half);
  }

private:
  DEV void addTile(const QueryTileHeader &tile, bool hasPrevious) {
    Scores products;
    Weights weights;
    ScoreOperand gradients;
    if constexpr (!K::kPassesWeights)
      makeOwnWeights(weights, tile);
    outs().waitFull();
    ptx::forget(products);
    this->beginProducts(products);
    ptx::waitMma<0>();
    ptx::pin(products);
    ptx::pin(keyGradient);
    outs().release();
    if (K::kWalksQueries && hasPrevious)
      queries.releasePrevious();
    if constexpr (K::kPassesWeights)
      passed.take(weights.operand);
    this->makeGradients(gradients, products, weights, this->delta(), tile);
    if constexpr (!K::kWalksQueries) {
      this->storeScores(gradients);
      this->publishScores();
    }
    ptx::fenceMma();
    startSum<K>(keyGradient, gradients, queryAddress());
    ptx::commitMma();
    if constexpr (!K::kWalksQueries)
      reduceQueryGradient(tile);
  }

  DEV void makeOwnWeights(Weights &weights, const QueryTileHeader &tile) {
    Scores scores;
    this->beginScores(scores);
    ptx::waitMma<0>();
    ptx::pin(scores);
    ptx::pin(keyGradient);
    this->makeWeights(weights, scores, tile);
  }

  // Some columns at a time, which leave under the product for the next ones where registers hold both. No warp writes a
  // tile of dS before all have published the one after it, and so are done with it.
  DEV void reduceQueryGradient(const QueryTileHeader &tile) {
    constexpr bool kOverlaps = K::kConsumerRegisters >= 240;
    QueryGradient sums[2];
    this->awaitScores();
#pragma unroll
    for (int split = 0; split < K::kSumSplits; ++split) {
      if (split == 0 || !kOverlaps)
        this->beginQueryGradient(sums[split % 2], split);
      if (kOverlaps && split + 1 < K::kSumSplits) {
        this->beginQueryGradient(sums[(split + 1) % 2], split + 1);
        ptx::waitMma<1>();
      } else {
        ptx::waitMma<0>();
      }
      ptx::pin(sums[split % 2]);
      ptx::pin(keyGradient);
      if (split == 0)
        queries.release();
      this->leave(sums[split % 2], tile, split);
    }
  }

  PassedWeights<K> passed;
};

} // namespace heddle
