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

// In the order in which a block asks for them: what deals out the work, what finds its keys and queries, and what its results
// need. The first word of a line of constants that is asked for takes some 300 clocks to come.
template <class K> struct DecodeFields : OperandsOf<typename K::Pattern>, KeyScales<K>, PartFields<K> {
  int32_t sequences, tables; // tables of each sequence: one, or one for each kv head
  int32_t pageSize, maxPages, heads, kvHeads, sharingHeads, seqlenQ;
  const int32_t *kvIndptr, *cuSeqlensQ, *sequsedK,
      *cuSeqlensK; // null: tables, if any, lie side by side; rows are dense;
                   // offsets say lengths; keys lie in pages
  const int32_t *pageTable;
  const void *k, *v;
  int64_t kStride[3], vStride[3]; // batch or page, row, head; in elements
  int64_t pageInverse;            // 2^62 / pageSize, rounded up
  const void *q;
  int64_t qStride[3];
  const int32_t *kvIndices, *kvLastPageLen;
  int32_t param[kArgumentWords<typename K::Pattern>];
  int32_t pages;
  float scaleLog2;
  uint32_t *arrivals; // zero, and left so
  char *states;
  void *out;
  float *lse;
  int64_t outStride[3];
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
