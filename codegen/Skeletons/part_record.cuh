// What a block is told of a part: which one of how many, in one word.
#pragma once

namespace heddle {

constexpr int kMaxParts = 64;
constexpr int32_t kNoTile = 0x7fffffff;

// Key tiles [first, first + count) by their numbers.
struct TileStretch {
  int32_t first, count;
};

// Which part of how many, of which row group, and the slot of its part 0. Zero: the item in one piece. Pending: the parts
// are shared, this one is next. Alone: there were not slots enough and one block computes all parts, one after the other,
// in two slots of its own.
struct PartRecord {
  uint32_t bits;

  DEV static PartRecord make(int32_t slot, int32_t group, int32_t parts, int32_t part) {
    return PartRecord{static_cast<uint32_t>(slot << kSlotAt | group << kGroupAt | parts << kPartsAt | part)};
  }
  DEV int32_t part() const { return bits & kPartMask; }
  DEV int32_t parts() const { return bits >> kPartsAt & kPartMask; }
  DEV int32_t group() const { return bits >> kGroupAt & 3; }
  DEV int32_t slot() const { return bits >> kSlotAt & kSlotMask; }
  DEV bool isAlone() const { return bits >> kAloneAt; }
  DEV bool isPending() const { return bits >> kPendingAt & 1; }
  DEV bool isPart() const { return bits != 0; }
  DEV bool isLast() const { return part() + 1 == parts(); }

  DEV PartRecord withParts(int32_t parts) const {
    return PartRecord{(bits & ~(kPartMask << kPartsAt)) | parts << kPartsAt};
  }
  DEV PartRecord alone() const { return PartRecord{bits | 1u << kAloneAt}; }
  DEV PartRecord pending() const { return PartRecord{bits | 1u << kPendingAt}; }
  DEV PartRecord started() const { return PartRecord{bits & ~(1u << kPendingAt)}; }
  DEV PartRecord following() const { return PartRecord{bits + 1}; }
  // What is alone goes on with the next row group, whose parts are not known yet.
  DEV PartRecord followingGroup() const { return make(slot(), group() + 1, 1, 0).alone(); }

  // Cuts are where the longest range is cut evenly; what lies before or behind it belongs to the ends.
  DEV int32_t firstTile(const TileStretch &longest) const {
    if (part() == 0)
      return 0;
    return part() >= parts() ? kNoTile : longest.first + longest.count * part() / parts();
  }

private:
  static constexpr int kPartsAt = 7, kGroupAt = 14, kSlotAt = 16, kPendingAt = 30, kAloneAt = 31;
  static constexpr uint32_t kPartMask = 127, kSlotMask = 0x3fff;
  static_assert(kMaxParts <= 127, "the number behind the last part fits as well");
};

} // namespace heddle
