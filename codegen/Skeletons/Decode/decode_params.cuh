// The parameter block of the decode kernel. Its layout is described to the runtime by the slots of the launch plan
// (PortableDecode.cpp): change both together.
#pragma once

#include "Shared/key_scales.cuh"
#include "Shared/pattern_context.cuh"

namespace heddle {

// Of patterns of parts; null: keys begin at 0, and the whole ends where they do.
template <class K, bool IsPart = K::kWholeKeys >= 0> struct PartFields {
  const int32_t *kOrigins, *wholeK;
};
template <class K> struct PartFields<K, false> {};

template <class K> struct DecodeFields : OperandsOf<typename K::Pattern>, KeyScales<K>, PartFields<K> {
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
  int32_t param[kArgumentWords<typename K::Pattern>];
};

// Of kernels that know which keys sequences share (PortableCascade.cpp).
template <class K, bool Shares, bool IsInvariant> struct DecodeParams : DecodeFields<K> {
  const int32_t *sharedK; // of each sequence, with the one before it
  int32_t *sharing;       // cascade_layout.cuh
  char *sharedStates;
};
template <class K> struct DecodeParams<K, false, false> : DecodeFields<K> {};
// Of kernels whose units fall into parts of their own (PortableDecodeInvariant.cpp).
template <class K> struct DecodeParams<K, false, true> : DecodeFields<K> {
  int64_t slotsOfBlock, slotBytes; // of `states`
};

} // namespace heddle
