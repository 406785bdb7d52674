// Shared memory of the sm90 forward kernel: tiles, the barriers of the rings, and the headers that the producer
// sends along with each query tile and each key tile. Addresses are constants: derived from a symbol they would be
// computed again at every step.
#pragma once

#include "Shared/sm90_block.cuh"

namespace heddle {

constexpr int kConsumers = KernelTraits::kBlockM / kConsumerRows;
constexpr int kConsumerThreads = kConsumers * kWarpgroupThreads;
constexpr int kConsumerWarps = kConsumers * 4, kMaxConsumerWarps = kMaxConsumers * 4;
constexpr int kThreads = kConsumerThreads + kWarpgroupThreads;
constexpr int kStages = KernelTraits::kStages;
constexpr int kQueryStages = KernelTraits::kQueryStages;

constexpr uint32_t kBarriers = kSharedBase + KernelTraits::kSmemBarriers;
constexpr uint32_t kQueryFull = kBarriers;
constexpr uint32_t kQueryEmpty = kQueryFull + 8 * kMaxQueryStages;
constexpr uint32_t kKeyFull = kQueryEmpty + 8 * kMaxQueryStages;
constexpr uint32_t kKeyEmpty = kKeyFull + 8 * kMaxStages;
constexpr uint32_t kValueFull = kKeyEmpty + 8 * kMaxStages;
constexpr uint32_t kValueEmpty = kValueFull + 8 * kMaxStages;
constexpr uint32_t kVerdict = kValueEmpty + 8 * kMaxStages;
// 1: items that the consumers marked are planned again
constexpr uint32_t kSecondPass = kVerdict + 8;
constexpr uint32_t kItemHeaders = kVerdict + 16;
constexpr uint32_t kItemHeaderBytes = 32;
constexpr uint32_t kTileHeaders = kItemHeaders + kItemHeaderBytes * kMaxQueryStages;
constexpr uint32_t kTileHeaderBytes = 8;
constexpr uint32_t kRedoBits = kTileHeaders + kTileHeaderBytes * kMaxStages;
constexpr int kRedoWords = 32;
constexpr uint32_t kPlannerItem = kRedoBits + 4 * kRedoWords;      // header of the item in the making
constexpr uint32_t kSplitLimits = kPlannerItem + kItemHeaderBytes; // key tiles of the split in the making: first, end
constexpr uint32_t kLastRound = kSplitLimits + 8;                  // first item, splits of each (ItemSequence)
constexpr uint32_t kPreviousItem = kLastRound;                     // in a dynamic grid, which cuts no last round
constexpr uint32_t kNotedUnit = kSplitLimits + 16;                 // item number and record of the split in the making
// branch in which the walk stands, place of its class
constexpr uint32_t kWalkPlace = kNotedUnit + 8;
constexpr uint32_t kLoaderItem = kSplitLimits + 32;          // header of the item that is loaded
constexpr uint32_t kRanges = kLoaderItem + kItemHeaderBytes; // of each consumer: begin, end, full begin, full end
constexpr uint32_t kRangeBytes = 16;
constexpr uint32_t kPlan = kRanges + kMaxConsumers * kRangeBytes; // what the loader is told, in order
constexpr int kPlanSlots = 8;
constexpr uint32_t kPlanFull = kPlan + kItemHeaderBytes * kPlanSlots;
constexpr uint32_t kPlanEmpty = kPlanFull + 8 * kPlanSlots;
constexpr uint32_t kBarrierRegionEnd = kPlanEmpty + 8 * kPlanSlots;
static_assert(kBarrierRegionEnd - kBarriers <= kBarrierBytes, "barriers and headers fit the region planned for them");

constexpr uint32_t kQueryTile = kSharedBase + KernelTraits::kSmemQ;
constexpr uint32_t kKeyTile = kSharedBase + KernelTraits::kSmemK;
constexpr uint32_t kValueTile = kSharedBase + KernelTraits::kSmemV;

constexpr int kQueryTileBytes = tileBytes(KernelTraits::kBlockM, KernelTraits::kHeadDim, kElementBytes);
constexpr int kKeyTileBytes = tileBytes(KernelTraits::kBlockN, KernelTraits::kHeadDim, kElementBytes);
constexpr int kValueTileBytes = tileBytes(KernelTraits::kBlockN, KernelTraits::kValueDim, kElementBytes);

// Header of an item: batch, head, first row, query rate (or ItemEnd); then variant, flags, the note, kv head. The note
// is the record of a split (sm90_split_kv.cuh), of a whole item its ordinal in the block.
constexpr uint32_t kItemFlagsOffset = 20, kItemNoteOffset = 24;

// What consumers must know of a tile or an item beyond its data, one bit for each consumer where it says so.
namespace flag {
constexpr int kMasked = 0;     // 4 bits: some pair of this tile is not kept
constexpr int kNeeded = 4;     // 4 bits: the consumer has pairs in the tile; of a tile that was sent: in the next one
constexpr int kNextExists = 8; // another tile of this item follows
constexpr int kIsEnd = 9;      // not an item: nothing follows
constexpr int kIsVerdict = 10; // not an item: report what must be done again
constexpr int kIsExact = 11;   // every maximum is looked for
constexpr int kIsItem = 12;    // an item or a mark, not a tile
constexpr int kIsSplit = 13;   // an item's split
constexpr int kContinues = 14; // not the first split of the rows: the carry is not its own
constexpr int kBranch = 16;    // the rest
} // namespace flag

DEV bool hasBit(int32_t flags, int bit) { return flags >> bit & 1; }

// The item whose header lies there. Read again where it is needed rather than kept: registers are scarce in the loops.
DEV WorkItem readItem(uint32_t from) {
  int32_t place[4], rest[4];
  ptx::loadShared16(from, place);
  ptx::loadShared16(from + 16, rest);
  WorkItem item;
  item.batch = place[0];
  item.head = place[1];
  item.firstRow = place[2];
  item.queryRate = item.rateOfWord(place[3]);
  item.variant = rest[0];
  item.kvHead = rest[3];
  return item;
}

// By the lanes of one warp: each takes one slot of every ring, which is faster and shorter than one thread's loops.
DEV void initShared(int32_t lane) {
  static_assert(kMaxStages <= 32 && kPlanSlots <= 32 && kRedoWords == 32, "a lane for every slot and word");
  if (lane < kQueryStages) {
    ptx::initBarrier(kQueryFull + 8 * lane, 1);
    ptx::initBarrier(kQueryEmpty + 8 * lane, kConsumerWarps);
  }
  if (lane < kStages) {
    ptx::initBarrier(kKeyFull + 8 * lane, 1);
    ptx::initBarrier(kKeyEmpty + 8 * lane, kConsumerWarps);
    ptx::initBarrier(kValueFull + 8 * lane, 1);
    ptx::initBarrier(kValueEmpty + 8 * lane, kConsumerWarps);
  }
  if (lane < kPlanSlots) {
    ptx::initBarrier(kPlanFull + 8 * lane, 1);
    ptx::initBarrier(kPlanEmpty + 8 * lane, 1);
  }
  if (lane == 0) {
    CellBits::clear();
    ptx::initBarrier(kVerdict, kConsumerWarps);
    ptx::storeShared4(kSecondPass, 0);
  }
  if (KernelTraits::kSoftmax == kSoftmaxAnchored)
    ptx::storeShared4(kRedoBits + 4 * lane, 0);
  ptx::fenceBarrierInit();
}

} // namespace heddle
