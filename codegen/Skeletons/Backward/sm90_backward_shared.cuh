// Shared memory of the Hopper backward kernel: K and V of the item, rings of Q and d_out tiles, and dS on its way to
// the query gradient.
#pragma once

#include "Backward/dq_accumulation.cuh"
#include "Backward/params.cuh"
#include "Backward/query_tile.cuh"
#include "Backward/sm90_backward_records.cuh"
#include "Ptx/warp.cuh"
#include "Shared/sm90_block.cuh"

namespace heddle {

// d_k and d_v of the same 64 keys are held by a consumer each (sm90_wide_consumer.cuh).
constexpr bool kIsWide = KernelTraits::kHeadDim > kMaxJointDim || KernelTraits::kValueDim > kMaxJointDim;
constexpr bool kPassesWeights = KernelTraits::kPassesWeights; // from one to the other
constexpr int kConsumers = kIsWide ? 2 : kBlockN / kConsumerRows;
constexpr int kWarpsOfConsumer = 4;
constexpr int kConsumerThreads = kConsumers * kWarpgroupThreads, kConsumerWarps = kConsumers * kWarpsOfConsumer;
constexpr bool kHasOrder = KernelTraits::kReduce == kReduceOrdered;                  // sm90_dq_order.cuh
constexpr bool kHasReducer = KernelTraits::kReduce == kReduceWarpgroup || kHasOrder; // sm90_query_reducer.cuh
constexpr int kThreads = kConsumerThreads + (kHasReducer ? 2 : 1) * kWarpgroupThreads;
constexpr int kStages = KernelTraits::kStages;
constexpr bool kWalksQueries = KernelTraits::kReduce == kReduceNone; // d_q has a walk of its own

using Records = BackwardRecords<kStages>;
constexpr uint32_t kRecords = kSharedBase + KernelTraits::kSmemBarriers;
#define HEDDLE_RECORD(member) (kRecords + HEDDLE_OFFSET(Records, member))

constexpr uint32_t kKeysFull = HEDDLE_RECORD(keysFull), kValuesFull = HEDDLE_RECORD(valuesFull);
using QueryRing = Ring<HEDDLE_RECORD(queries.full), HEDDLE_RECORD(queries.empty)>;
using OutRing = Ring<HEDDLE_RECORD(outs.full), HEDDLE_RECORD(outs.empty)>;
using ScoreRing = Ring<HEDDLE_RECORD(scores.full), HEDDLE_RECORD(scores.empty)>;
using WeightRing = Ring<HEDDLE_RECORD(weights.full), HEDDLE_RECORD(weights.empty)>;
// Turns go from who takes them to who adds, then to who passes them on; a free slot goes back.
using TurnsToAdd = Ring<HEDDLE_RECORD(turnTaken), HEDDLE_RECORD(turnAdded)>;
using TurnsToPass = Ring<HEDDLE_RECORD(turnAdded), HEDDLE_RECORD(turnEmpty)>;
using TurnsToTake = Ring<HEDDLE_RECORD(turnTaken), HEDDLE_RECORD(turnEmpty)>;
constexpr uint32_t kTeamWord = HEDDLE_RECORD(teamWord), kBlockNumber = HEDDLE_RECORD(blockNumber);

DEV uint32_t tileRecord(int32_t slot) { return recordAt<QueryTileRecord>(HEDDLE_RECORD(tiles), slot); }
DEV uint32_t turnRecord(int32_t slot) { return recordAt<TurnRecord>(HEDDLE_RECORD(turns), slot); }

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

static_assert(kKeyTileBytes == KernelTraits::kSmemStageBytesK && kValueTileBytes == KernelTraits::kSmemStageBytesV &&
                  kQueryTileBytes == KernelTraits::kSmemStageBytesQ &&
                  kOutTileBytes == KernelTraits::kSmemStageBytesOut,
              "slots are planned as large as tiles");
static_assert(kStatisticsBytes * kStages == KernelTraits::kSmemStageBytesStatistics,
              "lse and delta of each stage have their place");
static_assert(areApart({{KernelTraits::kSmemBarriers, sizeof(Records)},
                        {KernelTraits::kSmemK, kKeyTileBytes},
                        {KernelTraits::kSmemV, kValueTileBytes},
                        {KernelTraits::kSmemQ, kStages * kQueryTileBytes},
                        {KernelTraits::kSmemOut, kStages * kOutTileBytes},
                        {KernelTraits::kSmemScores, kWalksQueries ? 0 : kScoreStages * kScoreTileBytes},
                        {KernelTraits::kSmemWeights, kPassesWeights ? kScoreStages * kWeightTileBytes : 0},
                        {KernelTraits::kSmemStatistics, static_cast<int>(kStages * kStatisticsBytes)}},
                       KernelTraits::kSmemBytes),
              "records, tiles and rings lie apart in the shared memory that is planned");

// Barriers by number: 0 is __syncthreads.
constexpr int kWalkEnded = 1;
constexpr int kTeamBarrier = kWalkEnded + 1;

// What the producer says of a query tile beside its data.
struct QueryTileHeader : QueryTile {
  DEV static QueryTileHeader read(int32_t slot) {
    const auto record = loadRecord<QueryTileRecord>(tileRecord(slot));
    return QueryTileHeader{{record.firstRow, record.flags, record.head}};
  }
  DEV void write(int32_t slot) const { storeRecord(tileRecord(slot), QueryTileRecord{firstRow, flags, head, 0}); }
  // A consumer calls this. Whether there is a tile decides how a walk goes on, so the answer is uniform.
  template <class Tiles> DEV static QueryTileHeader await(const Tiles &tiles) {
    tiles.waitFull();
    QueryTileHeader tile = read(tiles.slot());
    tile.firstRow = ptx::valueOfLane(tile.firstRow, 0);
    return tile;
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
      ptx::initBarrier(ScoreRing::full(stage), kIsWide ? kWarpsOfConsumer : kConsumerWarps);
      if (kHasReducer)
        ptx::initBarrier(ScoreRing::empty(stage), kWarpsOfConsumer);
      if (kPassesWeights)
        WeightRing::init(stage, kWarpgroupThreads, kWarpgroupThreads);
    }
    for (int stage = 0; kHasOrder && stage < kTurnStages; ++stage) {
      ptx::initBarrier(TurnsToAdd::full(stage), 1);
      TurnsToPass::init(stage, kWarpsOfConsumer, 1);
    }
    for (int slot = 0; slot < kStages; ++slot) {
      ptx::initBarrier(QueryRing::full(slot), 1);
      ptx::initBarrier(OutRing::full(slot), 1);
      ptx::initBarrier(QueryRing::empty(slot), readers.queries);
      ptx::initBarrier(OutRing::empty(slot), readers.outs);
    }
    ptx::fenceBarrierInit();
  }
}

} // namespace heddle
