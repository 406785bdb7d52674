// Shared memory of the Hopper backward kernel: K and V of the item, rings of Q and d_out tiles, and dS on its way to the
// query gradient.
#pragma once

#include "Backward/query_sums.cuh"
#include "Backward/query_tile.cuh"
#include "Shared/sm90_block.cuh"

namespace heddle {

constexpr int kBlockM = KernelTraits::kBlockM, kBlockN = KernelTraits::kBlockN;
// d_k and d_v of the same 64 keys are held by a consumer each (sm90_wide_consumer.cuh).
constexpr bool kIsWide = KernelTraits::kHeadDim > kMaxJointDim || KernelTraits::kValueDim > kMaxJointDim;
constexpr bool kPassesWeights = KernelTraits::kPassesWeights; // from one to the other
constexpr int kConsumers = kIsWide ? 2 : kBlockN / kConsumerRows;
constexpr int kWarpsOfConsumer = 4;
constexpr int kConsumerThreads = kConsumers * kWarpgroupThreads, kConsumerWarps = kConsumers * kWarpsOfConsumer;
constexpr bool kHasOrder = KernelTraits::kReduce == kReduceOrdered;                  // sm90_sum_order.cuh
constexpr bool kHasReducer = KernelTraits::kReduce == kReduceWarpgroup || kHasOrder; // sm90_query_reducer.cuh
constexpr int kThreads = kConsumerThreads + (kHasReducer ? 2 : 1) * kWarpgroupThreads;
constexpr int kStages = KernelTraits::kStages;
constexpr bool kWalksQueries = KernelTraits::kReduce == kReduceNone; // d_q has a walk of its own
constexpr int kScoreStages = 2; // of dS: one is written while the other may still be read

constexpr uint32_t kBarriers = kSharedBase + KernelTraits::kSmemBarriers;
constexpr uint32_t kKeysFull = kBarriers, kValuesFull = kKeysFull + 8;
constexpr uint32_t kQueryFull = kValuesFull + 8, kQueryEmpty = kQueryFull + 8 * kStages;
constexpr uint32_t kOutFull = kQueryEmpty + 8 * kStages, kOutEmpty = kOutFull + 8 * kStages;
constexpr uint32_t kScoresFull = kOutEmpty + 8 * kStages;
constexpr uint32_t kScoresEmpty = kScoresFull + 8 * kScoreStages;                      // of a reducer
constexpr uint32_t kWeightsFull = kScoresEmpty + (kHasReducer ? 8 * kScoreStages : 0); // of wide heads
constexpr uint32_t kWeightsEmpty = kWeightsFull + 8 * kScoreStages;
constexpr uint32_t kTileHeaders = kWeightsFull + (kPassesWeights ? 2 * 8 * kScoreStages : 0);
constexpr uint32_t kTileHeaderBytes = 16;
constexpr uint32_t kTeamWord = kTileHeaders + kTileHeaderBytes * kStages; // blocks of a team that arrived before
constexpr uint32_t kBlockNumber = kTeamWord + 4;                          // sm90_sum_order.cuh
constexpr int kTurnStages = 4; // turns that are taken and not passed on yet (sm90_sum_order.cuh)
constexpr uint32_t kTurnTaken = kTeamWord + 8, kTurnAdded = kTurnTaken + 8 * kTurnStages;
constexpr uint32_t kTurnEmpty = kTurnAdded + 8 * kTurnStages, kTurns = kTurnEmpty + 8 * kTurnStages, kTurnBytes = 8;
static_assert(kTileHeaders % 16 == 0 && kTurnTaken % 8 == 0 &&
                  kTurns + kTurnBytes * kTurnStages <= kBarriers + kBarrierBytes,
              "barriers and headers fit the region planned for them");
constexpr uint32_t kStatistics = kSharedBase + KernelTraits::kSmemStatistics;
constexpr uint32_t kStatisticsBytes = 2 * kBlockM * 4; // lse in log2 units, then delta, of each row

constexpr uint32_t kKeyTile = kSharedBase + KernelTraits::kSmemK;
constexpr uint32_t kValueTile = kSharedBase + KernelTraits::kSmemV;
constexpr uint32_t kQueryTile = kSharedBase + KernelTraits::kSmemQ;
constexpr uint32_t kOutTile = kSharedBase + KernelTraits::kSmemOut;
constexpr uint32_t kScoreTile = kSharedBase + KernelTraits::kSmemScores;
constexpr uint32_t kWeightTile = kSharedBase + KernelTraits::kSmemWeights;

constexpr int kKeyTileBytes = tileBytes(kBlockN, KernelTraits::kHeadDim, kElementBytes);
constexpr int kValueTileBytes = tileBytes(kBlockN, KernelTraits::kValueDim, kElementBytes);
constexpr int kQueryTileBytes = tileBytes(kBlockM, KernelTraits::kHeadDim, kElementBytes);
constexpr int kOutTileBytes = tileBytes(kBlockM, KernelTraits::kValueDim, kElementBytes);
constexpr int kScoreTileBytes = tileBytes(kBlockN, kBlockM, kElementBytes), kWeightTileBytes = kScoreTileBytes;

// Barriers by number: 0 is __syncthreads.
constexpr int kWalkEnded = 1;
constexpr int kTeamBarrier = kWalkEnded + 1;

// What the producer says of a query tile beside its data.
struct QueryTileHeader : QueryTile {
  DEV static QueryTileHeader read(int32_t slot) {
    int32_t words[4];
    ptx::loadShared16(kTileHeaders + kTileHeaderBytes * slot, words);
    return QueryTileHeader{{words[0], words[1], words[2]}};
  }
  DEV void write(int32_t slot) const {
    ptx::storeShared16(kTileHeaders + kTileHeaderBytes * slot, firstRow, flags, head, 0);
  }
};

// Warps that read a tile of each ring.
struct RingReaders {
  int32_t queries, outs;
};

DEV void initShared(int32_t lane, RingReaders readers) {
  if (lane == 0) {
    ptx::initBarrier(kKeysFull, 1);
    ptx::initBarrier(kValuesFull, 1);
    for (int stage = 0; stage < kScoreStages; ++stage) {
      ptx::initBarrier(kScoresFull + 8 * stage, kIsWide ? kWarpsOfConsumer : kConsumerWarps);
      if (kHasReducer)
        ptx::initBarrier(kScoresEmpty + 8 * stage, kWarpsOfConsumer);
      if (kPassesWeights) {
        ptx::initBarrier(kWeightsFull + 8 * stage, kWarpgroupThreads);
        ptx::initBarrier(kWeightsEmpty + 8 * stage, kWarpgroupThreads);
      }
    }
    for (int stage = 0; kHasOrder && stage < kTurnStages; ++stage) {
      ptx::initBarrier(kTurnTaken + 8 * stage, 1);
      ptx::initBarrier(kTurnAdded + 8 * stage, kWarpsOfConsumer);
      ptx::initBarrier(kTurnEmpty + 8 * stage, 1);
    }
    for (int slot = 0; slot < kStages; ++slot) {
      ptx::initBarrier(kQueryFull + 8 * slot, 1);
      ptx::initBarrier(kOutFull + 8 * slot, 1);
      ptx::initBarrier(kQueryEmpty + 8 * slot, readers.queries);
      ptx::initBarrier(kOutEmpty + 8 * slot, readers.outs);
    }
    ptx::fenceBarrierInit();
  }
}

} // namespace heddle
