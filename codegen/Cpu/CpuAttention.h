//===- CpuAttention.h - attention on the CPU --------------------------------===//
// Owns the CPU target: the reference for people without a GPU. It walks the same generated ranges as
// a device skeleton and computes a blocked online softmax in fp32.
#ifndef HEDDLE_CODEGEN_CPU_CPUATTENTION_H
#define HEDDLE_CODEGEN_CPU_CPUATTENTION_H

#include "runtime/Core/DType.h"
#include "runtime/Core/Status.h"
#include <array>
#include <vector>

namespace heddle {

class JitPattern;

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

// Writes every element of out, and of lse if given, exactly once: rows that keep no key get 0 and
// -inf (or the carry, if there is one). Elements of k and v that no visited tile holds are not read, and those of a key
// change only the rows that keep it, whatever they are. Values below 3.4e38 / (kept keys of a row) do not overflow.
// Thread safe; no state is kept between calls. Fails with invalidArgument, before anything is
// written, when the sizes do not fit together.
Result<CpuAttentionCounts> runAttention(const JitPattern &pattern, const CpuAttentionArgs &args);

} // namespace heddle

#endif
