// The parameter block of the Hopper backward kernel: its layout is described to the runtime by the slots of the launch
// plan, change both together. Tensor maps come by operand (k, v, q, d_out) and, of each, as in rate_maps.cuh.
// Dimensions: dim, row number in its class, residue, head, batch. Behind them those of lse and delta: row, tile.
#pragma once

#include "Backward/gradient_pointers.cuh"
#include "Ptx/tensor_copy.cuh"
#include "Shared/pattern_operands.cuh"
#include "Shared/rate_maps.cuh"

namespace heddle {

constexpr int kKeyMaps = 0;
constexpr int kValueMaps = kKeyMaps + KernelTraits::kKeyRateCount * KernelTraits::kMapsPerRate;
constexpr int kQueryMaps = kValueMaps + KernelTraits::kKeyRateCount * KernelTraits::kMapsPerRate;
constexpr int kOutMaps = kQueryMaps + KernelTraits::kQueryRateCount * KernelTraits::kMapsPerRate;
constexpr int kLseMap = kOutMaps + KernelTraits::kQueryRateCount * KernelTraits::kMapsPerRate;
constexpr int kDeltaMap = kLseMap + 1;
constexpr int kMapCount = kDeltaMap + 1;

struct KernelParams : PatternOperands, GradientPointers<kGradientCount> {
  TensorMap maps[kMapCount];
  void *keyGradient, *valueGradient;
  const float *lse, *delta; // of tiles (row_statistics.cuh)
  float *sums;              // dq_accumulation.cuh; of heddle_branch_deltas the deltas
  void *between;            // what blocks leave for each other: sm90_cta_teams.cuh, sm90_dq_order.cuh
  void *queryGradient;      // of heddle_query_walk alone
  int64_t keyGradientStride[3], valueGradientStride[3]; // batch, row, head; in elements
  int64_t queryGradientStride[3];
  int32_t batch, heads, kvHeads, seqlenQ, seqlenK, qOrigin, kOrigin;
  float scaleLog2;
  int32_t raster; // (batch, kv head) pairs whose key tiles run side by side
  int32_t param[Pattern::kParamCount > 0 ? Pattern::kParamCount : 1];
};

} // namespace heddle
