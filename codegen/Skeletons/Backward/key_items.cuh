// Who computes which keys: the numbered items of a launch, each one key tile of one kv head, and the query tiles that it
// visits in each head of the group. Keys are addressed as rho + R * K: key number K of residue class rho, R = key rate,
// the least multiple of the rates that the heads of the group have.
// KernelTraits: kKeyItemRates[kKeyItemRateCount], ascending, with every common multiple of its elements.
#pragma once

#include "Backward/query_tile.cuh"
#include "Backward/row_statistics.cuh"

namespace heddle {

struct KeyItem {
  int32_t number; // of its head
  int32_t batch, kvHead, firstHead;
  int32_t keyRate;
  int32_t firstKey, lastKey; // rows of k and v; lastKey exists
};

template <int Slot = 0> DEV int32_t itemsPerHead(const KernelParams &p) {
  constexpr int32_t kRate = KernelTraits::kKeyItemRates[Slot];
  const int32_t items = kRate * ceilDiv(ceilDiv(p.seqlenK, kRate), kBlockN);
  if constexpr (Slot + 1 == KernelTraits::kKeyItemRateCount)
    return items;
  else
    return max(items, itemsPerHead<Slot + 1>(p));
}

template <int Slot = 0> DEV int32_t commonRate(int32_t a, int32_t b) {
  constexpr int32_t kRate = KernelTraits::kKeyItemRates[Slot];
  if constexpr (Slot + 1 == KernelTraits::kKeyItemRateCount)
    return kRate;
  else
    return kRate % a == 0 && kRate % b == 0 ? kRate : commonRate<Slot + 1>(a, b);
}

DEV int32_t keyRateOfHead(const KernelParams &p, int32_t batch, int32_t head) {
  return TransposedPattern::keyRate(Pattern::variant(makeContext(p, batch, head)));
}

DEV int32_t keyRateOfGroup(const KernelParams &p, const KeyItem &item) {
  int32_t rate = keyRateOfHead(p, item.batch, item.firstHead);
  if constexpr (KernelTraits::kKeyItemRateCount > 1)
    for (int32_t next = 1; next < p.heads / p.kvHeads; ++next)
      rate = commonRate(rate, keyRateOfHead(p, item.batch, item.firstHead + next));
  return rate;
}

// An item of a (batch, kv head) pair. False: the head has no such item.
DEV bool placeKeyItem(const KernelParams &p, int32_t pair, int32_t number, KeyItem &item) {
  item.number = number;
  item.batch = pair / p.kvHeads;
  item.kvHead = pair - item.batch * p.kvHeads;
  item.firstHead = item.kvHead * (p.heads / p.kvHeads);
  item.keyRate = keyRateOfGroup(p, item);
  const int32_t tile = number / item.keyRate, residue = number - tile * item.keyRate;
  const int32_t keysInClass = ceilDiv(p.seqlenK - residue, item.keyRate), first = tile * kBlockN;
  item.firstKey = residue + item.keyRate * first;
  item.lastKey = residue + item.keyRate * (min(first + kBlockN, keysInClass) - 1);
  return first < keysInClass;
}

// Sections of at most p.raster consecutive (batch, kv head) pairs, as equal as can be: a short last one would leave
// multiprocessors idle at the end. Inside a section all heads of one key tile follow each other. False: the head has no
// such item.
DEV bool decodeKeyItem(const KernelParams &p, int32_t index, KeyItem &item) {
  const int32_t items = itemsPerHead(p), pairs = p.batch * p.kvHeads;
  const int64_t sections = ceilDiv(pairs, min(p.raster, pairs));
  const auto section = static_cast<int32_t>(((index / items + 1) * sections - 1) / pairs);
  const auto firstPair = static_cast<int32_t>(section * int64_t(pairs) / sections);
  const int32_t sectionPairs = static_cast<int32_t>((section + 1) * int64_t(pairs) / sections) - firstPair;
  index -= firstPair * items;
  int32_t number = index / sectionPairs;
  const int32_t pair = firstPair + (index - number * sectionPairs);
  if (KernelTraits::kRasterReversed)
    number = items - 1 - number;
  return placeKeyItem(p, pair, number, item);
}

// The query tiles that one head visits for a key tile, across branches and ranges.
class QueryTileWalk {
public:
  DEV QueryTileWalk(const PatternContext &context, const KeyItem &item)
      : context(context), item(item), tileFirst(context.kOrigin + item.firstKey),
        tileLast(context.kOrigin + item.lastKey) {
    enterHead();
  }

  // From the start, after the context was given another head of the group.
  DEV void enterHead() {
    variant = Pattern::variant(context);
    enterBranch(0);
  }

  // False: nothing follows. Row i of the tile is row firstRow + i * queryRate of q.
  DEV bool next(QueryTile &tile) {
    if (!findRange())
      return false;
    const int32_t rate = queryRate();
    const bool isFull = cursor >= range.fullBegin && cursor < range.fullEnd &&
                        item.firstKey + item.keyRate * (kBlockN - 1) <= item.lastKey;
    number = cursor++;
    tile.firstRow = residue + rate * number * kBlockM;
    tile.flags = !isFull | branch << 1;
    tile.head = context.head;
    return true;
  }

  // Goes on by as many; false: fewer follow.
  DEV bool skips(int32_t tiles) {
    for (int32_t seen = 0; seen < tiles; cursor = range.end) {
      if (!findRange())
        return false;
      seen += range.end - cursor;
    }
    return true;
  }

  DEV ClassTile place() const { return ClassTile{queryRate(), residue, number}; } // of the last tile

private:
  // The cursor lies in a range; false: nothing follows.
  DEV bool findRange() {
    while (cursor == range.end) {
      if (branch == Pattern::kBranchCount)
        return false;
      range = TransposedPattern::nextRange(context, variant, branch, tileFirst, tileLast, kBlockM, range.end);
      cursor = range.begin;
      if (range.begin == kNoTile)
        enterBranch(branch + 1);
    }
    return true;
  }

  DEV int32_t queryRate() const { return TransposedPattern::queryRate(variant, branch); }

  static constexpr int32_t kNoTile = 0x7fffffff;

  DEV void enterBranch(int32_t next) {
    branch = next;
    range = KeyRange{0, 0, 0, 0, 0};
    cursor = 0;
    if (next < Pattern::kBranchCount)
      residue = TransposedPattern::queryResidue(context, variant, next, tileFirst);
  }

  const PatternContext &context;
  const KeyItem &item;
  int32_t variant, tileFirst, tileLast;
  int32_t branch, residue, cursor, number;
  KeyRange range;
};

} // namespace heddle
