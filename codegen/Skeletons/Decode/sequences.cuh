// What is read of a sequence: where its rows and keys lie, how many they are and where they stand. Lengths and offsets are the caller's word;
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

// Those that there is room for, and those that count.
template <class Params> DEV int32_t mostKeysOf(const Params &p, int32_t sequence) {
  if (p.kvIndptr)
    return keysOfPages(p, sequence);
  return p.cuSeqlensK ? OffsetSpan(p.cuSeqlensK, sequence, p.pageSize).count : p.pageSize * p.maxPages;
}
template <class Params> DEV int32_t keysOf(const Params &p, int32_t sequence, int32_t kvHead) {
  const int32_t most = mostKeysOf(p, sequence);
  return p.sequsedK ? min(max(p.sequsedK[listOf(p, sequence, kvHead)], 0), most) : most;
}

// Where the keys of a sequence stand, in kernels of patterns of parts (kWholeKeys): those at hand are part of a whole, which
// ends at `whole`. In other kernels all keys are at hand, and nothing here adds anything.
template <class K, bool IsPart = K::kWholeKeys >= 0> struct KeyPlace {
  int32_t first, whole;

  DEV static KeyPlace read(const ParamsOf<K> &p, int32_t sequence, int32_t keys) {
    KeyPlace place;
    place.first = p.kOrigins ? min(max(p.kOrigins[sequence], 0), decode::kMostKeys - keys) : 0;
    place.whole = place.first + keys;
    if (p.wholeK)
      place.whole = min(max(p.wholeK[sequence], place.whole), decode::kMostKeys);
    return place;
  }
  template <class OfLane> DEV static KeyPlace ofLane(const KeyPlace &own, const OfLane &of) {
    return {of(own.first), of(own.whole)};
  }

  DEV int32_t origin() const { return first; }
  DEV int32_t end(int32_t) const { return whole; }
  DEV void giveWhole(Context<K> &context) const {
    context.param[K::kWholeQueries] = whole;
    context.param[K::kWholeKeys] = whole;
  }
};

template <class K> struct KeyPlace<K, false> {
  DEV static KeyPlace read(const ParamsOf<K> &, int32_t, int32_t) { return {}; }
  template <class OfLane> DEV static KeyPlace ofLane(const KeyPlace &, const OfLane &) { return {}; }

  DEV int32_t origin() const { return 0; }
  DEV int32_t end(int32_t keys) const { return keys; }
  DEV void giveWhole(Context<K> &) const {}
};

template <class K> struct Sequence : KeyPlace<K> {
  using Params = ParamsOf<K>;
  using Place = KeyPlace<K>;

  int32_t number, batch, firstRow, rows, keys;

  // As a kv head sees it.
  DEV static Sequence read(const Params &p, int32_t number, int32_t kvHead) {
    Sequence sequence = readRows(p, number);
    sequence.takeKeys(p, keysOf(p, number, kvHead));
    return sequence;
  }
  // Without its keys, which it takes once they are known.
  DEV static Sequence readRows(const Params &p, int32_t number) {
    Sequence sequence = {{}, number, number, 0, p.seqlenQ, 0};
    if (p.cuSeqlensQ) {
      sequence.batch = 0;
      const OffsetSpan span(p.cuSeqlensQ, number, p.seqlenQ);
      sequence.firstRow = span.first, sequence.rows = span.count;
    }
    return sequence;
  }
  DEV void takeKeys(const Params &p, int32_t count) {
    keys = count;
    static_cast<Place &>(*this) = Place::read(p, number, count);
  }
  template <class OfLane> DEV static Sequence ofLane(const Sequence &own, const OfLane &of) {
    return {Place::ofLane(own, of), of(own.number), of(own.batch), of(own.firstRow), of(own.rows), of(own.keys)};
  }

  // Of its queries, the last positions, the first one's.
  DEV int32_t qOrigin() const { return this->end(keys) - rows; }

  DEV Context<K> context(const Params &p, int32_t head) const {
    Context<K> context;
    context.batch = number;
    context.head = head;
    context.heads = p.heads;
    context.seqlenQ = rows;
    context.seqlenK = keys;
    context.qOrigin = qOrigin();
    context.kOrigin = this->origin();
    giveArguments(context, p);
    this->giveWhole(context);
    return context;
  }
};

} // namespace heddle
