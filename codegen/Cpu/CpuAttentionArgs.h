//===- CpuAttentionArgs.h - one call on the CPU -------------------------------===//
#ifndef HEDDLE_CODEGEN_CPU_CPUATTENTIONARGS_H
#define HEDDLE_CODEGEN_CPU_CPUATTENTIONARGS_H

#include "runtime/Core/DType.h"
#include <array>
#include <vector>

namespace heddle {

// Element strides of batch, row and head; the last dimension is contiguous.
using CpuStrides = std::array<int64_t, 3>;

// Strides of a dense [batch, rows, heads, dim] tensor.
inline CpuStrides denseStrides(int64_t rows, int64_t heads, int64_t dim) {
  return {rows * heads * dim, heads * dim, dim};
}

struct CpuAttentionArgs {
  DType dtype = DType::fp32; // of q, k, v and out
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  void *out = nullptr;
  float *lse = nullptr; // [batch, heads, seqlen_q], natural logarithm; null: not wanted
  // A softmax to continue: normalised out [batch, seqlen_q, heads, value_dim] and its lse, both dense
  // fp32. Null: none.
  const float *carryOut = nullptr, *carryLse = nullptr;
  CpuStrides qStride = {}, kStride = {}, vStride = {}, outStride = {};
  int32_t batch = 1, heads = 1, kvHeads = 1, seqlenQ = 0, seqlenK = 0;
  int32_t headDim = 0, valueDim = 0, qOrigin = 0, kOrigin = 0;
  float scale = 1.0f;
  std::vector<int32_t> params; // the pattern's run-time sizes; of a tensor, its length
  // The pattern's tensors, in the order of PatternInfo::operands; row-major, of the extents that its ops say.
  std::vector<const void *> operands;
  int32_t blockM = 64, blockN = 64;
  int threads = 0; // 0: one per processor
};

// What was computed, summed over batch, heads and branches.
struct CpuAttentionCounts {
  int64_t visitedTiles = 0, fullTiles = 0;
  // Pairs of an existing row and an existing key in visited tiles: 2 * (headDim + valueDim)
  // operations each.
  int64_t computedPairs = 0;
};

} // namespace heddle

#endif
