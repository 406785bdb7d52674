// Shared memory of the sm90 forward kernel: tiles and records (sm90_records.cuh). Addresses are constants: derived from
// a symbol they would be computed again at every step.
#pragma once

#include "Forward/sm90_records.cuh"
#include "Forward/warpgroup_mma.cuh"
#include "Forward/work_items.cuh"
#include "Shared/cell_bits.cuh"
#include "Shared/sm90_block.cuh"

namespace heddle {

constexpr int kConsumers = KernelTraits::kBlockM / kConsumerRows;
constexpr int kConsumerThreads = kConsumers * kWarpgroupThreads;
constexpr int kConsumerWarps = kConsumers * 4, kMaxConsumerWarps = kMaxConsumers * 4;
constexpr int kThreads = kConsumerThreads + kWarpgroupThreads;
constexpr int kStages = KernelTraits::kStages;
constexpr int kValueStages = valueStages(kStages, Values::kAreTurned);
constexpr int kQueryStages = KernelTraits::kQueryStages;

constexpr uint32_t kRecords = kSharedBase + KernelTraits::kSmemBarriers;
#define HEDDLE_RECORD(member) (kRecords + HEDDLE_OFFSET(ForwardRecords, member))

using QueryRing = Ring<HEDDLE_RECORD(queries.full), HEDDLE_RECORD(queries.empty)>;
using KeyRing = Ring<HEDDLE_RECORD(keys.full), HEDDLE_RECORD(keys.empty)>;
using ValueRing = Ring<HEDDLE_RECORD(values.full), HEDDLE_RECORD(values.empty)>;
using RawRing = Ring<HEDDLE_RECORD(raw.ring.full), HEDDLE_RECORD(raw.ring.empty)>;
using PlanRing = Ring<HEDDLE_RECORD(planRing.full), HEDDLE_RECORD(planRing.empty)>;

constexpr uint32_t kVerdict = HEDDLE_RECORD(verdict), kSecondPass = HEDDLE_RECORD(isSecondPass);
constexpr uint32_t kPlannerItem = HEDDLE_RECORD(plannerItem), kLoaderItem = HEDDLE_RECORD(loaderItem);
constexpr uint32_t kSplitLimits = HEDDLE_RECORD(splitLimits), kNotedUnit = HEDDLE_RECORD(notedUnit);
constexpr uint32_t kLastRound = HEDDLE_RECORD(lastRound), kPreviousItem = HEDDLE_RECORD(previousItem);
constexpr uint32_t kWalkPlace = HEDDLE_RECORD(walkPlace);

DEV uint32_t itemHeader(int32_t slot) { return recordAt<ItemHeader>(HEDDLE_RECORD(items), slot); }
DEV uint32_t tileHeader(int32_t slot) { return recordAt<TileHeader>(HEDDLE_RECORD(tiles), slot); }
DEV uint32_t rangeOf(int32_t consumer) { return recordAt<TileRange>(HEDDLE_RECORD(ranges), consumer); }
DEV uint32_t planEntry(int32_t slot) { return recordAt<PlanEntry>(HEDDLE_RECORD(plan), slot); }
DEV uint32_t rawEnd(int32_t slot) { return HEDDLE_RECORD(raw.isEnd) + slot * 4; }
DEV uint32_t redoWord(int32_t number) { return HEDDLE_RECORD(redoBits) + number * 4; }

// Fields of an item that lies there, or of an entry of the plan.
DEV uint32_t flagsOf(uint32_t item) { return item + HEDDLE_OFFSET(ItemHeader, flags); }
DEV uint32_t noteOf(uint32_t item) { return item + HEDDLE_OFFSET(ItemHeader, note); }

constexpr uint32_t kQueryTile = kSharedBase + KernelTraits::kSmemQ;
constexpr uint32_t kKeyTile = kSharedBase + KernelTraits::kSmemK;
constexpr uint32_t kValueTile = kSharedBase + KernelTraits::kSmemV;
constexpr uint32_t kRawTile = kSharedBase + KernelTraits::kSmemRaw; // of values as they arrive, if not in their ring

constexpr uint32_t kTotals = kSharedBase + KernelTraits::kSmemTotals; // of the output (sm90_totals.cuh)
constexpr int kConsumerTotalBytes = totalBytes(kConsumerRows, KernelTraits::kValueDim);

constexpr int kQueryTileBytes = tileBytes(KernelTraits::kBlockM, KernelTraits::kHeadDim, kElementBytes);
constexpr int kKeyTileBytes = tileBytes(KernelTraits::kBlockN, KernelTraits::kHeadDim, kElementBytes);
constexpr int kArrivingBytes = tileBytes(KernelTraits::kBlockN, KernelTraits::kValueDim, kElementBytes);
constexpr int kValueTileBytes = Values::kAreTurned ? turnedBytes(KernelTraits::kValueDim) : kArrivingBytes;
constexpr int kRawTileBytes = Values::kAreTurned ? kArrivingBytes : 0;

static_assert(kQueryTileBytes == KernelTraits::kSmemStageBytesQ && kKeyTileBytes == KernelTraits::kSmemStageBytesK &&
                  kValueTileBytes == KernelTraits::kSmemStageBytesV &&
                  kRawTileBytes == KernelTraits::kSmemStageBytesRaw,
              "slots are planned as large as tiles");
static_assert(areApart({{KernelTraits::kSmemBarriers, sizeof(ForwardRecords)},
                        {KernelTraits::kSmemQ, kQueryStages * kQueryTileBytes},
                        {KernelTraits::kSmemK, kStages * kKeyTileBytes},
                        {KernelTraits::kSmemV, kValueStages * kValueTileBytes},
                        {KernelTraits::kSmemRaw, kRawStages * kRawTileBytes},
                        {KernelTraits::kSmemTotals,
                         KernelTraits::kFlushTiles > 0 ? kConsumers *kConsumerTotalBytes : 0}},
                       KernelTraits::kSmemBytes),
              "records and rings lie apart in the shared memory that is planned");

DEV bool hasBit(int32_t flags, int bit) { return flags >> bit & 1; }

// The item whose header lies there. Read again where it is needed rather than kept: registers are scarce in the loops.
DEV WorkItem readItem(uint32_t from) {
  const auto header = loadRecord<ItemHeader>(from);
  WorkItem item;
  item.batch = header.place.batch;
  item.head = header.place.head;
  item.firstRow = header.place.firstRow;
  item.queryRate = item.rateOfWord(header.place.rateOrEnd);
  item.variant = header.variant;
  item.kvHead = header.kvHead;
  return item;
}

// The lanes of one warp take one slot of every ring each, which is faster and shorter than one thread's loops.
DEV void initShared(int32_t lane) {
  static_assert(kMaxStages <= 32 && kPlanSlots <= 32 && kRedoWords == 32, "a lane for every slot and word");
  if (lane < kQueryStages)
    QueryRing::init(lane, 1, kConsumerWarps);
  if (lane < kStages)
    KeyRing::init(lane, 1, kConsumerWarps);
  if (lane < kValueStages)
    ValueRing::init(lane, Values::kAreTurned ? kTransposerWarps : 1, kConsumerWarps);
  if (Values::kAreTurned && lane < kRawStages)
    RawRing::init(lane, 1, kTransposerWarps);
  if (lane < kPlanSlots)
    PlanRing::init(lane, 1, 1);
  if (lane == 0) {
    CellBits::clear();
    ptx::initBarrier(kVerdict, kConsumerWarps);
    ptx::storeShared4(kSecondPass, 0);
  }
  if (KernelTraits::kSoftmax == kSoftmaxAnchored)
    ptx::storeShared4(redoWord(lane), 0);
  ptx::fenceBarrierInit();
}

} // namespace heddle
