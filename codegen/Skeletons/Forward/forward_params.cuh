// The parameter block of the portable forward kernel. Its layout is fixed by docs/architecture.md section 3 and
// described to the runtime by the slots of the launch plan: change both together.
#pragma once

#include "Shared/key_scales.cuh"
#include "Shared/pattern_context.cuh"
#include "Forward/row_range.cuh"

namespace heddle {

template <class K> struct PortableForwardParams : OperandsOf<typename K::Pattern>, PassRows<K>, KeyScales<K> {
  const void *q, *k, *v;
  void *out;
  float *lse;
  const float *carryOut;
  const float *carryLse;
  int64_t qStride[3], kStride[3], vStride[3], outStride[3]; // batch, row, head; in elements
  int32_t batch, heads, kvHeads, seqlenQ, seqlenK, qOrigin, kOrigin;
  float scaleLog2;
  int32_t param[kArgumentWords<typename K::Pattern>];
};

// (batch, head) pairs whose query tiles run side by side.
template <class K> DEV int32_t rasterPairs(const PortableForwardParams<K> &) { return K::kRasterHeads; }

} // namespace heddle
