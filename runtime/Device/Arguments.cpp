//===- Arguments.cpp - the checks, in the order of the fields ---------------===//
#include "runtime/Device/Arguments.h"
#include "runtime/Core/Positions.h"
#include "runtime/Include/VersionedStruct.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <iterator>

namespace heddle {
namespace {

constexpr const char *kDimNames[] = {"batch", "row", "head", "dim"};
constexpr int64_t kSpanLimit = int64_t(1) << 40; // bytes

std::string num(int64_t value) { return std::to_string(value); }

Status bad(const std::string &what) { return Status::invalidArgument("attention arguments: " + what); }

// Callers of every version have the tensors and lse.
constexpr size_t kLeastStructBytes = offsetof(heddle_attention_args, q_origin);

Status checkUnserved(const heddle_attention_args &args) {
  struct Field {
    const char *name;
    bool isSet;
  };
  auto isAnySet = [](const int64_t (&strides)[2]) { return strides[0] != 0 || strides[1] != 0; };
  const Field fields[] = {{"flags", (args.flags & ~uint32_t(HEDDLE_WITHOUT_GRAPH)) != 0},
                          {"cu_seqlens_q", args.cu_seqlens_q != nullptr},
                          {"cu_seqlens_k", args.cu_seqlens_k != nullptr},
                          {"seqused_k", args.seqused_k != nullptr},
                          {"page_table", args.page_table != nullptr},
                          {"page_size", args.page_size != 0},
                          {"descale_q", args.descale_q != nullptr || isAnySet(args.descale_q_stride)},
                          {"descale_k", args.descale_k != nullptr || isAnySet(args.descale_k_stride)},
                          {"descale_v", args.descale_v != nullptr || isAnySet(args.descale_v_stride)},
                          {"rng_seed", args.rng_seed != 0},
                          {"rng_offset", args.rng_offset != 0}};
  for (const Field &field : fields)
    if (field.isSet)
      return Status::unsupported(std::string("attention arguments: no kernel serves ") + field.name + " yet; leave it zero");
  for (const heddle_tensor *tensor : {&args.q, &args.k, &args.v, &args.out})
    if (tensor->reserved != 0)
      return Status::unsupported("attention arguments: the reserved field of a tensor is not zero");
  return {};
}

Status checkSizes(const char *name, const heddle_tensor &tensor, const int64_t (&expected)[4]) {
  for (int i = 0; i < 4; ++i) {
    if (tensor.size[i] < 0 || tensor.size[i] > INT32_MAX)
      return bad(std::string(name) + ": size of " + kDimNames[i] + ": expected 0 to 2^31 - 1, got " + num(tensor.size[i]));
    if (tensor.size[i] != expected[i])
      return bad(std::string(name) + ": size of " + kDimNames[i] + ": expected " + num(expected[i]) + ", got " + num(tensor.size[i]));
  }
  return {};
}

bool isEmpty(const heddle_tensor &tensor) {
  return std::any_of(std::begin(tensor.size), std::end(tensor.size), [](int64_t size) { return size == 0; });
}

Status checkStrides(const char *name, const heddle_tensor &tensor, int64_t elementBytes, bool isWritten) {
  if (isEmpty(tensor))
    return {};
  if (tensor.size[3] > 1 && tensor.stride[3] != 1)
    return bad(std::string(name) + ": stride of dim: expected 1, got " + num(tensor.stride[3]) + "; make the tensor contiguous in dim");
  int64_t spanBytes = tensor.size[3] * elementBytes;
  for (int i = 0; i < 3; ++i) {
    int64_t stride = tensor.stride[i];
    if (tensor.size[i] == 1)
      continue;
    auto fail = [&](const std::string &what) { return bad(std::string(name) + ": stride of " + kDimNames[i] + ": " + what); };
    if (stride < 0 || stride > kSpanLimit)
      return fail("expected 0 to 2^40, got " + num(stride));
    if (stride * elementBytes % 16 != 0)
      return fail("expected a multiple of 16 bytes, got " + num(stride * elementBytes) + " bytes (" + num(stride) + " elements)");
    if (stride == 0 && isWritten)
      return fail("expected rows that do not overlap, got 0");
    int64_t extent = 0;
    if (__builtin_mul_overflow((tensor.size[i] - 1) * elementBytes, stride, &extent) || extent >= kSpanLimit - spanBytes)
      return fail("the tensor spans 2^40 bytes or more (" + num(tensor.size[i]) + " times " + num(stride) + " elements)");
    spanBytes += extent;
  }
  uintptr_t address = reinterpret_cast<uintptr_t>(tensor.ptr);
  if (address == 0 || address % 16 != 0)
    return bad(std::string(name) + ": address: expected device memory at a multiple of 16 bytes, got " +
               (address == 0 ? std::string("null") : "remainder " + num(int64_t(address % 16))));
  return {};
}

struct TensorCheck {
  const char *name;
  const heddle_tensor *tensor;
  int64_t expected[4];
  DType dtype;
  bool isWritten;
};

Status checkTensors(const KernelFamily &family, const heddle_attention_args &args) {
  int64_t batch = args.q.size[0], rows = args.q.size[1], heads = args.q.size[2];
  int64_t keys = args.k.size[1], kvHeads = args.k.size[2];
  const TensorCheck checks[] = {{"q", &args.q, {batch, rows, heads, family.headDim}, family.dtype, false},
                                {"k", &args.k, {batch, keys, kvHeads, family.headDim}, family.dtype, false},
                                {"v", &args.v, {batch, keys, kvHeads, family.valueDim}, family.dtype, false},
                                {"out", &args.out, {batch, rows, heads, family.valueDim}, family.outDType(), true}};
  for (const TensorCheck &check : checks) {
    if (check.tensor->dtype != int32_t(check.dtype) + 1) {
      int32_t given = check.tensor->dtype - 1;
      std::string got = given >= 0 && given <= 2 ? dtypeName(DType(given)) : "number " + num(check.tensor->dtype);
      return bad(std::string(check.name) + ": dtype: this kernel takes " + dtypeName(check.dtype) + ", got " + got);
    }
    HEDDLE_TRY(checkSizes(check.name, *check.tensor, check.expected));
    HEDDLE_TRY(checkStrides(check.name, *check.tensor, dtypeBytes(check.dtype), check.isWritten));
  }
  if (heads > 0 && (kvHeads == 0 || heads % kvHeads != 0))
    return bad("k: size of head: expected a divisor of the " + num(heads) + " query heads, got " + num(kvHeads));
  return {};
}

Status checkCallPositions(const heddle_attention_args &args) {
  const Status status = checkPositions({args.q_origin, args.q.size[1], args.k_origin, args.k.size[1]});
  return status.isOk() ? status : bad(status.message());
}

Status checkFloats(const heddle_attention_args &args) {
  bool isEmpty = args.q.size[0] == 0 || args.q.size[1] == 0 || args.q.size[2] == 0;
  if (!args.lse && !isEmpty)
    return bad("lse: expected device memory for batch x heads x seqlen_q floats, got null");
  struct Pointer {
    const char *name;
    const float *address;
  };
  for (const Pointer &pointer : {Pointer{"lse", args.lse}, Pointer{"carry_out", args.carry_out}, Pointer{"carry_lse", args.carry_lse}})
    if (reinterpret_cast<uintptr_t>(pointer.address) % (pointer.address == args.carry_out ? 16 : 4) != 0)
      return bad(std::string(pointer.name) + ": address is not aligned");
  if (!args.carry_out != !args.carry_lse)
    return bad(std::string(args.carry_out ? "carry_lse" : "carry_out") + ": expected both carry_out and carry_lse or neither, got null");
  if (!std::isfinite(args.scale) || args.scale < 0)
    return bad("scale: expected a finite number above 0 (or 0 for 1 / sqrt(head_dim)), got " + std::to_string(args.scale));
  return checkCallPositions(args);
}

// Kernels read a number from the bits of its slot.
int64_t wordOf(double number) {
  float rounded = static_cast<float>(number);
  int32_t word;
  std::memcpy(&word, &rounded, sizeof word);
  return word;
}

int64_t lowestBit(uint64_t bits) { return __builtin_ctzll(bits); }

Status readOperands(const CallRequirements &needs, CallInputs &inputs) {
  const heddle_attention_args &args = inputs.args;
  uint64_t sizesSeen = 0, pointersSeen = 0;
  if (args.operand_count > 2 * uint64_t(kMaxRuntimeSizes) || (args.operand_count > 0 && !args.operands))
    return bad("operands: expected at most " + num(2 * kMaxRuntimeSizes) + " with an address, got " + num(int64_t(args.operand_count)));
  for (uint64_t i = 0; i < args.operand_count; ++i) {
    const heddle_operand &operand = args.operands[i];
    bool isSize = operand.kind == HEDDLE_OPERAND_INT || operand.kind == HEDDLE_OPERAND_FLOAT;
    std::string_view kind = isSize ? "run-time size" : "pointer";
    if (!isSize && operand.kind != HEDDLE_OPERAND_POINTER)
      return Status::unsupported("attention arguments: operand " + num(operand.id) + ": no kernel takes operands of kind " + num(operand.kind));
    bool isKnown = operand.id >= 0 && operand.id < kMaxRuntimeSizes &&
                   (isSize ? operand.id < needs.paramCount : (needs.operandMask >> operand.id & 1) != 0);
    if (!isKnown)
      return bad("operands: this kernel has no " + std::string(kind) + " number " + num(operand.id));
    uint64_t &seen = isSize ? sizesSeen : pointersSeen;
    if (seen >> operand.id & 1)
      return bad("operands: " + std::string(kind) + " number " + num(operand.id) + " is given twice");
    seen |= uint64_t(1) << operand.id;
    if (isSize)
      inputs.runtimeSizes[operand.id] = operand.kind == HEDDLE_OPERAND_INT ? operand.value.i64 : wordOf(operand.value.f64);
    else
      inputs.operands[operand.id] = operand.value.ptr;
  }
  if (const uint64_t missing = needs.sizeMask & ~sizesSeen)
    return bad("operands: run-time size number " + num(lowestBit(missing)) + " of " + num(needs.paramCount) + " is missing");
  if (const uint64_t missing = needs.operandMask & ~pointersSeen)
    return bad("operands: pointer number " + num(lowestBit(missing)) + " is missing");
  if (!isEmpty(args.q))
    for (uint64_t left = needs.operandMask; left; left &= left - 1)
      if (!inputs.operands[lowestBit(left)])
        return bad("operands: pointer number " + num(lowestBit(left)) + ": expected device memory, got null");
  return {};
}

// Nobody steps along a dimension of size 1 or in an empty tensor, so any stride is accepted there; kernels and tensor
// maps see one that is valid.
void setStrides(LaunchSymbols &symbols, LaunchSymbol first, const heddle_tensor &tensor) {
  constexpr int64_t kUnusedStride = 8; // elements; 16 bytes of the smallest type
  for (int i = 0; i < 3; ++i)
    symbols.values[int(first) + i] = tensor.size[i] == 1 || isEmpty(tensor) ? kUnusedStride : tensor.stride[i];
}

void setSymbols(const KernelFamily &family, int64_t smCount, CallInputs &inputs) {
  const heddle_attention_args &args = inputs.args;
  LaunchSymbols &symbols = inputs.symbols;
  symbols[LaunchSymbol::batch] = args.q.size[0];
  symbols[LaunchSymbol::heads] = args.q.size[2];
  symbols[LaunchSymbol::kvHeads] = args.k.size[2];
  symbols[LaunchSymbol::seqlenQ] = args.q.size[1];
  symbols[LaunchSymbol::seqlenK] = args.k.size[1];
  symbols[LaunchSymbol::headDim] = family.headDim;
  symbols[LaunchSymbol::valueDim] = family.valueDim;
  symbols[LaunchSymbol::qOrigin] = args.q_origin;
  symbols[LaunchSymbol::kOrigin] = args.k_origin;
  symbols[LaunchSymbol::smCount] = smCount;
  for (LaunchSymbol rows : {LaunchSymbol::roundRows, LaunchSymbol::lseRows, LaunchSymbol::carryRows})
    symbols[rows] = args.q.size[1];
  setStrides(symbols, LaunchSymbol::qStrideBatch, args.q);
  setStrides(symbols, LaunchSymbol::kStrideBatch, args.k);
  setStrides(symbols, LaunchSymbol::vStrideBatch, args.v);
  setStrides(symbols, LaunchSymbol::outStrideBatch, args.out);
}

} // namespace

const void *CallInputs::pointer(const PointerSource &source) const {
  switch (source.kind) {
  case PointerSource::Kind::q: return args.q.ptr;
  case PointerSource::Kind::k: return args.k.ptr;
  case PointerSource::Kind::v: return args.v.ptr;
  case PointerSource::Kind::out: return args.out.ptr;
  case PointerSource::Kind::lse: return args.lse;
  case PointerSource::Kind::carryOut: return args.carry_out;
  case PointerSource::Kind::carryLse: return args.carry_lse;
  case PointerSource::Kind::workspace: return args.workspace;
  case PointerSource::Kind::operand: return operands[source.index];
  }
  return nullptr;
}

const void *CallInputs::mapBase(const PointerSource &source) const {
  using Kind = PointerSource::Kind;
  const heddle_tensor *tensor = source.kind == Kind::q ? &args.q : source.kind == Kind::k ? &args.k : source.kind == Kind::v ? &args.v : nullptr;
  return tensor && isEmpty(*tensor) ? args.out.ptr : pointer(source);
}

Result<CallRequirements> CallRequirements::of(const LaunchPlan &plan) {
  CallRequirements needs;
  needs.paramCount = plan.paramCount();
  needs.keyOriginStep = plan.keyOriginStep;
  int64_t largestOperand = -1;
  auto use = [&](const PointerSource &source) {
    if (source.kind != PointerSource::Kind::operand)
      return;
    largestOperand = std::max(largestOperand, source.index);
    needs.operandMask |= uint64_t(1) << (source.index % kMaxRuntimeSizes);
  };
  for (size_t i = 0; i < plan.launchCount(); ++i) {
    const KernelLaunch &launch = plan.launch(i);
    for (const ClearSpec &clear : launch.clears)
      use(clear.target);
    for (const TensorMapSpec &map : launch.tensorMaps)
      use(map.source);
    for (const SlotSpec &slot : launch.slots)
      if (slot.kind == SlotSpec::Kind::ptr)
        use(slot.pointer);
  }
  const std::vector<bool> used = plan.usedParams();
  for (size_t i = 0; i < used.size() && i < size_t(kMaxRuntimeSizes); ++i)
    needs.sizeMask |= uint64_t(used[i]) << i;
  if (needs.paramCount > kMaxRuntimeSizes || largestOperand >= kMaxRuntimeSizes)
    return Status::unsupported("launch plan: this runtime passes at most " + num(kMaxRuntimeSizes) + " run-time sizes and pointers");
  return needs;
}

Status readArguments(const heddle_attention_args &args, heddle_attention_args &known) {
  HEDDLE_TRY(readVersioned("attention arguments", args, kLeastStructBytes, known));
  return checkUnserved(known);
}

Status checkArguments(const KernelFamily &family, const CallRequirements &needs, int64_t smCount,
                      const heddle_attention_args &args, CallInputs &inputs) {
  HEDDLE_TRY(readArguments(args, inputs.args));
  HEDDLE_TRY(checkTensors(family, inputs.args));
  HEDDLE_TRY(checkFloats(inputs.args));
  if (inputs.args.k_origin % needs.keyOriginStep != 0)
    return bad("k_origin: expected a multiple of " + num(needs.keyOriginStep) + ", got " + num(inputs.args.k_origin) +
               "; this kernel keeps or drops whole blocks of keys. A pattern with q_origin given takes any");
  HEDDLE_TRY(readOperands(needs, inputs));
  setSymbols(family, smCount, inputs);
  inputs.symbols.params = inputs.runtimeSizes;
  inputs.symbols.paramCount = needs.paramCount;
  double scale = inputs.args.scale != 0 ? double(inputs.args.scale) : 1 / std::sqrt(double(std::max<int64_t>(family.headDim, 1)));
  inputs.scaleLog2 = float(scale * 1.4426950408889634074);
  return {};
}

} // namespace heddle
