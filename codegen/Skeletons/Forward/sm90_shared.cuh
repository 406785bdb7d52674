// Shared memory of the sm90 forward kernel: tiles and records (sm90_records.cuh). Addresses are constants: derived from
// a symbol they would be computed again at every step.
#pragma once

#include "Forward/sm90_records.cuh"
#include "Forward/warpgroup_mma.cuh"
#include "Forward/work_items.cuh"
#include "Shared/cell_bits.cuh"
#include "Shared/sm90_block.cuh"

namespace heddle {

// Who is in a block, and how many slots the rings between them have.
template <class Traits> struct ForwardBlock : Traits {
  static constexpr int kConsumers = Traits::kBlockM / kConsumerRows;
  static constexpr int kConsumerThreads = kConsumers * kWarpgroupThreads;
  static constexpr int kConsumerWarps = kConsumers * 4;
  static constexpr int kThreads = kConsumerThreads + kWarpgroupThreads;
  static constexpr int kValueStages = valueStages(Traits::kStages, Traits::kElementBytes, Traits::kKeyMajorValues > 0);
  static constexpr int kRawStages = rawStages(Traits::kElementBytes);
};

// Where the records of a block lie.
template <class Traits> struct ForwardRecordPlaces : Traits {
  static constexpr uint32_t kRecords = kSharedBase + Traits::kSmemBarriers;
#define HEDDLE_RECORD(member) (kRecords + HEDDLE_OFFSET(ForwardRecords, member))

  using QueryRing = Ring<HEDDLE_RECORD(queries.full), HEDDLE_RECORD(queries.empty)>;
  using QueryTileRing = Ring<0, HEDDLE_RECORD(queryTileEmpty)>; // full: as the ring of headers says
  using KeyRing = Ring<HEDDLE_RECORD(keys.full), HEDDLE_RECORD(keys.empty)>;
  using ValueRing = Ring<HEDDLE_RECORD(values.full), HEDDLE_RECORD(values.empty)>;
  using RawRing = Ring<HEDDLE_RECORD(raw.ring.full), HEDDLE_RECORD(raw.ring.empty)>;
  using PlanRing = Ring<HEDDLE_RECORD(planRing.full), HEDDLE_RECORD(planRing.empty)>;

  static constexpr uint32_t kVerdict = HEDDLE_RECORD(verdict), kSecondPass = HEDDLE_RECORD(isSecondPass);
  static constexpr uint32_t kPlannerItem = HEDDLE_RECORD(plannerItem), kLoaderItem = HEDDLE_RECORD(loaderItem);
  static constexpr uint32_t kSplitLimits = HEDDLE_RECORD(splitLimits), kNotedUnit = HEDDLE_RECORD(notedUnit);
  static constexpr uint32_t kLastRound = HEDDLE_RECORD(lastRound), kPreviousItem = HEDDLE_RECORD(previousItem);
  static constexpr uint32_t kWalkPlace = HEDDLE_RECORD(walkPlace);

  DEV static uint32_t itemHeader(int32_t slot) { return recordAt<ItemHeader>(HEDDLE_RECORD(items), slot); }
  DEV static uint32_t tileHeader(int32_t slot) { return recordAt<TileHeader>(HEDDLE_RECORD(tiles), slot); }
  DEV static uint32_t rangeOf(int32_t consumer) { return recordAt<TileRange>(HEDDLE_RECORD(ranges), consumer); }
  DEV static uint32_t planEntry(int32_t slot) { return recordAt<PlanEntry>(HEDDLE_RECORD(plan), slot); }
  DEV static uint32_t rawEnd(int32_t slot) { return HEDDLE_RECORD(raw.isEnd) + slot * 4; }
  static constexpr int kRedoWords = redoWords(Traits::Values::kAreTurned || Traits::kElementBytes == 1);
  DEV static uint32_t redoWord(int32_t number) { return HEDDLE_RECORD(redoBits) + number * 4; }
#undef HEDDLE_RECORD
};

// Where tiles lie, and what they take.
template <class Traits> struct ForwardTilePlaces : Traits {
  static constexpr uint32_t kQueryTile = kSharedBase + Traits::kSmemQ;
  static constexpr uint32_t kKeyTile = kSharedBase + Traits::kSmemK;
  static constexpr uint32_t kValueTile = kSharedBase + Traits::kSmemV;
  static constexpr uint32_t kRawTile = kSharedBase + Traits::kSmemRaw; // values as they arrive, if not in their ring
  static constexpr uint32_t kTurning = kSharedBase + Traits::kSmemTurning;
  static constexpr uint32_t kTotals = kSharedBase + Traits::kSmemTotals; // of the output (sm90_totals.cuh)
  static constexpr uint32_t kOnes = Traits::Values::kOnes;

  static constexpr int kQueryTileBytes = tileBytes(Traits::kBlockM, Traits::kTileHeadDim, Traits::kElementBytes);
  static constexpr int kKeyTileBytes = tileBytes(Traits::kBlockN, Traits::kTileHeadDim, Traits::kElementBytes);
  static constexpr int kKeyFactorTileBytes = Traits::kArePairs ? Traits::kBlockN * kKeyFactorBytes : 0;
  static constexpr bool kAreKeyMajor = Traits::kKeyMajorValues > 0, kTurnsValues = Traits::kTurnValues > 0;
  static constexpr int kArrivingBytes = kAreKeyMajor
                                            ? tileBytes(Traits::kValueDim, kArrivingKeys, Traits::kElementBytes)
                                            : tileBytes(Traits::kBlockN, Traits::kTileValueDim, Traits::kElementBytes);
  static constexpr int kConsumerTotalBytes = totalBytes(kConsumerRows, Traits::kValueDim);

  // KeyFactors of the keys of a tile.
  DEV static uint32_t keyFactors(int32_t slot) {
    return kSharedBase + Traits::kSmemFactors + slot * Traits::kSmemStageBytesFactors;
  }

private:
  static constexpr bool kAreTurned = Traits::Values::kAreTurned;
  static constexpr int kValueTileBytes = kAreTurned || kAreKeyMajor
                                             ? turnedBytes(Traits::kBlockN, Traits::kValueDim, Traits::kElementBytes)
                                             : kArrivingBytes;
  static constexpr int kRawTileBytes = kAreTurned ? kArrivingBytes : 0;
  static constexpr int kTotalBytes =
      Traits::kFlushTiles > 0 && !Traits::kTotalsInWorkspace ? Traits::kConsumers * kConsumerTotalBytes : 0;

  static_assert(kQueryTileBytes == Traits::kSmemStageBytesQ && kKeyTileBytes == Traits::kSmemStageBytesK &&
                    kValueTileBytes == Traits::kSmemStageBytesV && kRawTileBytes == Traits::kSmemStageBytesRaw &&
                    kKeyFactorTileBytes <= Traits::kSmemStageBytesFactors,
                "slots are planned as large as tiles");
  static_assert(areApart({{Traits::kSmemBarriers, sizeof(ForwardRecords)},
                          {Traits::kSmemQ, Traits::kQueryStages * kQueryTileBytes},
                          {Traits::kSmemK, Traits::kStages * kKeyTileBytes},
                          {Traits::kSmemV, Traits::kValueStages * kValueTileBytes},
                          {Traits::kSmemRaw, Traits::kRawStages * kRawTileBytes},
                          {Traits::kSmemTurning, kTurnsValues ? kTransposerWarps * turningBytes(Traits::kValueDim) : 0},
                          {Traits::kSmemOnes, Traits::Values::kSumsApart ? kOnesBytes : 0},
                          {Traits::kSmemFactors, Traits::kStages * Traits::kSmemStageBytesFactors},
                          {Traits::kSmemTotals, kTotalBytes}},
                         Traits::kSmemBytes),
                "records and rings lie apart in the shared memory that is planned");
};

// Of the item whose header has this slot.
template <class K> DEV uint32_t queryTileOf(int32_t slot) {
  return K::kQueryTile + (K::kFreesQueries ? 0 : slot * K::kSmemStageBytesQ);
}

// Fields of an item that lies there, or of an entry of the plan.
DEV uint32_t flagsOf(uint32_t item) { return item + HEDDLE_OFFSET(ItemHeader, flags); }
DEV uint32_t noteOf(uint32_t item) { return item + HEDDLE_OFFSET(ItemHeader, note); }

DEV bool hasBit(int32_t flags, int bit) { return flags >> bit & 1; }

// The item whose header lies there. Read again where it is needed rather than kept: registers are scarce in the loops.
template <class K> DEV WorkItem<K> readItem(uint32_t from) {
  const auto header = loadRecord<ItemHeader>(from);
  WorkItem<K> item;
  item.batch = header.place.batch;
  item.head = header.place.head;
  item.firstRow = header.place.firstRow;
  item.queryRate = item.rateOfWord(header.place.rateOrEnd);
  item.variant = header.variant;
  item.kvHead = header.kvHead;
  return item;
}

// The lanes of one warp take one slot of every ring each, which is faster and shorter than one thread's loops.
template <class K> DEV void initShared(int32_t lane) {
  static_assert(kMaxStages <= 32 && kPlanSlots <= 32 && K::kRedoWords <= 32, "a lane for every slot and word");
  if (lane < K::kHeaderStages)
    K::QueryRing::init(lane, 1, K::kConsumerWarps);
  if (lane < K::kStages)
    K::KeyRing::init(lane, 1, K::kConsumerWarps);
  if (lane < K::kValueStages)
    K::ValueRing::init(lane, K::Values::kAreTurned ? kTransposerWarps : 1, K::kConsumerWarps);
  if (K::Values::kAreTurned && lane < K::kRawStages)
    K::RawRing::init(lane, 1, kTransposerWarps);
  if (lane < kPlanSlots)
    K::PlanRing::init(lane, 1, 1);
  if (lane == 0) {
    if (K::kFreesQueries)
      ptx::initBarrier(K::QueryTileRing::empty(0), K::kConsumerWarps);
    CellBits<K>::clear();
    ptx::initBarrier(K::kVerdict, K::kConsumerWarps);
    ptx::storeShared4(K::kSecondPass, 0);
  }
  if (K::kSoftmax == kSoftmaxAnchored && lane < K::kRedoWords)
    ptx::storeShared4(K::redoWord(lane), 0);
  ptx::fenceBarrierInit();
}

} // namespace heddle
