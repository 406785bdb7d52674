// The parameter block of the decode kernel. Its layout is described to the runtime by the slots of the launch plan
// (PortableDecode.cpp): change both together.
#pragma once

#include "Shared/pattern_operands.cuh"

namespace heddle {

struct KernelParams : PatternOperands {
  const void *q, *k, *v;
  void *out;
  float *lse;
  const int32_t *pageTable, *sequsedK, *cuSeqlensQ; // offsets null: rows are dense
  uint32_t *arrivals;                               // zero, and left so
  char *states;
  int64_t qStride[3], kStride[3], vStride[3], outStride[3]; // batch or page, row, head; in elements
  int64_t pageInverse;                                      // 2^62 / pageSize, rounded up
  int32_t sequences, heads, kvHeads, sharingHeads, seqlenQ, pages, pageSize, maxPages;
  float scaleLog2;
  int32_t param[Pattern::kParamCount > 0 ? Pattern::kParamCount : 1];
};

} // namespace heddle
