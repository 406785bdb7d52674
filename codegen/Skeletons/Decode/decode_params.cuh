// The parameter block of the decode kernel. Its layout is described to the runtime by the slots of the launch plan
// (PortableDecode.cpp): change both together.
#pragma once

#include "Shared/key_scales.cuh"
#include "Shared/pattern_operands.cuh"

namespace heddle {

struct DecodeParams : OperandsOf<Pattern>, KeyScales<KernelTraits> {
  const void *q, *k, *v;
  void *out;
  float *lse;
  const int32_t *pageTable, *sequsedK;                 // lengths null: offsets say them
  const int32_t *cuSeqlensQ, *cuSeqlensK;              // null: rows are dense; keys lie in pages
  const int32_t *kvIndptr, *kvIndices, *kvLastPageLen; // null: tables, if any, lie side by side
  uint32_t *arrivals;                                  // zero, and left so
  char *states;
  int64_t qStride[3], kStride[3], vStride[3], outStride[3]; // batch or page, row, head; in elements
  int64_t pageInverse;                                      // 2^62 / pageSize, rounded up
  int32_t sequences, heads, kvHeads, sharingHeads, seqlenQ, pages, pageSize, maxPages;
  int32_t tables; // of each sequence: one, or one for each kv head
  float scaleLog2;
  int32_t param[Pattern::kParamCount > 0 ? Pattern::kParamCount : 1];
};

// Of kernels that know which keys sequences share (PortableCascade.cpp).
template <bool Shares> struct ShareParams : DecodeParams {
  const int32_t *sharedK; // of each sequence, with the one before it
  int32_t *sharing;       // cascade_layout.cuh
  char *sharedStates;
};
template <> struct ShareParams<false> : DecodeParams {};

using KernelParams = ShareParams<KernelTraits::kShares != 0>;

} // namespace heddle
