// The parameter block of the portable forward kernel. Its layout is fixed by docs/architecture.md section 3 and
// described to the runtime by the slots of the launch plan: change both together.
#pragma once

#include "Shared/key_scales.cuh"
#include "Shared/pattern_operands.cuh"
#include "Forward/row_range.cuh"

namespace heddle {

struct KernelParams : PatternOperands, PassRows, KeyScales<kHasScaledKeys> {
  const void *q, *k, *v;
  void *out;
  float *lse;
  const float *carryOut;
  const float *carryLse;
  int64_t qStride[3], kStride[3], vStride[3], outStride[3]; // batch, row, head; in elements
  int32_t batch, heads, kvHeads, seqlenQ, seqlenK, qOrigin, kOrigin;
  float scaleLog2;
  int32_t param[Pattern::kParamCount > 0 ? Pattern::kParamCount : 1];
};

// (batch, head) pairs whose query tiles run side by side.
DEV int32_t rasterPairs(const KernelParams &) { return KernelTraits::kRasterHeads; }

} // namespace heddle
