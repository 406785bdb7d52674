// Query gradients in the order of the keys, so that bits do not depend on the run: a key tile adds to a query tile once
// the one before it in its class has, if that visits the tile at all (dialect/Geometry/ConsecutiveTiles.h). Blocks visit
// query tiles in descending order and begin in the order of their keys: in a causal pattern or a window each then finds
// the tile that it wants left by the one before. Blocks start in the order of their numbers, so nobody waits for a block
// that has not begun.
#pragma once

#include "Backward/walk_items.cuh"

namespace heddle {

// The query tiles of an item, last one first, each in all heads of the group, which visit alike: a long item would hold up
// the others at every head.
class DescendingWalk {
public:
  DEV DescendingWalk(const PatternContext &context, const KeyItem &item, int32_t heads)
      : context(context), item(item), heads(heads), head(0), number(0), range{kNoTile, 0, 0, 0, 0} {}

  DEV static int32_t headsAtOnce(int32_t group) { return group; }

  DEV bool next(QueryTile &tile) {
    if (head == 0) {
      if (number == range.begin || range.begin == kNoTile) {
        if (!findRange(range.begin))
          return false;
        number = range.end;
      }
      --number;
    }
    const bool isFull = number >= range.fullBegin && number < range.fullEnd && item.isComplete(context, 0, kOrderRate);
    tile.firstRow = residue() + kOrderRate * number * kBlockM;
    tile.flags = !isFull;
    tile.head = item.head + head;
    head = head + 1 == heads ? 0 : head + 1;
    return true;
  }

  DEV ClassTile place() const { return ClassTile{kOrderRate, residue(), number}; } // of the last tile

  // Of the tile of the same class before the item's; below every tile: there is none, or it visits nothing.
  DEV static int32_t lastOfTileBefore(const PatternContext &context, const KeyItem &item) {
    const int32_t first = context.kOrigin + item.first;
    const RowSpan rows{first - kOrderRate * kBlockN, first - kOrderRate};
    int32_t last = -1;
    if (item.number >= kOrderRate)
#pragma unroll 1
      for (KeyRange range = rangeFrom(context, rows, 0); range.begin != kNoTile;
           range = rangeFrom(context, rows, range.end))
        last = range.end - 1;
    return last;
  }

private:
  static constexpr int32_t kNoTile = 0x7fffffff;

  // The last one that begins before a tile. False: there is none.
  DEV bool findRange(int32_t before) {
    const RowSpan rows{context.kOrigin + item.first, context.kOrigin + item.last};
    range.begin = kNoTile;
#pragma unroll 1
    for (KeyRange next = rangeFrom(context, rows, 0); next.begin < before; next = rangeFrom(context, rows, range.end))
      range = next;
    return range.begin != kNoTile;
  }

  DEV static KeyRange rangeFrom(const PatternContext &context, RowSpan rows, int32_t from) {
    return KeyItem::nextRange(context, 0, 0, rows, from);
  }

  DEV int32_t residue() const { return KeyItem::columnResidue(context, 0, 0, context.kOrigin + item.first); }

  const PatternContext &context;
  const KeyItem &item;
  int32_t heads, head, number; // head: of the next tile, counted from the item's
  KeyRange range;
};

// The turns of a warp that adds.
class SumOrder {
public:
  DEV SumOrder(const KernelParams &p, const KeyItem &item)
      : p(p), item(item), ordinal(item.number / kOrderRate), head(-1),
        lastBefore(DescendingWalk::lastOfTileBefore(makeContext(p, item.batch, item.head), item)) {}

  // Waits until the tile is this block's. True: it has sums, false: what they are added to is not written.
  DEV bool await(const QueryTile &tile) {
    const ClassTile wanted = classTile(tile.firstRow, kOrderRate);
    if (tile.head == item.head && head >= 0)
      passBetween(wanted.number);
    head = tile.head;
    place = wanted;
    return take() & kOrderHasSums;
  }

  // The next one has the tile.
  DEV void leave() const { give(kOrderHasSums); }

private:
  // Tiles between those that a block visits have their turns too.
  DEV void passBetween(int32_t wanted) {
#pragma unroll 1
    for (--place.number; place.number > wanted; --place.number)
#pragma unroll 1
      for (head = item.head; head < item.head + KeyItem::headsOfItem(p); ++head)
        give(take() & kOrderHasSums);
  }

  DEV uint32_t take() const {
    if (place.number > lastBefore)
      return 0;
    const uint32_t *const word = ownWord();
    uint32_t state;
    do
      state = ptx::loadAcquire4(word);
    while (state / kTurn != ordinal);
    return state;
  }

  DEV void give(uint32_t hasSums) const {
    __syncwarp();
    ptx::fenceGlobal();
    if (threadIdx.x % 32 == 0)
      ptx::storeCoherent4(ownWord(), (ordinal + 1) * kTurn + hasSums);
  }

  DEV uint32_t *ownWord() const {
    return static_cast<uint32_t *>(p.between) +
           orderWord(item.batch * p.heads + head, p.seqlenQ, place, threadIdx.x % kWarpgroupThreads / 32);
  }

  static constexpr uint32_t kTurn = 2; // beside kOrderHasSums
  const KernelParams &p;
  const KeyItem &item;
  uint32_t ordinal; // of the item in its class
  int32_t head, lastBefore;
  ClassTile place;
};

// Of kernels whose sums are added in no order.
struct NoOrder {
  DEV NoOrder(const KernelParams &, const KeyItem &) {}
  DEV bool await(const QueryTile &) { return true; }
  DEV void leave() const {}
};

template <bool InOrder> struct OrderOf {
  using Walk = TileWalk<KeyItem>;
  using Sums = NoOrder;
};
template <> struct OrderOf<true> {
  using Walk = DescendingWalk;
  using Sums = SumOrder;
};
using ColumnWalk = OrderOf<kHasOrder>::Walk;

} // namespace heddle
