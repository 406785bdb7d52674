// What is read of a sequence: where its rows lie and how many keys it has. Lengths and offsets are the caller's word;
// what they say beyond the tensors is cut.
#pragma once

#include "Decode/decode_params.cuh"
#include "Shared/pattern_context.cuh"

namespace heddle {

struct Sequence {
  int32_t number, batch, firstRow, rows, keys;

  DEV static Sequence read(const KernelParams &p, int32_t number) {
    Sequence sequence = {number, number, 0, p.seqlenQ, 0};
    if (p.cuSeqlensQ) {
      sequence.batch = 0;
      sequence.firstRow = min(max(p.cuSeqlensQ[number], 0), p.seqlenQ);
      sequence.rows = min(max(p.cuSeqlensQ[number + 1], sequence.firstRow), p.seqlenQ) - sequence.firstRow;
    }
    sequence.keys = min(max(p.sequsedK[number], 0), p.pageSize * p.maxPages);
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
