// Who computes which rows: the numbered work items of a launch, each one query tile of one head. Rows are addressed as
// rho + R * Q: row number Q of residue class rho, R = query rate. With kDocumentTiles items are those of
// document_items.cuh. Parameter blocks have a rasterPairs().
#pragma once

#include "Forward/document_items.cuh"
#include "Shared/pattern_context.cuh"

namespace heddle {

// One query tile of one head.
template <class K> struct WorkItem : ItemEnd<kHasDocumentTiles<K>> {
  int32_t batch, head, kvHead;
  int32_t variant, queryRate;
  int32_t firstRow; // row index of the tile's first row; the next rows follow at queryRate
  int32_t lastRow;  // row index of its last existing row
};

// Items of one head of this variant, all residue classes together.
template <class K> DEV int32_t itemsOfVariant(int32_t variant, int32_t seqlenQ) {
  int32_t rate = K::Pattern::queryRate(variant);
  return rate * ceilDiv(ceilDiv(seqlenQ, rate), K::kBlockM);
}

// Items of one head of so many rows; variants with fewer leave the last numbers empty.
template <class K> DEV int32_t itemsPerHead(const ParamsOf<K> &p, int32_t rows) {
  using Pattern = typename K::Pattern;
  if constexpr (kHasDocumentTiles<K>) {
    Context<K> context = makeContext(p, 0, 0); // all heads have the same documents
    keepOutOfLoops<Pattern>(context);
    return DocumentItems<K>::perHead(context, rows);
  } else {
    int32_t items = 0;
#pragma unroll
    for (int variant = 0; variant < Pattern::kVariantCount; ++variant)
      items = max(items, itemsOfVariant<K>(variant, rows));
    return items;
  }
}

// The rows of item `number` of this head; false: it has none.
template <class K>
DEV bool placeRows(const ParamsOf<K> &p, const Context<K> &context, int32_t seqlenQ, int32_t number,
                   WorkItem<K> &item) {
  if constexpr (kHasDocumentTiles<K>) {
    return DocumentItems<K>::place(context, number, item);
  } else {
    item.queryRate = K::Pattern::queryRate(item.variant);
    int32_t tile = number / item.queryRate;
    int32_t residue = number - tile * item.queryRate;
    int32_t rowsInClass = ceilDiv(seqlenQ - residue, item.queryRate);
    int32_t firstNumber = tile * K::kBlockM;
    int32_t lastNumber = min(firstNumber + K::kBlockM, rowsInClass) - 1;
    item.firstRow = p.firstRow() + residue + item.queryRate * firstNumber;
    item.lastRow = p.firstRow() + residue + item.queryRate * lastNumber;
    return firstNumber < rowsInClass;
  }
}

// Raster order: sections of rasterPairs(p) consecutive (batch, head) pairs; inside a section all heads of one
// item follow each other, items ascending, or descending when kRasterReversed. 0 <= index < batch * heads *
// itemsPerHead(rows of the round). Returns false when the head has no such item.
template <class K> DEV bool decodeWorkItem(const ParamsOf<K> &p, int32_t index, WorkItem<K> &item) {
  using Pattern = typename K::Pattern;
  int32_t seqlenQ = p.rowCount(p.seqlenQ), batch = p.batch, heads = p.heads, kvHeads = p.kvHeads,
          sectionPairs = rasterPairs(p);
  // The sizes, too, are kept out of loops, as keepOutOfLoops() does it.
  asm volatile("" : "+r"(seqlenQ), "+r"(batch), "+r"(heads), "+r"(kvHeads), "+r"(sectionPairs));
  int32_t items = itemsPerHead<K>(p, seqlenQ);
  int32_t pairs = batch * heads;
  sectionPairs = min(sectionPairs, pairs);
  int32_t section = index / (sectionPairs * items);
  int32_t firstPair = section * sectionPairs;
  index -= firstPair * items;
  sectionPairs = min(sectionPairs, pairs - firstPair);
  int32_t number = index / sectionPairs;
  int32_t pair = firstPair + (index - number * sectionPairs);
  if (K::kRasterReversed)
    number = items - 1 - number;

  item.batch = pair / heads;
  item.head = pair - item.batch * heads;
  item.kvHead = item.head / (heads / kvHeads);
  Context<K> context = makeContext(p, item.batch, item.head);
  keepOutOfLoops<Pattern>(context);
  item.variant = Pattern::variant(context);
  return placeRows(p, context, seqlenQ, number, item);
}

} // namespace heddle
