// The planning warp: walks the work items of the block and their key tiles, ahead of the loads, and writes one after the
// other into the plan. Decoding an item and finding its ranges takes thousands of clocks; here nobody waits for them.
#pragma once

namespace heddle {

// A plan slot holds the eight item words of an item or a mark (kIsItem set), or of a tile: number in its class, flags,
// place of its class, first key. Flags lie in the same word of both.
constexpr int kPlanFlagsOffset = 20, kPlanNumberOffset = 0, kPlanPlaceOffset = 4, kPlanFirstKeyOffset = 8;

class Planner {
public:
  DEV explicit Planner(const KernelParams &p) : p(p), plan(1) {}

  // All items, then those that the consumers marked in the first pass.
  DEV void run() {
#pragma unroll 1
    for (int pass = 0; pass <= kMayRedo; ++pass) {
      if (pass == 0 || isAnyMarked())
        planAll(pass > 0);
      if (pass < kMayRedo) {
        writeMark(words::kIsVerdict);
        ptx::waitParity(kVerdict, 0);
      }
    }
    writeMark(words::kIsEnd);
  }

private:
  // The items of this block; again: those that the consumers marked.
  DEV void planAll(bool again) {
    ItemSequence sequence(p, again);
#pragma unroll 1
    for (Unit unit = sequence.next(); unit.exists(); unit = following(sequence, again)) {
      if (kHasParts)
        noteUnit(unit);
      const int32_t ordinal = kMayRedo ? sequence.ordinal() : 0;
      WorkItem item;
      if ((!kMayRedo || !again || (isMarked(ordinal) && !unit.record.isPart())) && decodeWorkItem(p, unit.number, item))
        planItem(item, ordinal, again);
    }
  }

  // The other parts of an item that nobody shares, then this block's items, then parts that others share.
  DEV Unit following(ItemSequence &sequence, bool again) const {
    if constexpr (kSplitsLong) {
      const Unit unit = notedUnit();
      if (unit.record.isAlone() && !unit.record.isLast())
        return Unit{unit.number, unit.record.following()};
    }
    Unit next = sequence.next();
    if constexpr (kSplitsLong)
      if (!next.exists() && !again)
        return takePart(p);
    return next;
  }

  DEV static bool isAnyMarked() {
    static_assert(kRedoWords == 32, "one word for each lane");
    return __any_sync(kWholeWarp, ptx::loadShared4(kRedoBits + ptx::rereadThreadIndex() % 32 * 4) != 0);
  }

  // Also true for ordinals that share a bit with a marked one: computing an item again does no harm.
  DEV static bool isMarked(int32_t ordinal) {
    return ptx::loadShared4(kRedoBits + ordinal / 32 % kRedoWords * 4) >> ordinal % 32 & 1;
  }

  // An entry is handed over when the next one is known, because its flags speak of that; meanwhile it waits in its slot.
  DEV void planItem(const WorkItem &item, int32_t ordinal, bool again) {
    noteItem(item, again << words::kIsExact | 1 << words::kIsItem, ordinal);
    if (!kHasParts)
      writeItem();
    GroupTileWalk walk(p);
    bool isPlaced = !kHasParts;
#pragma unroll 1
    for (;;) {
      GroupTile tile = walk.next();
      if (!isPlaced) {
        isPlaced = true;
        if (!placePart(walk, again))
          return;
        writeItem();
        continue;
      }
      handOver(tile);
      if (!tile.exists())
        return;
      writeTile(tile);
    }
  }

  // The walk has found the first tile of the whole item. If that is to be cut, or is a part already, limits are set; the
  // walk finds its first tile again, which need not be kept meanwhile. False: again, but nothing is to be done, because
  // the parts of the item are exact.
  DEV bool placePart(GroupTileWalk &walk, bool again) const {
    const TileStretch longest = walk.longestStretch();
    if constexpr (kSplitsLong) {
      const int32_t parts = min(longest.count / kSplitTiles, kMaxParts);
      if (again && parts > 1)
        return false;
      const Unit unit = notedUnit();
      if (!unit.record.isPart() && parts > 1)
        noteUnit(Unit{unit.number, shareParts(p, unit.number, parts)});
    }
    const PartRecord record = notedUnit().record;
    if (record.isPart())
      noteItemOfPart(record, longest);
    walk.restart();
    return true;
  }

  // Kept in shared memory like the item, all lanes read it.
  DEV static Unit notedUnit() {
    int32_t unit[2];
    ptx::loadShared8(kNotedUnit, unit);
    return Unit{unit[0], PartRecord{static_cast<uint32_t>(unit[1])}};
  }

  DEV static void noteUnit(const Unit &unit) {
    __syncwarp();
    if (isWriter())
      ptx::storeShared8(kNotedUnit, unit.number, static_cast<int32_t>(unit.record.bits));
    __syncwarp();
  }

  DEV static void noteItemOfPart(PartRecord record, const TileStretch &stretch) {
    __syncwarp();
    if (isWriter()) {
      const int32_t flags = 1 << words::kIsItem | 1 << words::kIsExact | 1 << words::kIsPart |
                            (record.part() > 0) << words::kContinues;
      ptx::storeShared4(kPlannerWords + kItemFlagsOffset, flags);
      ptx::storeShared4(kPlannerWords + kItemNoteOffset, static_cast<int32_t>(record.bits));
      ptx::storeShared8(kPartLimits, record.firstTile(stretch), record.following().firstTile(stretch));
    }
    __syncwarp();
  }

  // What is said once for the whole item is kept in shared memory: registers are scarce in the loop.
  DEV static void noteItem(const WorkItem &item, int32_t flags, int32_t ordinal) {
    __syncwarp(); // all lanes are done with the item before
    if (isWriter()) {
      ptx::storeShared16(kPlannerWords, item.batch, item.head, item.firstRow, item.queryRate);
      ptx::storeShared16(kPlannerWords + 16, item.variant, flags, ordinal, item.kvHead);
      if (kHasParts)
        ptx::storeShared8(kPartLimits, 0, kNoTile);
    }
    __syncwarp();
  }

  DEV static int32_t upcoming(const GroupTile &tile) {
    constexpr int32_t kAllNeeded = 0xf << words::kNeeded;
    return (tile.flags & kAllNeeded) | tile.exists() << words::kNextExists;
  }

  DEV uint32_t awaitSlot() const {
    ptx::waitParity(kPlanEmpty + 8 * plan.slot(), plan.parity());
    return kPlan + kItemWordsBytes * plan.slot();
  }

  DEV void writeItem() const {
    if (isWriter()) {
      int32_t place[4], rest[4];
      ptx::loadShared16(kPlannerWords, place);
      ptx::loadShared16(kPlannerWords + 16, rest);
      const uint32_t to = awaitSlot();
      ptx::storeShared16(to, place[0], place[1], place[2], place[3]);
      ptx::storeShared16(to + 16, rest[0], rest[1], rest[2], rest[3]);
    }
  }

  DEV void writeTile(const GroupTile &tile) const {
    if (isWriter()) {
      const uint32_t to = awaitSlot();
      ptx::storeShared16(to, tile.number, tile.place, tile.firstKey, 0);
      ptx::storeShared4(to + kPlanFlagsOffset, tile.flags & ~(0xf << words::kNeeded));
    }
  }

  // Completes the entry in the slot by what it must say of the next one.
  DEV void handOver(const GroupTile &following) {
    if (isWriter()) {
      const uint32_t flags = kPlan + kItemWordsBytes * plan.slot() + kPlanFlagsOffset;
      ptx::storeShared4(flags, ptx::loadShared4(flags) | upcoming(following));
      ptx::arrive(kPlanFull + 8 * plan.slot());
    }
    plan.next();
  }

  DEV void writeMark(int flag) {
    if (isWriter()) {
      const uint32_t to = awaitSlot();
      ptx::storeShared4(to + kPlanFlagsOffset, 1 << words::kIsItem | 1 << flag);
      ptx::arrive(kPlanFull + 8 * plan.slot());
    }
    plan.next();
  }

  const KernelParams &p;
  PackedRingCursor<kPlanSlots> plan;
};

} // namespace heddle
