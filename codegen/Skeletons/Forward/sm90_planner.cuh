// The planning warp: walks the work items of the block and their key tiles, ahead of the loads, and writes one after
// the other into the plan. Decoding an item and finding its ranges takes thousands of clocks; here nobody waits for
// them.
#pragma once

#include "Forward/sm90_items.cuh"
#include "Forward/sm90_listed_tiles.cuh"

namespace heddle {

template <class K> class Planner {
  using Params = ParamsOf<K>;
  using ConsumerTileWalk = heddle::ConsumerTileWalk<K>;
  using ItemSequence = heddle::ItemSequence<K>;

public:
  DEV explicit Planner(const Params &p) : p(p), plan(kFills) {}

  // All items, then those that the consumers marked in the first pass.
  DEV void run() {
#pragma unroll 1
    for (;;) {
      if (!isSecondPass<K>() || isAnyMarked())
        planAll();
      if (!K::kMayRedo || isSecondPass<K>())
        break;
      writeMark(flag::kIsVerdict);
      ptx::waitParity(K::kVerdict, 0);
      __syncwarp();
      if (isWriter())
        ptx::storeShared4(K::kSecondPass, 1);
      __syncwarp();
    }
    writeMark(flag::kIsEnd);
  }

private:
  // The items of this block; in the second pass those that the consumers marked.
  DEV void planAll() {
    ItemSequence sequence(p);
#pragma unroll 1
    for (WorkUnit unit = sequence.next(); unit.exists(); unit = following(sequence)) {
      if (K::kHasSplits)
        noteUnit(unit);
      const int32_t ordinal = K::kMayRedo ? sequence.ordinal() : 0;
      WorkItem<K> item;
      if (isWanted(unit, ordinal) && decodeWorkItem(p, unit.number, item) && enterRowGroup(item, unit.record))
        planItem(item, ordinal);
    }
  }

  // The splits of an item that fell apart and that nobody shares, then splits that blocks share, then this block's
  // items.
  DEV WorkUnit following(ItemSequence &sequence) const {
    if constexpr (K::kSplitsLong) {
      const WorkUnit unit = notedUnit();
      const SplitRecord record = unit.record;
      if (record.isPending())
        return WorkUnit{unit.number, record.started()};
      if (record.isAlone() && !record.isLast())
        return WorkUnit{unit.number, record.following()};
      if (record.isAlone() && record.group() + 1 < K::kConsumers)
        return WorkUnit{unit.number, record.followingGroup()};
      if (!isSecondPass<K>()) {
        const WorkUnit split = takeSplit(p);
        if (split.exists())
          return split;
      }
    }
    return sequence.next();
  }

  DEV static bool isAnyMarked() {
    static_assert(32 % K::kRedoWords == 0, "words are for lanes to read");
    return __any_sync(kWholeWarp, ptx::loadShared4(K::redoWord(ptx::rereadThreadIndex() % K::kRedoWords)) != 0);
  }

  // Splits are exact. Also true for ordinals that share a bit with a marked one: computing an item again does no harm.
  DEV static bool isWanted(const WorkUnit &unit, int32_t ordinal) {
    return !isSecondPass<K>() || (isMarked(ordinal) && !unit.record.isSplit());
  }

  DEV static bool isMarked(int32_t ordinal) {
    return ptx::loadShared4(K::redoWord(ordinal / 32 % K::kRedoWords)) >> ordinal % 32 & 1;
  }

  // An entry is handed over when the next one is known, because its flags speak of that; meanwhile it waits in its
  // slot.
  DEV void planItem(const WorkItem<K> &item, int32_t ordinal) {
    noteItem(item, isSecondPass<K>() << flag::kIsExact | 1 << flag::kIsItem, ordinal);
    if (!K::kHasSplits)
      writeItem();
    ConsumerTileWalk walk(p);
    bool isPlaced = !K::kHasSplits;
#pragma unroll 1
    for (;;) {
      const ConsumerTile tile = walk.next();
      if (!isPlaced) {
        isPlaced = true;
        if (!placeSplit(walk))
          return;
        writeItem();
        continue;
      }
      const uint32_t present = __ballot_sync(kWholeWarp, tile.exists());
      handOver(__shfl_sync(kWholeWarp, upcoming(tile), firstOf(present)));
      if (present == 0)
        return;
      writeTiles(tile, present);
    }
  }

  // The rows of a split begin at those of its row group. False: there are none.
  DEV bool enterRowGroup(WorkItem<K> &item, SplitRecord record) const {
    if (K::kSplitsLong)
      item.firstRow += record.group() * kConsumerRows * item.queryRate;
    return !K::kSplitsLong || item.firstRow < item.endRow(p);
  }

  // The walk has found the first tile of the whole item, or of its row group. Of a split, limits are set; the walk
  // finds its first tile again, which need not be kept meanwhile. False: the item falls apart into splits, or, in the
  // second pass, did so in the first, exactly.
  DEV bool placeSplit(ConsumerTileWalk &walk) const {
    const TileStretch longest = walk.longestStretch();
    if constexpr (K::kSplitsLong) {
      const WorkUnit unit = notedUnit();
      const int32_t splits = splitsOf<K>(longest.count);
      if (!unit.record.isSplit() && splits > 1) {
        if (!isSecondPass<K>())
          noteUnit(WorkUnit{unit.number, shareSplits(p, unit.number, splitsOfLane(walk))});
        return false;
      }
      if (unit.record.isSplit())
        noteUnit(WorkUnit{unit.number, unit.record.withSplits(splits)});
    }
    const SplitRecord record = notedUnit().record;
    if (record.isSplit())
      noteItemOfSplit(record, longest);
    walk.restart();
    return true;
  }

  // The splits of the row group that this lane stands for; none, if it has no rows.
  DEV int32_t splitsOfLane(const ConsumerTileWalk &walk) const {
    const WorkItem<K> item = readItem<K>(K::kPlannerItem);
    const int32_t lane = ptx::rereadLane();
    const bool hasRows = lane < K::kConsumers && item.firstRow + lane * kConsumerRows * item.queryRate < item.endRow(p);
    return hasRows ? splitsOf<K>(walk.stretchOfLane()) : 0;
  }

  // Kept in shared memory like the item, all lanes read it.
  DEV static WorkUnit notedUnit() {
    const auto noted = loadRecord<NotedUnit>(K::kNotedUnit);
    return WorkUnit{noted.number, SplitRecord{static_cast<uint32_t>(noted.record)}};
  }

  DEV static void noteUnit(const WorkUnit &unit) {
    __syncwarp();
    if (isWriter())
      storeRecord(K::kNotedUnit, NotedUnit{unit.number, static_cast<int32_t>(unit.record.bits)});
    __syncwarp();
  }

  DEV static void noteItemOfSplit(SplitRecord record, const TileStretch &stretch) {
    __syncwarp();
    if (isWriter()) {
      const int32_t flags =
          1 << flag::kIsItem | 1 << flag::kIsExact | 1 << flag::kIsSplit | (record.split() > 0) << flag::kContinues;
      ptx::storeShared4(flagsOf(K::kPlannerItem), flags);
      ptx::storeShared4(noteOf(K::kPlannerItem), static_cast<int32_t>(record.bits));
      storeRecord(K::kSplitLimits, TileLimits{record.firstTile(stretch), record.following().firstTile(stretch)});
    }
    __syncwarp();
  }

  // What is said once for the whole item is kept in shared memory: registers are scarce in the loop.
  DEV static void noteItem(const WorkItem<K> &item, int32_t flags, int32_t ordinal) {
    __syncwarp(); // all lanes are done with the item before
    if (isWriter()) {
      storeRecord(K::kPlannerItem, ItemHeader{{item.batch, item.head, item.firstRow, item.wordOfRate(item.queryRate)},
                                              item.variant,
                                              flags,
                                              ordinal,
                                              item.kvHead});
      if (K::kHasSplits)
        storeRecord(K::kSplitLimits, TileLimits{0, kNoTile});
    }
    __syncwarp();
  }

  DEV static int32_t upcoming(const ConsumerTile &tile) {
    constexpr int32_t kAllNeeded = 0xf << flag::kNeeded;
    return tile.exists() ? (tile.flags & kAllNeeded) | 1 << flag::kNextExists : 0;
  }

  // The lane of the lowest bit, any lane if there is none.
  DEV static int32_t firstOf(uint32_t lanes) { return __ffs(lanes) - 1 & 31; }

  using Plan = Pipeline<kPlanSlots, typename K::PlanRing, PackedRingCursor>;

  DEV static uint32_t awaitSlot(const Plan &entry) {
    entry.acquire();
    return K::planEntry(entry.slot());
  }

  DEV void writeItem() const {
    if (isWriter()) {
      const auto item = loadRecord<ItemHeader>(K::kPlannerItem);
      storeRecord(awaitSlot(plan), item);
    }
  }

  // The tiles of all lanes, of which `present` have one, each into its slot. All but the last are handed over by the
  // lane that has them; the last one goes to the writer, which completes it later: who writes an entry also arrives for
  // it.
  DEV void writeTiles(const ConsumerTile &tile, uint32_t present) {
    const int32_t lane = ptx::rereadLane();
    const uint32_t before = present & ((1u << lane) - 1), behind = present & ~before & ~(1u << lane);
    const int32_t following = __shfl_sync(kWholeWarp, upcoming(tile), firstOf(behind));
    const ConsumerTile last = tile.ofLane(31 - __clz(present));
    if (tile.exists() && behind != 0) {
      const Plan entry = plan.after(__popc(before));
      writeTile(entry, tile, following);
      ptx::arrive(entry.full());
    }
    plan.advance(__popc(present) - 1);
    if (isWriter())
      writeTile(plan, last, 0);
  }

  DEV static void writeTile(const Plan &entry, const ConsumerTile &tile, int32_t following) {
    const uint32_t to = awaitSlot(entry);
    storeRecord(to, PlannedTile{tile.number, tile.place, tile.firstKey, 0});
    ptx::storeShared4(flagsOf(to), (tile.flags & ~(0xf << flag::kNeeded)) | following);
  }

  // Completes the entry in the slot, which the writer has written, by what it must say of the next one.
  DEV void handOver(int32_t upcomingFlags) {
    if (isWriter()) {
      const uint32_t flags = flagsOf(K::planEntry(plan.slot()));
      ptx::storeShared4(flags, ptx::loadShared4(flags) | upcomingFlags);
      ptx::arrive(plan.full());
    }
    plan.next();
  }

  DEV void writeMark(int flag) {
    if (isWriter()) {
      const uint32_t to = awaitSlot(plan);
      ptx::storeShared4(flagsOf(to), 1 << flag::kIsItem | 1 << flag);
      ptx::arrive(plan.full());
    }
    plan.next();
  }

  const Params &p;
  Plan plan;
};

} // namespace heddle
