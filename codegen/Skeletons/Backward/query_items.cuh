// The walk of its own for d_q: the numbered items of heddle_query_walk, each kBlockN queries of one head, and the key
// tiles of kBlockM keys that they visit. As key_items.cuh with queries and keys exchanged.
#pragma once

#include "Backward/key_items.cuh"

namespace heddle {

struct QueryItem {
  int32_t number; // of its head
  int32_t batch, head, kvHead;
  int32_t variant, queryRate;
  int32_t firstRow, lastRow; // of q; lastRow exists
};

DEV int32_t queryItemsPerHead(const KernelParams &p) {
  int32_t items = 0;
#pragma unroll
  for (int variant = 0; variant < Pattern::kVariantCount; ++variant) {
    const int32_t rate = Pattern::queryRate(variant);
    items = max(items, rate * ceilDiv(ceilDiv(p.seqlenQ, rate), kBlockN));
  }
  return items;
}

// An item of a (batch, head) pair. False: the head has no such item.
DEV bool placeQueryItem(const KernelParams &p, int32_t pair, int32_t number, QueryItem &item) {
  item.number = number;
  item.batch = pair / p.heads;
  item.head = pair - item.batch * p.heads;
  item.kvHead = item.head / (p.heads / p.kvHeads);
  item.variant = Pattern::variant(makeContext(p, item.batch, item.head));
  item.queryRate = Pattern::queryRate(item.variant);
  const int32_t tile = number / item.queryRate, residue = number - tile * item.queryRate;
  const int32_t rowsInClass = ceilDiv(p.seqlenQ - residue, item.queryRate), first = tile * kBlockN;
  item.firstRow = residue + item.queryRate * first;
  item.lastRow = residue + item.queryRate * (min(first + kBlockN, rowsInClass) - 1);
  return first < rowsInClass;
}

// Sections of p.raster consecutive (batch, head) pairs; inside a section all heads of one query tile follow each other,
// the last tile first. False: the head has no such item.
DEV bool decodeQueryItem(const KernelParams &p, int32_t index, QueryItem &item) {
  const int32_t items = queryItemsPerHead(p), pairs = p.batch * p.heads;
  int32_t sectionPairs = min(p.raster, pairs);
  const int32_t section = index / (sectionPairs * items), firstPair = section * sectionPairs;
  index -= firstPair * items;
  sectionPairs = min(sectionPairs, pairs - firstPair);
  const int32_t round = index / sectionPairs, pair = firstPair + (index - round * sectionPairs);
  return placeQueryItem(p, pair, items - 1 - round, item);
}

// The key tiles of an item, across branches and ranges.
class KeyTileWalk {
public:
  DEV KeyTileWalk(const PatternContext &context, const QueryItem &item)
      : context(context), item(item), tileFirst(context.qOrigin + item.firstRow),
        tileLast(context.qOrigin + item.lastRow) {
    enterBranch(0);
  }

  // False: nothing follows. Key i of the tile is key firstRow + i * rate of k; those that do not exist are masked, as
  // the weight of a key of zeros may be infinite.
  DEV bool next(QueryTileHeader &tile) {
    if (!findRange())
      return false;
    const int32_t rate = keyRate(), first = residue + rate * cursor * kBlockM;
    const bool isFull =
        cursor >= range.fullBegin && cursor < range.fullEnd && first + rate * (kBlockM - 1) < context.seqlenK;
    number = cursor++;
    tile.firstRow = first;
    tile.flags = !isFull | branch << 1;
    tile.head = item.kvHead;
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

  DEV ClassTile place() const { return ClassTile{keyRate(), residue, number}; } // of the last tile

private:
  // The cursor lies in a range; false: nothing follows.
  DEV bool findRange() {
    while (cursor == range.end) {
      if (branch == Pattern::kBranchCount)
        return false;
      range = Pattern::nextRange(context, item.variant, branch, tileFirst, tileLast, kBlockM, range.end);
      cursor = range.begin;
      if (range.begin == kNoTile)
        enterBranch(branch + 1);
    }
    return true;
  }

  static constexpr int32_t kNoTile = 0x7fffffff;
  DEV int32_t keyRate() const { return Pattern::keyRate(item.variant, branch); }

  DEV void enterBranch(int32_t next) {
    branch = next;
    range = KeyRange{0, 0, 0, 0, 0};
    cursor = 0;
    if (next < Pattern::kBranchCount)
      residue = Pattern::keyResidue(context, item.variant, next, tileFirst);
  }

  const PatternContext &context;
  const QueryItem &item;
  int32_t tileFirst, tileLast;
  int32_t branch, residue, cursor, number;
  KeyRange range;
};

} // namespace heddle
