// Enumerates the key tiles of one query tile, across ranges and branches, in the order in which they are
// loaded and used. Every thread of the CTA walks the same sequence, so no descriptor crosses threads.
#pragma once

#include "Forward/key_tile.cuh"
#include "Forward/work_items.cuh"
#include "Shared/range_walk.cuh"

namespace heddle {

template <class K> class KeyTileWalk : RangeWalk<KeyColumns<typename K::Pattern, K::kBlockN>> {
  using Walk = RangeWalk<KeyColumns<typename K::Pattern, K::kBlockN>>;
  using Walk::at, Walk::range, Walk::context, Walk::columnRate;

public:
  DEV KeyTileWalk(const Context<K> &context, const WorkItem<K> &item)
      : Walk(context, {context.qOrigin + item.firstRow, context.qOrigin + item.lastRow}) {
    this->enter(item.variant);
  }

  // The next tile; after the last one, KeyTile::none() for ever.
  DEV KeyTile next() { return this->findRange() ? describe(at.tile++) : KeyTile::none(); }

private:
  DEV KeyTile describe(int32_t number) const {
    const int32_t rate = columnRate(), firstKey = at.residue + rate * number * K::kBlockN;
    const bool isFull = K::kTilesAreWhole == 1 || (number >= range.fullBegin && number < range.fullEnd);
    const bool reachesEnd = firstKey + rate * (K::kBlockN - 1) >= context.seqlenK;
    return KeyTile{firstKey, at.branch, !isFull || reachesEnd};
  }
};

} // namespace heddle
