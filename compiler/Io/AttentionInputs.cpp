//===- AttentionInputs.cpp -----------------------------------------------------===//
#include "compiler/Io/AttentionInputs.h"
#include "compiler/Io/Memory.h"
#include "compiler/Io/RandomTensor.h"
#include "compiler/Io/Safetensors.h"
#include "runtime/Core/CountText.h"
#include <algorithm>

namespace heddle {

static std::string describe(const char *name, const HostTensor &tensor) {
  return std::string("tensor '") + name + "' is " + dtypeName(tensor.dtype) + " " + shapeText(tensor.shape);
}

static Status checkRank(const char *name, const HostTensor &tensor) {
  if (tensor.shape.size() == 4)
    return {};
  return Status::invalidArgument(describe(name, tensor) +
                                 "; expected four dimensions [batch, seqlen, heads, head_dim]");
}

// `tensor` must be dtype of q and [batch, seqlen_k, kv_heads, last].
static Status checkLike(const char *name, const HostTensor &tensor, DType dtype, const std::vector<int64_t> &shape) {
  if (tensor.dtype != dtype)
    return Status::invalidArgument(describe(name, tensor) + "; expected " + dtypeName(dtype) + " like 'q'");
  if (tensor.shape != shape)
    return Status::invalidArgument(describe(name, tensor) + "; expected " + shapeText(shape));
  return {};
}

Result<AttentionInputs> makeAttentionInputs(HostTensor q, HostTensor k, HostTensor v) {
  HEDDLE_TRY(checkRank("q", q));
  HEDDLE_TRY(checkRank("k", k));
  HEDDLE_TRY(checkRank("v", v));
  AttentionSizes sizes{q.shape[0], q.shape[1], k.shape[1], q.shape[2], k.shape[2], q.shape[3], v.shape[3]};
  HEDDLE_TRY(checkLike("k", k, q.dtype, {sizes.batch, sizes.seqlenK, sizes.kvHeads, sizes.headDim}));
  HEDDLE_TRY(checkLike("v", v, q.dtype, {sizes.batch, sizes.seqlenK, sizes.kvHeads, sizes.valueDim}));
  if (sizes.headDim < 1 || sizes.valueDim < 1 || sizes.heads < 1 || sizes.kvHeads < 1)
    return Status::invalidArgument(describe("q", q) + " and " + describe("k", k) +
                                   "; expected at least one head and one head dimension");
  if (sizes.heads % sizes.kvHeads != 0)
    return Status::invalidArgument("tensor 'q' has " + counted(sizes.heads, "head") + ", 'k' has " +
                                   grouped(sizes.kvHeads) + "; expected a multiple");
  return AttentionInputs{std::move(q), std::move(k), std::move(v), sizes};
}

Result<AttentionInputs> readAttentionInputs(const std::string &path) {
  HEDDLE_ASSIGN(SafetensorsFile file, SafetensorsFile::open(path));
  HEDDLE_ASSIGN(HostTensor q, file.read("q"));
  HEDDLE_ASSIGN(HostTensor k, file.read("k"));
  HEDDLE_ASSIGN(HostTensor v, file.read("v"));
  Result<AttentionInputs> inputs = makeAttentionInputs(std::move(q), std::move(k), std::move(v));
  if (!inputs.isOk())
    return Status(inputs.status().code(), "tensor file '" + path + "': " + inputs.status().message());
  return inputs;
}

Result<AttentionInputs> randomAttentionInputs(const AttentionSizes &sizes, DType dtype, uint64_t seed) {
  for (int64_t size :
       {sizes.batch, sizes.seqlenQ, sizes.seqlenK, sizes.heads, sizes.kvHeads, sizes.headDim, sizes.valueDim})
    if (size < 0 || size > (int64_t(1) << 31))
      return Status::invalidArgument("random inputs: size " + std::to_string(size) + " is not in [0, 2^31]");
  // 2^40 elements are far beyond any memory, and their byte count still fits 63 bits.
  auto elements = [](std::initializer_list<int64_t> shape) {
    double product = 1;
    for (int64_t size : shape)
      product *= static_cast<double>(size);
    return product;
  };
  if (elements({sizes.batch, sizes.seqlenQ, sizes.heads, sizes.headDim}) > 0x1p40 ||
      elements({sizes.batch, sizes.seqlenK, sizes.kvHeads, std::max(sizes.headDim, sizes.valueDim)}) > 0x1p40)
    return Status::invalidArgument("random inputs: more than 2^40 elements in one tensor");
  const double all = elements({sizes.batch, sizes.seqlenQ, sizes.heads, sizes.headDim}) +
                     elements({sizes.batch, sizes.seqlenK, sizes.kvHeads, sizes.headDim + sizes.valueDim});
  HEDDLE_TRY(checkMemory("random inputs: q, k and v", all * dtypeBytes(dtype), "choose a smaller batch, length, number of heads or head dim"));
  return makeAttentionInputs(
      randomNormalTensor(dtype, {sizes.batch, sizes.seqlenQ, sizes.heads, sizes.headDim}, seed, "q"),
      randomNormalTensor(dtype, {sizes.batch, sizes.seqlenK, sizes.kvHeads, sizes.headDim}, seed, "k"),
      randomNormalTensor(dtype, {sizes.batch, sizes.seqlenK, sizes.kvHeads, sizes.valueDim}, seed, "v"));
}

Status writeAttentionInputs(const std::string &path, const AttentionInputs &inputs, uint64_t seed,
                            const std::map<std::string, OperandTensor> &operands) {
  return writeSafetensors(path, {{"q", &inputs.q}, {"k", &inputs.k}, {"v", &inputs.v}},
                          {{"generator", "heddle normal12"}, {"seed", std::to_string(seed)}}, operands);
}

Status writeAttentionOutputs(const std::string &path, const HostTensor &out, const HostTensor &lse) {
  return writeSafetensors(path, {{"out", &out}, {"lse", &lse}});
}

} // namespace heddle
