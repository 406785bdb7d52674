//===- AttentionInputs.h - q, k, v of one call ---------------------------------===//
// Owns the convention for tensor files of attention: q [batch, seqlen_q, heads, head_dim],
// k [batch, seqlen_k, kv_heads, head_dim], v [batch, seqlen_k, kv_heads, value_dim], one dtype;
// results are out [batch, seqlen_q, heads, value_dim] in that dtype and lse
// [batch, heads, seqlen_q] in fp32 (natural logarithm).
#ifndef HEDDLE_COMPILER_IO_ATTENTIONINPUTS_H
#define HEDDLE_COMPILER_IO_ATTENTIONINPUTS_H

#include "compiler/Io/HostTensor.h"
#include "compiler/Io/OperandTensor.h"
#include "runtime/Core/Status.h"
#include <map>
#include <string>

namespace heddle {

struct AttentionSizes {
  int64_t batch = 1, seqlenQ = 0, seqlenK = 0, heads = 1, kvHeads = 1, headDim = 0, valueDim = 0;
};

struct AttentionInputs {
  HostTensor q, k, v;
  AttentionSizes sizes; // derived from the shapes
  DType dtype() const { return q.dtype; }
};

// Shapes and dtypes must agree as above; heads must be a multiple of kvHeads. The message names
// the tensor, what was expected and what was found.
Result<AttentionInputs> makeAttentionInputs(HostTensor q, HostTensor k, HostTensor v);

// Reads tensors q, k, v and checks them; messages also name the file.
Result<AttentionInputs> readAttentionInputs(const std::string &path);

// Standard normal q, k, v, a pure function of (sizes, dtype, seed): RandomTensor.h.
Result<AttentionInputs> randomAttentionInputs(const AttentionSizes &sizes, DType dtype, uint64_t seed);

// Writes q, k, v, and tensors of a pattern by name; seed and generator are noted in the file's metadata.
Status writeAttentionInputs(const std::string &path, const AttentionInputs &inputs, uint64_t seed,
                            const std::map<std::string, OperandTensor> &operands = {});

// Writes out and lse.
Status writeAttentionOutputs(const std::string &path, const HostTensor &out, const HostTensor &lse);

} // namespace heddle

#endif
