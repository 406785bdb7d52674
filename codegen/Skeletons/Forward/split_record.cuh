// What a block is told of a split of an item: which one of how many, in one word.
#pragma once

#include "Shared/sm90_layout.cuh"
#include "Shared/tile_numbers.cuh"

namespace heddle {

// Key tiles [first, first + count) by their numbers.
struct TileStretch {
  int32_t first, count;
};

// Which split of how many, of which row group, and the slot of its split 0. Zero: the item in one piece. Pending: the
// splits are shared, this one is next. Alone: there were not slots enough and one block computes all splits, one after
// the other, in two slots of its own.
struct SplitRecord {
  uint32_t bits;

  DEV static SplitRecord make(int32_t slot, int32_t group, int32_t splits, int32_t split) {
    return SplitRecord{static_cast<uint32_t>(slot << kSlotAt | group << kGroupAt | splits << kSplitsAt | split)};
  }
  DEV int32_t split() const { return bits & kSplitMask; }
  DEV int32_t splits() const { return bits >> kSplitsAt & kSplitMask; }
  DEV int32_t group() const { return bits >> kGroupAt & 3; }
  DEV int32_t slot() const { return bits >> kSlotAt & kSlotMask; }
  DEV bool isAlone() const { return bits >> kAloneAt; }
  DEV bool isPending() const { return bits >> kPendingAt & 1; }
  DEV bool isSplit() const { return bits != 0; }
  DEV bool isLast() const { return split() + 1 == splits(); }

  DEV SplitRecord withSplits(int32_t splits) const {
    return SplitRecord{(bits & ~(kSplitMask << kSplitsAt)) | splits << kSplitsAt};
  }
  DEV SplitRecord alone() const { return SplitRecord{bits | 1u << kAloneAt}; }
  DEV SplitRecord pending() const { return SplitRecord{bits | 1u << kPendingAt}; }
  DEV SplitRecord started() const { return SplitRecord{bits & ~(1u << kPendingAt)}; }
  DEV SplitRecord following() const { return SplitRecord{bits + 1}; }
  // What is alone goes on with the next row group, whose splits are not known yet.
  DEV SplitRecord followingGroup() const { return make(slot(), group() + 1, 1, 0).alone(); }

  // Cuts are where the longest range is cut evenly; what lies before or behind it belongs to the ends.
  DEV int32_t firstTile(const TileStretch &longest) const {
    if (split() == 0)
      return 0;
    return split() >= splits() ? kNoTile : longest.first + longest.count * split() / splits();
  }

private:
  static constexpr int kSplitsAt = 7, kGroupAt = 14, kSlotAt = 16, kPendingAt = 30, kAloneAt = 31;
  static constexpr uint32_t kSplitMask = 127, kSlotMask = 0x3fff;
  static_assert(sm90::kMaxSplits <= 127, "the number behind the last split fits as well");
};

} // namespace heddle
