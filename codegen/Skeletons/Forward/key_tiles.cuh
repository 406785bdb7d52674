// Enumerates the key tiles of one query tile, across ranges and branches, in the order in which they are
// loaded and used. Every thread of the CTA walks the same sequence, so no descriptor crosses threads.
#pragma once

#include "Forward/key_tile.cuh"
#include "Forward/work_items.cuh"
#include "Shared/range_walk.cuh"

namespace heddle {

class KeyTileWalk : RangeWalk<KeyColumns<KernelTraits::kBlockN>> {
public:
  DEV KeyTileWalk(const PatternContext &context, const WorkItem &item)
      : RangeWalk(context, {context.qOrigin + item.firstRow, context.qOrigin + item.lastRow}) {
    enter(item.variant);
  }

  // The next tile; after the last one, KeyTile::none() for ever.
  DEV KeyTile next() { return findRange() ? describe(at.tile++) : KeyTile::none(); }

private:
  DEV KeyTile describe(int32_t number) const {
    const int32_t rate = columnRate(), firstKey = at.residue + rate * number * KernelTraits::kBlockN;
    const bool isFull = KernelTraits::kTilesAreWhole == 1 || (number >= range.fullBegin && number < range.fullEnd);
    const bool reachesEnd = firstKey + rate * (KernelTraits::kBlockN - 1) >= context.seqlenK;
    return KeyTile{firstKey, at.branch, !isFull || reachesEnd};
  }
};

} // namespace heddle
