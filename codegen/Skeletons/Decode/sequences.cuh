// What is read of a sequence: where its rows and keys lie and how many they are. Lengths and offsets are the caller's word;
// what they say beyond the tensors is cut. Keys in rows are those of one page, of which each sequence has a part.
#pragma once

#include "Decode/decode_layout.cuh"
#include "Shared/pattern_context.cuh"

namespace heddle {

template <class Params> DEV bool hasTableOfHead(const Params &p) { return p.tables > 1; }

// Number of a table, and of its length.
template <class Params> DEV int32_t listOf(const Params &p, int32_t sequence, int32_t kvHead) {
  return hasTableOfHead(p) ? kvHead * p.sequences + sequence : sequence;
}

// What offsets give a sequence of `count`.
struct OffsetSpan {
  int32_t first, count;

  DEV OffsetSpan(const int32_t *offsets, int32_t sequence, int32_t all) {
    first = min(max(offsets[sequence], 0), all);
    count = min(max(offsets[sequence + 1], first), all) - first;
  }
};

// The table of a sequence for a kv head; null: keys lie in rows.
template <class Params> DEV const int32_t *pagesOf(const Params &p, int32_t sequence, int32_t kvHead) {
  if (p.kvIndptr)
    return p.kvIndices + OffsetSpan(p.kvIndptr, sequence, p.maxPages).first;
  return p.pageTable ? p.pageTable + static_cast<int64_t>(listOf(p, sequence, kvHead)) * p.maxPages : nullptr;
}

// Its first row among those of all keys.
template <class Params> DEV int32_t firstKeyOf(const Params &p, int32_t sequence) {
  return p.cuSeqlensK ? OffsetSpan(p.cuSeqlensK, sequence, p.pageSize).first : 0;
}

// Whole pages but for the last.
template <class Params> DEV int32_t keysOfPages(const Params &p, int32_t sequence) {
  const int32_t pages = OffsetSpan(p.kvIndptr, sequence, p.maxPages).count;
  const int32_t ofLast = min(max(p.kvLastPageLen[sequence], 0), p.pageSize);
  const int64_t keys = static_cast<int64_t>(pages - 1) * p.pageSize + ofLast;
  return static_cast<int32_t>(min(max(keys, static_cast<int64_t>(0)), static_cast<int64_t>(decode::kMostKeys)));
}

template <class Params> DEV int32_t keysOf(const Params &p, int32_t sequence, int32_t kvHead) {
  int32_t keys;
  if (p.kvIndptr)
    keys = keysOfPages(p, sequence);
  else
    keys = p.cuSeqlensK ? OffsetSpan(p.cuSeqlensK, sequence, p.pageSize).count : p.pageSize * p.maxPages;
  return p.sequsedK ? min(max(p.sequsedK[listOf(p, sequence, kvHead)], 0), keys) : keys;
}

struct Sequence {
  int32_t number, batch, firstRow, rows, keys;

  // As a kv head sees it.
  template <class Params> DEV static Sequence read(const Params &p, int32_t number, int32_t kvHead) {
    Sequence sequence = {number, number, 0, p.seqlenQ, 0};
    if (p.cuSeqlensQ) {
      sequence.batch = 0;
      const OffsetSpan span(p.cuSeqlensQ, number, p.seqlenQ);
      sequence.firstRow = span.first, sequence.rows = span.count;
    }
    sequence.keys = keysOf(p, number, kvHead);
    return sequence;
  }

  DEV int32_t origin() const { return keys - rows; }

  template <class Params> DEV Context<Params> context(const Params &p, int32_t head) const {
    Context<Params> context;
    context.batch = number;
    context.head = head;
    context.heads = p.heads;
    context.seqlenQ = rows;
    context.seqlenK = keys;
    context.qOrigin = origin();
    context.kOrigin = 0;
    giveArguments(context, p);
    return context;
  }
};

} // namespace heddle
