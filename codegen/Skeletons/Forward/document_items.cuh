// Query tiles of documents (kDocumentTiles): each begins at the first row of its document or where the tile before it
// ends, and none has rows of two. The items of document d have the numbers from firstNumber(d) on: documents before it
// have no more tiles than that, so no number means two items, and numbers end below rows / kBlockM + documents. Numbers
// between the last tile of a document and the first one of the next are items without rows. P is the Pattern, which
// says where documents begin, if it has any. Needs KernelParams before it.
#pragma once

#include "Forward/params.cuh"
#include "Shared/pattern_context.cuh"

namespace heddle {

constexpr bool kHasDocumentTiles = KernelTraits::kDocumentTiles != 0;

// Where the rows of an item must end: with those of the call, or with those of its document, whose rate is 1. In the
// header the end then lies in the place of the rate.
template <bool IsOfDocument> struct ItemEnd {
  DEV int32_t endRow(const KernelParams &p) const { return p.seqlenQ; }
  DEV static int32_t wordOfRate(int32_t rate) { return rate; }
  DEV static int32_t rateOfWord(int32_t word) { return word; }
};

template <> struct ItemEnd<true> {
  int32_t end;
  DEV int32_t endRow(const KernelParams &) const { return end; }
  DEV int32_t wordOfRate(int32_t) const { return end; }
  DEV int32_t rateOfWord(int32_t word) {
    end = word;
    return 1;
  }
};

template <class P> struct DocumentItems {
  DEV static int32_t perHead(const PatternContext &context, int32_t rows) {
    return rows / KernelTraits::kBlockM + P::documentCount(context);
  }

  DEV static int32_t firstNumber(const PatternContext &context, int32_t document) {
    return P::documentRow(context, document) / KernelTraits::kBlockM + document;
  }

  // The last document whose numbers begin at or before this one. As many rounds as halve the count to one: it takes the
  // same values in all lanes.
  DEV static int32_t documentOf(const PatternContext &context, int32_t number) {
    int32_t document = 0;
#pragma unroll 1
    for (int32_t size = P::documentCount(context); size > 1; size -= size / 2) {
      const int32_t middle = document + size / 2;
      document = number < firstNumber(context, middle) ? document : middle;
    }
    return document;
  }

  // False: the item has no rows.
  template <class Item> DEV static bool place(const PatternContext &context, int32_t number, Item &item) {
    const int32_t document = documentOf(context, number), begin = P::documentRow(context, document);
    item.firstRow = begin + (number - begin / KernelTraits::kBlockM - document) * KernelTraits::kBlockM;
    item.end = P::documentRow(context, document + 1);
    item.queryRate = 1;
    item.lastRow = min(item.firstRow + KernelTraits::kBlockM, item.end) - 1;
    return item.firstRow < item.end;
  }
};

} // namespace heddle
