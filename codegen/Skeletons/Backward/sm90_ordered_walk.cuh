// The query tiles that a key tile visits, where query gradients are added in the order of the keys (sm90_dq_order.cuh):
// in ascending order if the last key tile comes first, else in descending order. Where what key tiles visit begins, or
// ends, further on from one to the next, each then finds the tile that it wants left by the one before, also if all
// begin at once.
#pragma once

#include "Backward/dq_accumulation.cuh"
#include "Backward/walk_items.cuh"

namespace heddle {

// The query tiles of an item, each in all heads of the group, which visit alike: a long item would hold up the others
// at every head.
template <class K> class OrderedWalk {
  using Context = typename K::Pattern::Context;
  using Range = typename K::Pattern::Range;
  using KeyItem = heddle::KeyItem<K>;

public:
  static constexpr bool kAscends = K::kRasterReversed;

  DEV OrderedWalk(const Context &context, const KeyItem &item, int32_t heads)
      : context(context), item(item), heads(heads), head(0), number(0), range{kNoTile, 0, 0, 0, 0} {}

  DEV static int32_t headsAtOnce(int32_t group) { return group; }

  DEV bool next(QueryTile &tile) {
    if (head == 0 && !findTile())
      return false;
    const bool isFull =
        number >= range.fullBegin && number < range.fullEnd && item.isComplete(context, 0, kOrderRate<K>);
    tile.firstRow = residue() + kOrderRate<K> * number * K::kBlockM;
    tile.flags = !isFull;
    tile.head = item.head + head;
    head = head + 1 == heads ? 0 : head + 1;
    return true;
  }

  DEV ClassTile place() const { return ClassTile{kOrderRate<K>, residue(), number}; } // of the last tile

  // The query tile from which on an item that walks towards it finds those of the tile before; beyond all: there is
  // none, or it visits nothing.
  DEV static int32_t edgeOfTileBefore(const ParamsOf<K> &p, const Context &context, const KeyItem &item) {
    constexpr int32_t kStep = (kAscends ? 1 : -1) * kOrderRate<K> * K::kBlockN;
    const int32_t first = item.first + kStep, last = min(first + kOrderRate<K> * (K::kBlockN - 1), p.seqlenK - 1);
    int32_t edge = kAscends ? kNoTile : -1;
    if (first < 0 || first > last)
      return edge;
    const RowSpan rows{context.kOrigin + first, context.kOrigin + last - (last - first) % kOrderRate<K>};
    if (kAscends)
      return rangeFrom(context, rows, 0).begin;
#pragma unroll 1
    for (Range range = rangeFrom(context, rows, 0); range.begin != kNoTile; range = rangeFrom(context, rows, range.end))
      edge = range.end - 1;
    return edge;
  }

private:
  DEV bool findTile() {
    const bool isIn = range.begin != kNoTile;
    if (kAscends ? isIn && ++number < range.end : isIn && --number >= range.begin)
      return true;
    if (!(kAscends ? findRangeFrom(isIn ? range.end : 0) : findRangeBefore(range.begin)))
      return false;
    number = kAscends ? range.begin : range.end - 1;
    return true;
  }

  // False: there is none.
  DEV bool findRangeFrom(int32_t tile) {
    range = rangeFrom(context, ownRows(), tile);
    return range.begin != kNoTile;
  }

  // The last one that begins before a tile.
  DEV bool findRangeBefore(int32_t tile) {
    range.begin = kNoTile;
#pragma unroll 1
    for (Range next = rangeFrom(context, ownRows(), 0); next.begin < tile;
         next = rangeFrom(context, ownRows(), range.end))
      range = next;
    return range.begin != kNoTile;
  }

  DEV static Range rangeFrom(const Context &context, RowSpan rows, int32_t from) {
    return KeyItem::nextRange(context, 0, 0, rows, from);
  }

  DEV RowSpan ownRows() const { return {context.kOrigin + item.first, context.kOrigin + item.last}; }
  DEV int32_t residue() const { return KeyItem::columnResidue(context, 0, 0, context.kOrigin + item.first); }

  const Context &context;
  const KeyItem &item;
  int32_t heads, head, number; // head: of the next tile, counted from the item's
  Range range;
};

} // namespace heddle
