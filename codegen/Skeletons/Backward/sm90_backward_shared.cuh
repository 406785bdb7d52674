// Shared memory of the Hopper backward kernel: K and V of the item, rings of Q and d_out tiles, and dS on its way to
// the query gradient.
#pragma once

#include "Backward/dq_accumulation.cuh"
#include "Backward/query_tile.cuh"
#include "Backward/sm90_backward_records.cuh"
#include "Ptx/warp.cuh"
#include "Shared/elements.cuh"
#include "Shared/sm90_block.cuh"

namespace heddle {

constexpr int kWarpsOfConsumer = 4;

// Who is in a block, and how d_q comes about.
template <class Traits> struct BackwardBlock : Traits {
  // d_k and d_v of the same 64 keys are held by a consumer each (sm90_wide_consumer.cuh): of wide heads, and of floats where
  // a block has 64 keys.
  static constexpr int kMostJointDim = kIsRaised<Traits> ? kMaxRaisedJointDim : kMaxJointDim;
  static constexpr bool kNeedsTwo = Traits::kHeadDim > kMostJointDim || Traits::kValueDim > kMostJointDim;
  static constexpr bool kIsWide = kNeedsTwo || (kIsRaised<Traits> && Traits::kBlockN == kConsumerRows);
  static constexpr int kConsumers = kIsWide ? 2 : Traits::kBlockN / kConsumerRows;
  static constexpr bool kHasOrder = Traits::kReduce == kReduceOrdered;                  // sm90_dq_order.cuh
  static constexpr bool kHasReducer = Traits::kReduce == kReduceWarpgroup || kHasOrder; // sm90_query_reducer.cuh
  static constexpr bool kWalksQueries = Traits::kReduce == kReduceNone;                 // d_q has a walk of its own
  static constexpr bool kHasTeams = Traits::kLongSplit > 1;                             // sm90_cta_teams.cuh

  static constexpr int kParts = ProductElement<typename Traits::Element>::kParts; // of an element
  static constexpr int kConsumerThreads = kConsumers * kWarpgroupThreads;
  static constexpr int kConsumerWarps = kConsumers * kWarpsOfConsumer;
  static constexpr int kThreads = kConsumerThreads + (kHasReducer ? 2 : 1) * kWarpgroupThreads;
  static constexpr int kMinBlocks = 1;
};

// Where the records of a block lie.
template <class Traits> struct BackwardRecordPlaces : Traits {
  using Records = BackwardRecords<Traits::kStages>;
  static constexpr uint32_t kRecords = kSharedBase + Traits::kSmemBarriers;
#define HEDDLE_RECORD(member) (kRecords + HEDDLE_OFFSET(Records, member))

  static constexpr uint32_t kKeysFull = HEDDLE_RECORD(keysFull), kValuesFull = HEDDLE_RECORD(valuesFull);
  using QueryRing = Ring<HEDDLE_RECORD(queries.full), HEDDLE_RECORD(queries.empty)>;
  using OutRing = Ring<HEDDLE_RECORD(outs.full), HEDDLE_RECORD(outs.empty)>;
  using ScoreRing = Ring<HEDDLE_RECORD(scores.full), HEDDLE_RECORD(scores.empty)>;
  using WeightRing = Ring<HEDDLE_RECORD(weights.full), HEDDLE_RECORD(weights.empty)>;
  // Turns go from who takes them to who adds, then to who passes them on; a free slot goes back.
  using TurnsToAdd = Ring<HEDDLE_RECORD(turnTaken), HEDDLE_RECORD(turnAdded)>;
  using TurnsToPass = Ring<HEDDLE_RECORD(turnAdded), HEDDLE_RECORD(turnEmpty)>;
  using TurnsToTake = Ring<HEDDLE_RECORD(turnTaken), HEDDLE_RECORD(turnEmpty)>;
  static constexpr uint32_t kTeamWord = HEDDLE_RECORD(teamWord), kBlockNumber = HEDDLE_RECORD(blockNumber);

  DEV static uint32_t tileRecord(int32_t slot) { return recordAt<QueryTileRecord>(HEDDLE_RECORD(tiles), slot); }
  DEV static uint32_t turnRecord(int32_t slot) { return recordAt<TurnRecord>(HEDDLE_RECORD(turns), slot); }
#undef HEDDLE_RECORD
};

// Where tiles lie, and what they take.
template <class Traits> struct BackwardTilePlaces : Traits {
  static constexpr uint32_t kKeyTile = kSharedBase + Traits::kSmemK;
  static constexpr uint32_t kValueTile = kSharedBase + Traits::kSmemV;
  static constexpr uint32_t kQueryTile = kSharedBase + Traits::kSmemQ;
  static constexpr uint32_t kOutTile = kSharedBase + Traits::kSmemOut;
  static constexpr uint32_t kScoreTile = kSharedBase + Traits::kSmemScores;
  static constexpr uint32_t kWeightTile = kSharedBase + Traits::kSmemWeights;
  static constexpr uint32_t kStatistics = kSharedBase + Traits::kSmemStatistics;

  DEV static constexpr int tileOf(int rows, int dim) {
    return Traits::kParts * tileBytes(rows, dim, Traits::kElementBytes);
  }
  static constexpr int kKeyTileBytes = tileOf(Traits::kBlockN, Traits::kHeadDim);
  static constexpr int kValueTileBytes = tileOf(Traits::kBlockN, Traits::kValueDim);
  static constexpr int kQueryTileBytes = tileOf(Traits::kBlockM, Traits::kHeadDim);
  static constexpr int kOutTileBytes = tileOf(Traits::kBlockM, Traits::kValueDim);
  static constexpr int kScoreTileBytes = tileBytes(Traits::kBlockN, Traits::kBlockM, Traits::kElementBytes);
  static constexpr int kWeightTileBytes =
      tileBytes(Traits::kBlockN, Traits::kBlockM, kIsRaised<Traits> ? 4 : Traits::kElementBytes);
  static constexpr int kStatisticBytes = Traits::kBlockM * 4; // of one of each row
  static constexpr uint32_t kStatisticsBytes =
      (kIsRaised<Traits> ? kRaisedRowStatistics : kRowStatistics) * kStatisticBytes;

private:
  static constexpr int kSlots = Traits::kStages;
  static_assert(kKeyTileBytes == Traits::kSmemStageBytesK && kValueTileBytes == Traits::kSmemStageBytesV &&
                    kQueryTileBytes == Traits::kSmemStageBytesQ && kOutTileBytes == Traits::kSmemStageBytesOut,
                "slots are planned as large as tiles");
  static_assert(kStatisticsBytes * kSlots <= Traits::kSmemStageBytesStatistics,
                "lse and delta of all stages have room");
  static_assert(areApart({{Traits::kSmemBarriers, sizeof(BackwardRecords<kSlots>)},
                          {Traits::kSmemK, kKeyTileBytes},
                          {Traits::kSmemV, kValueTileBytes},
                          {Traits::kSmemQ, kSlots * kQueryTileBytes},
                          {Traits::kSmemOut, kSlots * kOutTileBytes},
                          {Traits::kSmemScores, Traits::kWalksQueries ? 0 : kScoreStages * kScoreTileBytes},
                          {Traits::kSmemWeights, Traits::kPassesWeights ? kScoreStages * kWeightTileBytes : 0},
                          {Traits::kSmemStatistics, static_cast<int>(kSlots * kStatisticsBytes)}},
                         Traits::kSmemBytes),
                "records, tiles and rings lie apart in the shared memory that is planned");
};

// Barriers by number: 0 is __syncthreads.
constexpr int kWalkEnded = 1;
constexpr int kTeamBarrier = kWalkEnded + 1;

// What the producer says of a query tile beside its data.
template <class K> struct QueryTileHeader : QueryTile {
  DEV static QueryTileHeader read(int32_t slot) {
    const auto record = loadRecord<QueryTileRecord>(K::tileRecord(slot));
    return QueryTileHeader{{record.firstRow, record.flags, record.head}};
  }
  DEV void write(int32_t slot) const { storeRecord(K::tileRecord(slot), QueryTileRecord{firstRow, flags, head, 0}); }
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

template <class K> DEV void initShared(int32_t lane, RingReaders readers) {
  if (lane == 0) {
    ptx::initBarrier(K::kKeysFull, 1);
    ptx::initBarrier(K::kValuesFull, 1);
    for (int stage = 0; stage < kScoreStages; ++stage) {
      ptx::initBarrier(K::ScoreRing::full(stage), K::kIsWide ? kWarpsOfConsumer : K::kConsumerWarps);
      if (K::kHasReducer)
        ptx::initBarrier(K::ScoreRing::empty(stage), kWarpsOfConsumer);
      if (K::kPassesWeights)
        K::WeightRing::init(stage, kWarpgroupThreads, kWarpgroupThreads);
    }
    for (int stage = 0; K::kHasOrder && stage < kTurnStages; ++stage) {
      ptx::initBarrier(K::TurnsToAdd::full(stage), 1);
      K::TurnsToPass::init(stage, kWarpsOfConsumer, 1);
    }
    for (int slot = 0; slot < K::kStages; ++slot) {
      ptx::initBarrier(K::QueryRing::full(slot), 1);
      ptx::initBarrier(K::OutRing::full(slot), 1);
      ptx::initBarrier(K::QueryRing::empty(slot), readers.queries);
      ptx::initBarrier(K::OutRing::empty(slot), readers.outs);
    }
    ptx::fenceBarrierInit();
  }
}

} // namespace heddle
