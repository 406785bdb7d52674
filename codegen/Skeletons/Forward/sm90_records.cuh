// What the warps of a block of the sm90 forward kernel tell each other beside the tiles: the barriers of the rings, and
// what is said of items and key tiles. Read alike by NVRTC and by the host's compiler.
#pragma once

#include "Shared/shared_records.cuh"
#include "Shared/sm90_layout.cuh"

namespace heddle {
namespace sm90 {

constexpr int kPlanSlots = 8;

// Words of marks: an item has a bit by its ordinal, and is done again if another one that shares the bit must be. Of bytes, and
// where values are turned over, barriers have half of them.
constexpr int redoWords(bool areHalved) { return areHalved ? 16 : 32; }

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

struct alignas(16) ItemPlace {
  int32_t batch, head, firstRow;
  int32_t rateOrEnd; // of the rows: their rate, or the end of their document (ItemEnd)
};

struct ItemHeader {
  ItemPlace place;
  int32_t variant, flags;
  int32_t note; // of a split its record (split_record.cuh), of a whole item its ordinal in the block
  int32_t kvHead;
};

struct TileHeader {
  int32_t firstKey, flags;
};

// What the pairs of k and v of a key are to be multiplied by.
struct KeyFactors {
  float ofKey, ofValue, unused[2];
};
static_assert(sizeof(KeyFactors) == kKeyFactorBytes, "as pair_rows.cuh writes them");

// A key tile on its way to the loader: number in its class, residue and tensor map of the class, first key.
struct alignas(16) PlannedTile {
  int32_t number, place, firstKey, unused;
};

// An item or a mark (kIsItem set) or a tile, whose flags are those of the entry.
union PlanEntry {
  ItemHeader item;
  PlannedTile tile;
};
static_assert(sizeof(PlannedTile) <= HEDDLE_OFFSET(ItemHeader, flags), "a planned tile leaves room for its flags");

// Key tiles of a consumer by their numbers: those that it visits, and those of them that it need not mask.
struct alignas(16) TileRange {
  static constexpr int kBegin = 0, kEnd = 1, kFullBegin = 2, kFullEnd = 3;
  int32_t at[4]; // members would all be tested, of an array no more than decide
};

struct TileLimits {
  int32_t first, end;
};
struct LastRound {
  int32_t firstItem, splits; // splits of each item
};
struct NotedUnit {
  int32_t number, record; // of the item, of its split
};
struct WalkPlace {
  int32_t branch, place; // place of the class, as of a planned tile
};

// Tiles of values on their way to be turned over.
struct RawValues {
  RingBarriers<kMaxRawStages> ring;
  int32_t isEnd[kMaxRawStages]; // not a tile: nothing follows
};

struct ForwardRecords {
  RingBarriers<kMaxQueryStages> queries;
  RingBarriers<kMaxStages> keys, values;
  Barrier verdict;
  int32_t isSecondPass; // items that the consumers marked are planned again
  int32_t unused;
  ItemHeader items[kMaxQueryStages];
  TileHeader tiles[kMaxStages];
  union {
    uint32_t redoBits[redoWords(false)]; // of items by their ordinals
    struct {
      uint32_t fewerRedoBits[redoWords(true)];
      RawValues raw;
      Barrier queryTileEmpty; // of a query tile that is free before its header
    };
  };
  ItemHeader plannerItem; // in the making
  TileLimits splitLimits; // of the split in the making
  union {
    LastRound lastRound;
    int32_t previousItem; // of a dynamic grid, which cuts no last round
  };
  NotedUnit notedUnit;   // in the making
  WalkPlace walkPlace;   // where the walk stands
  ItemHeader loaderItem; // whose tiles are loaded
  TileRange ranges[kMaxConsumers];
  PlanEntry plan[kPlanSlots]; // what the loader is told, in order
  RingBarriers<kPlanSlots> planRing;
};
static_assert(sizeof(ForwardRecords) <= kBarrierBytes, "barriers and records fit the region planned for them");

} // namespace sm90
} // namespace heddle
