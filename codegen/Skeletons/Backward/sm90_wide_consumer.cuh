// Consumers of wide heads, where no warpgroup can hold d_k and d_v of 64 keys: two share the keys of a block by what
// they sum. ValueConsumer makes P for d_v, KeyConsumer dS for d_k and d_q. P reaches KeyConsumer through a ring of
// kScoreStages tiles; where a chain of scores needs the scores again, it makes P itself.
#pragma once

#include "Backward/sm90_backward_consumer.cuh"

namespace heddle {

// P of a tile as lanes hold it: of every step, each lane's words beside those of the others.
struct WeightTile {
  uint32_t address;
  DEV explicit WeightTile(int32_t slot)
      : address(kWeightTile + slot * kWeightTileBytes + threadIdx.x % kWarpgroupThreads * kPieceBytes) {}
  DEV uint32_t piece(int step) const { return address + step * (kWarpgroupThreads * kPieceBytes); }

  DEV void write(const ScoreOperand &weights) const {
#pragma unroll
    for (int step = 0; step < kQuerySteps; ++step)
      ptx::storeShared16(piece(step), static_cast<int32_t>(weights[step][0]), static_cast<int32_t>(weights[step][1]),
                         static_cast<int32_t>(weights[step][2]), static_cast<int32_t>(weights[step][3]));
  }
  DEV void read(ScoreOperand &weights) const {
#pragma unroll
    for (int step = 0; step < kQuerySteps; ++step) {
      int32_t words[4];
      ptx::loadShared16(piece(step), words);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        weights[step][i] = words[i];
    }
  }
};

class WideConsumer : protected Consumer {
protected:
  DEV WideConsumer(const KernelParams &p, const KeyItem &item) : Consumer(p, item, 0) {}

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

class ValueConsumer : WideConsumer {
public:
  DEV ValueConsumer(const KernelParams &p, const KeyItem &item) : WideConsumer(p, item), passed(kFills) {}

  DEV void run() {
    clearSums(valueGradient);
    ptx::waitParity(kKeysFull, 0);
    forEachTile([this](const QueryTileHeader &tile, bool hasPrevious) { addTile(tile, hasPrevious); });
    ptx::pin(valueGradient);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      storeValueGradient(half);
  }

private:
  // The value gradient of a tile runs under the scores of the next one.
  DEV void addTile(const QueryTileHeader &tile, bool hasPrevious) {
    Scores scores;
    Weights weights;
    beginScores(scores);
    ptx::waitMma<0>();
    ptx::pin(scores);
    ptx::pin(valueGradient);
    if (hasPrevious)
      outs().releasePrevious();
    makeWeights(weights, scores, tile);
    if constexpr (kPassesWeights)
      pass(weights.operand);
    outs().waitFull();
    ptx::fenceMma();
    startSum(valueGradient, weights.operand, outAddress());
    ptx::commitMma();
    queries.release();
  }

  DEV void pass(const ScoreOperand &weights) {
    passed.acquire();
    WeightTile(passed.slot()).write(weights);
    ptx::arrive(passed.full());
    passed.next();
  }

  Pipeline<kScoreStages, WeightRing> passed; // tiles of P
};

class KeyConsumer : WideConsumer {
public:
  DEV KeyConsumer(const KernelParams &p, const KeyItem &item) : WideConsumer(p, item), passed(kReads) {}

  DEV void run() {
    clearSums(keyGradient);
    ptx::waitParity(kKeysFull, 0);
    ptx::waitParity(kValuesFull, 0);
    forEachTile([this](const QueryTileHeader &tile, bool hasPrevious) { addTile(tile, hasPrevious); });
    ptx::pin(keyGradient);
    arguments.leave();
#pragma unroll
    for (int half = 0; half < 2; ++half)
      storeKeyGradient(half);
  }

private:
  DEV void addTile(const QueryTileHeader &tile, bool hasPrevious) {
    Scores products;
    Weights weights;
    ScoreOperand gradients;
    if constexpr (!kPassesWeights)
      makeOwnWeights(weights, tile);
    outs().waitFull();
    ptx::forget(products);
    beginProducts(products);
    ptx::waitMma<0>();
    ptx::pin(products);
    ptx::pin(keyGradient);
    outs().release();
    if (kWalksQueries && hasPrevious)
      queries.releasePrevious();
    if constexpr (kPassesWeights)
      take(weights.operand);
    makeGradients(gradients, products, weights, delta(), tile);
    if constexpr (!kWalksQueries) {
      storeScores(gradients);
      publishScores();
    }
    ptx::fenceMma();
    startSum(keyGradient, gradients, queryAddress());
    ptx::commitMma();
    if constexpr (!kWalksQueries)
      reduceQueryGradient(tile);
  }

  DEV void makeOwnWeights(Weights &weights, const QueryTileHeader &tile) {
    Scores scores;
    beginScores(scores);
    ptx::waitMma<0>();
    ptx::pin(scores);
    ptx::pin(keyGradient);
    makeWeights(weights, scores, tile);
  }

  DEV void take(ScoreOperand &weights) {
    passed.waitFull();
    WeightTile(passed.slot()).read(weights);
    ptx::arrive(passed.empty());
    passed.next();
  }

  // Some columns at a time, which leave under the product for the next ones where registers hold both. No warp writes a
  // tile of dS before all have published the one after it, and so are done with it.
  DEV void reduceQueryGradient(const QueryTileHeader &tile) {
    constexpr bool kOverlaps = KernelTraits::kConsumerRegisters >= 240;
    QueryGradient sums[2];
    awaitScores();
#pragma unroll
    for (int split = 0; split < kSumSplits; ++split) {
      if (split == 0 || !kOverlaps)
        beginQueryGradient(sums[split % 2], split);
      if (kOverlaps && split + 1 < kSumSplits) {
        beginQueryGradient(sums[(split + 1) % 2], split + 1);
        ptx::waitMma<1>();
      } else {
        ptx::waitMma<0>();
      }
      ptx::pin(sums[split % 2]);
      ptx::pin(keyGradient);
      if (split == 0)
        queries.release();
      leave(sums[split % 2], tile, split);
    }
  }

  Pipeline<kScoreStages, WeightRing> passed; // tiles of P
};

} // namespace heddle
