// How much work there is. A line is a sequence, with one kv head where these have tables of their own, or with one head
// where heads do not keep the same pairs; its units are 16 packed rows, or 16 for each warp where it has more than 16, of one
// kv head, or of its head, and one residue class of rows: query after query, of each the heads that share keys. All units of
// a line count as many key tiles as its longest class visits, and those of tall units several times: the count deals out
// work, a unit walks what the pattern names.
#pragma once

#include "Decode/decode_layout.cuh"
#include "Decode/line_parts.cuh"
#include "Decode/shared_keys.cuh"
#include "Shared/quads.cuh"
#include "Shared/tile_numbers.cuh"

namespace heddle {

// Of numbers that are not negative, without a division where the divisor is 1, as it is of one query.
DEV int32_t quickQuotient(int32_t a, int32_t b) {
  if (b == 1)
    return a;
  return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
}

// Heads that share a unit.
template <class K> DEV int32_t headsOfUnit(const ParamsOf<K> &p) { return K::kPacksHeads ? p.sharingHeads : 1; }
template <class K> DEV int32_t linesOfSequence(const ParamsOf<K> &p) { return K::kPacksHeads ? p.tables : p.heads; }

template <class K> struct Line : KeyShare<K>, LineParts<K> {
  using Share = KeyShare<K>;
  using Params = ParamsOf<K>;

  Sequence<K> sequence; // of a group: all its queries, with the keys that they share
  int32_t head, variantOfHead;
  int32_t rowsOfUnit;
  int32_t tilesOfClass;    // units of one class of rows and one kv head
  int32_t units, unitWork; // of each unit: its key tiles, as many as they count

  DEV int64_t work() const { return static_cast<int64_t>(units) * unitWork; }
  // One, and what follows from it, is known when the kernel is compiled.
  DEV int32_t variant() const { return K::Pattern::kVariantCount == 1 ? 0 : variantOfHead; }
  DEV int32_t rate() const { return K::Pattern::queryRate(variant()); }
  DEV int32_t rowsOfClass(int32_t rho) const { return ceilDiv(sequence.rows - rho, rate()); }

  // Units of all classes, which are `classes`.
  DEV void deal(const Params &p, int32_t classes) {
    const int32_t packed = rowsOfClass(0) * headsOfUnit<K>(p);
    constexpr uint32_t kFew = decode::kRows, kMany = kFew * K::kWarps;
    const bool areMany = packed > decode::kRows;
    rowsOfUnit = areMany ? kMany : kFew;
    tilesOfClass = areMany ? (packed + kMany - 1) / kMany : (packed + kFew - 1) / kFew;
    units = classes * tilesOfClass * (K::kPacksHeads && !hasTableOfHead(p) ? p.kvHeads : 1);
  }

  // Of the first sequence, the line becomes that of a group.
  DEV void shareKeys(const Params &p, const Share &share, int32_t rowsOfGroup) {
    static_cast<Share &>(*this) = share;
    if (share.isGroup()) {
      sequence.rows = rowsOfGroup, sequence.keys = share.keyEnd();
      deal(p, 1);
    }
  }
  // Of units that visit so many, those that the sequence shares among them; one without any has rows to write.
  DEV void countTiles(int32_t visited) {
    const int32_t tiles = this->isGroup() ? this->tiles() : max(visited - this->tiles(), 1);
    unitWork = rowsOfUnit > decode::kRows ? tiles * decode::tallWork(K::kWarps) : tiles;
  }
};

// Key tiles that rows between two positions visit. Lanes may differ in everything; all of a warp call.
template <class K> DEV int32_t visitedTiles(const Context<K> &context, int32_t variant, int32_t first, int32_t last) {
  using Pattern = typename K::Pattern;
  int32_t tiles = 0;
#pragma unroll 1
  for (int branch = 0; branch < Pattern::kBranchCount; ++branch) {
    const int32_t keys = ceilDiv(context.seqlenK, Pattern::keyRate(variant, branch));
    const int32_t end = ceilDiv(keys, K::kBlockN);
    int32_t from = 0;
    bool isOpen = from < end;
#pragma unroll 1
    while (__any_sync(kWholeWarp, isOpen)) {
      const typename Pattern::Range range = Pattern::nextRange(context, variant, branch, first, last, K::kBlockN, from);
      isOpen = isOpen && range.begin != kNoTile;
      tiles += isOpen ? range.end - range.begin : 0;
      from = isOpen ? range.end : from;
      isOpen = isOpen && from < end;
    }
  }
  return tiles;
}

// All lanes of a warp call.
template <class K> DEV Line<K> readLine(const ParamsOf<K> &p, int32_t number) {
  using Share = KeyShare<K>;
  Line<K> line;
  const int32_t groups = Share::groups(p);
  const bool isGroup = number < groups;
  const GroupRecord group = Share::group(p, isGroup ? number : 0);
  int32_t sequence = isGroup ? group.sequence : number - groups, kvHead = 0;
  line.head = 0;
  if (!K::kPacksHeads || hasTableOfHead(p)) {
    const int32_t lines = linesOfSequence<K>(p);
    sequence = number / lines; // there are no groups
    line.head = number % lines * (K::kPacksHeads ? p.sharingHeads : 1);
    kvHead = line.head / p.sharingHeads;
  }
  line.sequence = Sequence<K>::read(p, sequence, kvHead);
  const Context<K> context = line.sequence.context(p, line.head);
  line.variantOfHead = K::Pattern::variant(context);
  const int32_t classes = min(line.rate(), line.sequence.rows);
  line.deal(p, classes);
  int32_t visited = 0;
#pragma unroll 1
  for (int32_t rho = 0; __any_sync(kWholeWarp, rho < classes); ++rho) {
    const int32_t own = max(min(rho, classes - 1), 0), first = context.qOrigin + own;
    const int32_t last = first + line.rate() * max(line.rowsOfClass(own) - 1, 0);
    visited = max(visited, visitedTiles<K>(context, line.variant(), first, last));
  }
  line.shareKeys(p, isGroup ? Share::ofGroup(group) : Share::ofSequence(p, sequence), group.rows);
  line.countTiles(visited);
  line.cut(line.rowsOfUnit > decode::kRows, line.unitWork);
  return line;
}

} // namespace heddle
