// The parameter block of the portable backward kernel, of all its walks: its layout is described to the runtime by
// the slots of the launch plan, change both together.
#pragma once

#include "Backward/gradient_pointers.cuh"
#include "Shared/pattern_context.cuh"

namespace heddle {

template <class K>
struct PortableBackwardParams : OperandsOf<typename K::Pattern>, GradientPointers<K::kGradientCount> {
  const void *q, *k, *v, *dOut;
  void *rowGradient, *valueGradient;                         // of k, or in walks over key tiles of q, and of v
  const float *lse, *delta;                                  // as in row_statistics.cuh
  float *branchSums;                                         // of gradient(detached), as in branch_sums.cuh
  float *queryGradient;                                      // sums in fp32 (dq_accumulation.cuh)
  int64_t qStride[3], kStride[3], vStride[3], dOutStride[3]; // batch, row, head; in elements
  int64_t rowGradientStride[3], valueGradientStride[3];
  int32_t batch, heads, kvHeads, seqlenQ, seqlenK, qOrigin, kOrigin;
  float scaleLog2;
  int32_t raster; // (batch, head) pairs whose items run side by side
  int32_t param[kArgumentWords<typename K::Pattern>];
};

} // namespace heddle
