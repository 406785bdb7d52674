// Who computes what: the numbered items of a walk, each a tile of kBlockN rows, and the tiles of kBlockM columns that
// it visits. Rows are the keys of a kv head and columns the queries of the heads of its group (KeyItem), or rows are
// the queries of a head and columns its keys (QueryItem, where d_q has a walk of its own). Rows are addressed as rho +
// R * I: row number I of residue class rho, R = rate; of keys the least multiple of the rates that the heads of the
// group have.
// Traits: kKeyItemRates[kKeyItemRateCount], ascending, with every common multiple of its elements.
#pragma once

#include "Backward/query_tile.cuh"
#include "Backward/row_statistics.cuh"
#include "Shared/range_walk.cuh"

namespace heddle {

struct WalkItem {
  int32_t number;              // of its head
  int32_t batch, kvHead, head; // of keys, the first head of the group
  int32_t rate;
  int32_t first, last; // rows of their tensors; the last one exists
};

// How many items of keys a head has, and the rate of those of a group.
template <class K> struct KeyItemRates {
  using Params = ParamsOf<K>;

  template <int Slot = 0> DEV static int32_t itemsPerHead(const Params &p) {
    constexpr int32_t kRate = K::kKeyItemRates[Slot];
    const int32_t items = kRate * ceilDiv(ceilDiv(p.seqlenK, kRate), K::kBlockN);
    if constexpr (Slot + 1 == K::kKeyItemRateCount)
      return items;
    else
      return max(items, itemsPerHead<Slot + 1>(p));
  }

  DEV static int32_t rateOfGroup(const Params &p, const WalkItem &item) {
    int32_t rate = rateOfHead(p, item.batch, item.head);
    if constexpr (K::kKeyItemRateCount > 1)
      for (int32_t next = 1; next < p.heads / p.kvHeads; ++next)
        rate = commonRate(rate, rateOfHead(p, item.batch, item.head + next));
    return rate;
  }

private:
  template <int Slot = 0> DEV static int32_t commonRate(int32_t a, int32_t b) {
    constexpr int32_t kRate = K::kKeyItemRates[Slot];
    if constexpr (Slot + 1 == K::kKeyItemRateCount)
      return kRate;
    else
      return kRate % a == 0 && kRate % b == 0 ? kRate : commonRate<Slot + 1>(a, b);
  }

  DEV static int32_t rateOfHead(const Params &p, int32_t batch, int32_t head) {
    using Pattern = typename K::Pattern;
    return Pattern::Transposed::keyRate(Pattern::variant(makeContext(p, batch, head)));
  }
};

template <class K> struct KeyItem : WalkItem {
  using Kernel = K;
  using Params = ParamsOf<K>;
  using Pattern = typename K::Pattern;
  using Context = typename Pattern::Context;
  using Transposed = typename Pattern::Transposed;

  static constexpr bool kRowsAreKeys = true, kIsReversed = K::kRasterReversed;
  DEV static int32_t itemsPerHead(const Params &p) { return KeyItemRates<K>::itemsPerHead(p); }
  DEV static int32_t rows(const Params &p) { return p.seqlenK; }
  DEV static int32_t columns(const Params &p) { return p.seqlenQ; }
  DEV static int32_t heads(const Params &p) { return p.kvHeads; }                 // that have items
  DEV static int32_t headsOfItem(const Params &p) { return p.heads / p.kvHeads; } // whose columns it visits

  DEV void enterHead(const Params &p, int32_t ofItems) {
    kvHead = ofItems;
    head = kvHead * headsOfItem(p);
    rate = KeyItemRates<K>::rateOfGroup(p, *this);
  }

  DEV int32_t headOfRows() const { return kvHead; }
  // The context is that of a head of the group.
  DEV int32_t variantOf(const Context &context) const { return Pattern::variant(context); }
  DEV int32_t headOfColumns(const Context &context) const { return context.head; }
  DEV static int32_t origin(const Context &context) { return context.kOrigin; }
  DEV static int32_t columnRate(int32_t variant, int32_t branch) { return Transposed::queryRate(variant, branch); }
  DEV static int32_t columnResidue(const Context &context, int32_t variant, int32_t branch, int32_t first) {
    return Transposed::queryResidue(context, variant, branch, first);
  }
  DEV static typename Pattern::Range nextRange(const Context &context, int32_t variant, int32_t branch, RowSpan rows,
                                               int32_t from) {
    return Transposed::nextRange(context, variant, branch, rows.first, rows.last, K::kBlockM, from);
  }
  // Queries that do not exist have no weight, keys that do not are masked.
  DEV bool isComplete(const Context &, int32_t, int32_t) const { return first + rate * (K::kBlockN - 1) <= last; }
};

template <class K> struct QueryItem : WalkItem, KeyColumns<typename K::Pattern, K::kBlockM> {
  using Kernel = K;
  using Params = ParamsOf<K>;
  using Pattern = typename K::Pattern;
  using Context = typename Pattern::Context;
  int32_t variant;

  static constexpr bool kRowsAreKeys = false, kIsReversed = true;
  DEV static int32_t itemsPerHead(const Params &p) {
    int32_t items = 0;
#pragma unroll
    for (int variant = 0; variant < Pattern::kVariantCount; ++variant) {
      const int32_t rate = Pattern::queryRate(variant);
      items = max(items, rate * ceilDiv(ceilDiv(p.seqlenQ, rate), K::kBlockN));
    }
    return items;
  }
  DEV static int32_t rows(const Params &p) { return p.seqlenQ; }
  DEV static int32_t columns(const Params &p) { return p.seqlenK; }
  DEV static int32_t heads(const Params &p) { return p.heads; }
  DEV static int32_t headsOfItem(const Params &) { return 1; }

  DEV void enterHead(const Params &p, int32_t ofItems) {
    head = ofItems;
    kvHead = head / (p.heads / p.kvHeads);
    variant = Pattern::variant(makeContext(p, batch, head));
    rate = Pattern::queryRate(variant);
  }

  DEV int32_t headOfRows() const { return head; }
  DEV int32_t variantOf(const Context &) const { return variant; }
  DEV int32_t headOfColumns(const Context &) const { return kvHead; }
  DEV static int32_t origin(const Context &context) { return context.qOrigin; }
  // The weight of a key of zeros may be infinite.
  DEV bool isComplete(const Context &context, int32_t firstKey, int32_t keyRate) const {
    return firstKey + keyRate * (K::kBlockM - 1) < context.seqlenK;
  }
};

// (batch, head) pairs that have items.
template <class Item> DEV int32_t pairsOf(const typename Item::Params &p) { return p.batch * Item::heads(p); }

// An item of a pair. False: the head has no such item.
template <class Item> DEV bool placeItem(const typename Item::Params &p, int32_t pair, int32_t number, Item &item) {
  using K = typename Item::Kernel;
  item.number = number;
  item.batch = pair / Item::heads(p);
  item.enterHead(p, pair - item.batch * Item::heads(p));
  const int32_t tile = number / item.rate, residue = number - tile * item.rate;
  const int32_t rowsInClass = ceilDiv(Item::rows(p) - residue, item.rate), first = tile * K::kBlockN;
  item.first = residue + item.rate * first;
  item.last = residue + item.rate * (min(first + K::kBlockN, rowsInClass) - 1);
  return first < rowsInClass;
}

// Sections of at most p.raster consecutive pairs, as equal as can be: a short last one would leave multiprocessors idle
// at the end. Inside a section all heads of one tile follow each other. False: the head has no such item.
template <class Item> DEV bool decodeItem(const typename Item::Params &p, int32_t index, Item &item) {
  const int32_t items = Item::itemsPerHead(p), pairs = pairsOf<Item>(p);
  const int64_t sections = ceilDiv(pairs, min(p.raster, pairs));
  const auto section = static_cast<int32_t>(((index / items + 1) * sections - 1) / pairs);
  const auto firstPair = static_cast<int32_t>(section * int64_t(pairs) / sections);
  const int32_t sectionPairs = static_cast<int32_t>((section + 1) * int64_t(pairs) / sections) - firstPair;
  index -= firstPair * items;
  int32_t number = index / sectionPairs;
  const int32_t pair = firstPair + (index - number * sectionPairs);
  if (Item::kIsReversed)
    number = items - 1 - number;
  return placeItem(p, pair, number, item);
}

struct TileCursor : WalkCursor {
  int32_t number; // of the last tile
};

// The tiles that an item visits in one head, across branches and ranges.
template <class Item> class TileWalk : RangeWalk<Item, TileCursor> {
  using K = typename Item::Kernel;
  using Ranges = RangeWalk<Item, TileCursor>;
  using Ranges::at, Ranges::context, Ranges::range;

public:
  DEV TileWalk(const typename Item::Context &context, const Item &item, int32_t /* heads of the group */ = 1)
      : Ranges(context, {Item::origin(context) + item.first, Item::origin(context) + item.last}), item(item) {
    enterHead();
  }

  DEV static int32_t headsAtOnce(int32_t) { return 1; }

  // Begins anew, after the context was given another head of the group.
  DEV void enterHead() { this->enter(item.variantOf(context)); }

  // False: nothing follows. Column i of the tile is row firstRow + i * rate of its tensor.
  DEV bool next(QueryTile &tile) {
    if (!this->findRange())
      return false;
    const int32_t rate = this->columnRate(),
                  firstKey = Item::kRowsAreKeys ? 0 : at.residue + rate * at.tile * K::kBlockM;
    const bool isFull =
        at.tile >= range.fullBegin && at.tile < range.fullEnd && item.isComplete(context, firstKey, rate);
    at.number = at.tile++;
    tile.firstRow = at.residue + rate * at.number * K::kBlockM;
    tile.flags = !isFull | at.branch << 1;
    tile.head = item.headOfColumns(context);
    return true;
  }

  // Goes on by as many; false: fewer follow.
  DEV bool skips(int32_t tiles) {
    for (int32_t seen = 0; seen < tiles; at.tile = range.end) {
      if (!this->findRange())
        return false;
      seen += range.end - at.tile;
    }
    return true;
  }

  DEV ClassTile place() const { return ClassTile{this->columnRate(), at.residue, at.number}; } // of the last tile

private:
  const Item &item;
};

} // namespace heddle
