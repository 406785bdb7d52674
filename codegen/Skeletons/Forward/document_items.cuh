// Query tiles of documents (kDocumentTiles): each begins at the first row of its document or where the tile before it
// ends, and none has rows of two. The items of document d have the numbers from firstNumber(d) on: documents before it
// have no more tiles than that, so no number means two items, and numbers end below rows / kBlockM + documents. Numbers
// between the last tile of a document and the first one of the next are items without rows. The Pattern says where
// documents begin, if it has any.
#pragma once

#include "Shared/pattern_context.cuh"

namespace heddle {

template <class K> constexpr bool kHasDocumentTiles = K::kDocumentTiles != 0;

// Where the rows of an item must end: with those of the call, or with those of its document, whose rate is 1. In the
// header the end then lies in the place of the rate.
template <bool IsOfDocument> struct ItemEnd {
  template <class Params> DEV int32_t endRow(const Params &p) const { return p.seqlenQ; }
  DEV static int32_t wordOfRate(int32_t rate) { return rate; }
  DEV static int32_t rateOfWord(int32_t word) { return word; }
};

template <> struct ItemEnd<true> {
  int32_t end;
  template <class Params> DEV int32_t endRow(const Params &) const { return end; }
  DEV int32_t wordOfRate(int32_t) const { return end; }
  DEV int32_t rateOfWord(int32_t word) {
    end = word;
    return 1;
  }
};

template <class K> struct DocumentItems {
  using Pattern = typename K::Pattern;

  DEV static int32_t perHead(const Context<K> &context, int32_t rows) {
    return rows / K::kBlockM + Pattern::documentCount(context);
  }

  DEV static int32_t firstNumber(const Context<K> &context, int32_t document) {
    return Pattern::documentRow(context, document) / K::kBlockM + document;
  }

  // The last document whose numbers begin at or before this one. As many rounds as halve the count to one: it takes the
  // same values in all lanes.
  DEV static int32_t documentOf(const Context<K> &context, int32_t number) {
    int32_t document = 0;
#pragma unroll 1
    for (int32_t size = Pattern::documentCount(context); size > 1; size -= size / 2) {
      const int32_t middle = document + size / 2;
      document = number < firstNumber(context, middle) ? document : middle;
    }
    return document;
  }

  // False: the item has no rows.
  template <class Item> DEV static bool place(const Context<K> &context, int32_t number, Item &item) {
    const int32_t document = documentOf(context, number), begin = Pattern::documentRow(context, document);
    item.firstRow = begin + (number - begin / K::kBlockM - document) * K::kBlockM;
    item.end = Pattern::documentRow(context, document + 1);
    item.queryRate = 1;
    item.lastRow = min(item.firstRow + K::kBlockM, item.end) - 1;
    return item.firstRow < item.end;
  }
};

} // namespace heddle
