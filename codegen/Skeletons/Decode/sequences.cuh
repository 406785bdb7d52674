// What is read of a sequence: where its rows and keys lie and how many they are. Lengths and offsets are the caller's word;
// what they say beyond the tensors is cut. Keys in rows are those of one page, of which each sequence has a part.
#pragma once

#include "Decode/decode_params.cuh"
#include "Shared/pattern_context.cuh"

namespace heddle {

DEV bool hasTableOfHead(const KernelParams &p) { return p.tables > 1; }

// Number of a table, and of its length.
DEV int32_t listOf(const KernelParams &p, int32_t sequence, int32_t kvHead) {
  return hasTableOfHead(p) ? kvHead * p.sequences + sequence : sequence;
}

// The table of a sequence for a kv head, of a call that has tables.
DEV const int32_t *pagesOf(const KernelParams &p, int32_t sequence, int32_t kvHead) {
  return p.pageTable + static_cast<int64_t>(listOf(p, sequence, kvHead)) * p.maxPages;
}

// Its first row among those of all keys.
DEV int32_t firstKeyOf(const KernelParams &p, int32_t sequence) {
  return p.cuSeqlensK ? min(max(p.cuSeqlensK[sequence], 0), p.pageSize) : 0;
}

DEV int32_t keysOf(const KernelParams &p, int32_t sequence, int32_t kvHead) {
  int32_t keys = p.pageSize * p.maxPages;
  if (p.cuSeqlensK) {
    const int32_t first = firstKeyOf(p, sequence);
    keys = min(max(p.cuSeqlensK[sequence + 1], first), p.pageSize) - first;
  }
  return p.sequsedK ? min(max(p.sequsedK[listOf(p, sequence, kvHead)], 0), keys) : keys;
}

struct Sequence {
  int32_t number, batch, firstRow, rows, keys;

  // As a kv head sees it.
  DEV static Sequence read(const KernelParams &p, int32_t number, int32_t kvHead) {
    Sequence sequence = {number, number, 0, p.seqlenQ, 0};
    if (p.cuSeqlensQ) {
      sequence.batch = 0;
      sequence.firstRow = min(max(p.cuSeqlensQ[number], 0), p.seqlenQ);
      sequence.rows = min(max(p.cuSeqlensQ[number + 1], sequence.firstRow), p.seqlenQ) - sequence.firstRow;
    }
    sequence.keys = keysOf(p, number, kvHead);
    return sequence;
  }

  DEV int32_t origin() const { return keys - rows; }

  DEV PatternContext context(const KernelParams &p, int32_t head) const {
    PatternContext context;
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
