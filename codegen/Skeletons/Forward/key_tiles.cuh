// Enumerates the key tiles of one query tile, across ranges and branches, in the order in which they are
// loaded and used. Every thread of the CTA walks the same sequence, so no descriptor crosses threads.
#pragma once

#include "Forward/work_items.cuh"

namespace heddle {

// block_n keys: key i of the tile is row firstKey + i * keyRate(branch) of K and V.
struct KeyTile {
  int32_t firstKey; // negative: there is no tile
  int32_t branch;
  int32_t isMasked; // 1: some key is missing or some pair is not kept

  DEV bool exists() const { return firstKey >= 0; }
  // Keys are below this, whatever the lengths.
  static constexpr int32_t kBeyondAllKeys = 0x7fffffff;
  DEV static KeyTile none() { return KeyTile{-1, 0, 0}; }
};

class KeyTileWalk {
public:
  DEV KeyTileWalk(const PatternContext &context, const WorkItem &item)
      : context(context), variant(item.variant), tileFirst(context.qOrigin + item.firstRow),
        tileLast(context.qOrigin + item.lastRow) {
    enterBranch(0);
  }

  // The next tile; after the last one, KeyTile::none() for ever.
  DEV KeyTile next() {
    while (cursor == range.end) {
      if (branch == Pattern::kBranchCount)
        return KeyTile::none();
      range = Pattern::nextRange(context, variant, branch, tileFirst, tileLast, KernelTraits::kBlockN, range.end);
      cursor = range.begin;
      if (range.begin == kNoTile)
        enterBranch(branch + 1);
    }
    return describe(cursor++);
  }

private:
  static constexpr int32_t kNoTile = 0x7fffffff;

  DEV void enterBranch(int32_t number) {
    branch = number;
    range = KeyRange{0, 0, 0, 0, 0};
    cursor = 0;
    if (number < Pattern::kBranchCount)
      residue = Pattern::keyResidue(context, variant, number, tileFirst);
  }

  DEV KeyTile describe(int32_t number) const {
    int32_t rate = Pattern::keyRate(variant, branch);
    int32_t firstKey = residue + rate * number * KernelTraits::kBlockN;
    bool isFull = KernelTraits::kTilesAreWhole == 1 || (number >= range.fullBegin && number < range.fullEnd);
    bool reachesEnd = firstKey + rate * (KernelTraits::kBlockN - 1) >= context.seqlenK;
    return KeyTile{firstKey, branch, !isFull || reachesEnd};
  }

  const PatternContext &context;
  int32_t variant, tileFirst, tileLast;
  int32_t branch, residue, cursor;
  KeyRange range;
};

} // namespace heddle
