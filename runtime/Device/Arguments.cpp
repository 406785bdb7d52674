//===- Arguments.cpp - the checks, in the order of the fields ---------------===//
#include "runtime/Device/Arguments.h"
#include "runtime/Core/Positions.h"
#include "runtime/Core/VersionedStruct.h"

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
      return Status::unsupported(std::string("attention arguments: no kernel serves ") + field.name +
                                 " yet; leave it zero");
  return {};
}

Status checkSizes(const char *name, const heddle_tensor &tensor, const int64_t (&expected)[4]) {
  for (int i = 0; i < 4; ++i) {
    if (tensor.size[i] < 0 || tensor.size[i] > INT32_MAX)
      return bad(std::string(name) + ": size of " + kDimNames[i] + ": expected 0 to 2^31 - 1, got " +
                 num(tensor.size[i]));
    if (tensor.size[i] != expected[i])
      return bad(std::string(name) + ": size of " + kDimNames[i] + ": expected " + num(expected[i]) + ", got " +
                 num(tensor.size[i]));
  }
  return {};
}

Status checkStrides(const char *name, const heddle_tensor &tensor, int64_t elementBytes, bool isWritten) {
  if (isEmpty(tensor))
    return {};
  if (tensor.size[3] > 1 && tensor.stride[3] != 1)
    return bad(std::string(name) + ": stride of dim: expected 1, got " + num(tensor.stride[3]) +
               "; make the tensor contiguous in dim");
  int64_t spanBytes = tensor.size[3] * elementBytes;
  for (int i = 0; i < 3; ++i) {
    int64_t stride = tensor.stride[i];
    if (tensor.size[i] == 1)
      continue;
    auto fail = [&](const std::string &what) {
      return bad(std::string(name) + ": stride of " + kDimNames[i] + ": " + what);
    };
    if (stride < 0 || stride > kSpanLimit)
      return fail("expected 0 to 2^40, got " + num(stride));
    if (stride * elementBytes % 16 != 0)
      return fail("expected a multiple of 16 bytes, got " + num(stride * elementBytes) + " bytes (" + num(stride) +
                  " elements)");
    if (stride == 0 && isWritten)
      return fail("expected rows that do not overlap, got 0");
    int64_t extent = 0;
    if (__builtin_mul_overflow((tensor.size[i] - 1) * elementBytes, stride, &extent) ||
        extent >= kSpanLimit - spanBytes)
      return fail("the tensor spans 2^40 bytes or more (" + num(tensor.size[i]) + " times " + num(stride) +
                  " elements)");
    spanBytes += extent;
  }
  uintptr_t address = reinterpret_cast<uintptr_t>(tensor.ptr);
  if (address == 0 || address % 16 != 0)
    return bad(std::string(name) + ": address: expected device memory at a multiple of 16 bytes, got " +
               (address == 0 ? std::string("null") : "remainder " + num(int64_t(address % 16))));
  return {};
}

DType elementOf(const RoleSpec &role, const KernelFamily &family) {
  switch (role.element) {
  case RoleElement::dtype:
    return family.dtype;
  case RoleElement::outDtype:
    return family.outDType();
  case RoleElement::fp32:
    break;
  }
  return DType::fp32;
}

LaunchSymbol symbolOf(RoleExtent extent) {
  switch (extent) {
  case RoleExtent::seqlenQ:
    return LaunchSymbol::seqlenQ;
  case RoleExtent::seqlenK:
    return LaunchSymbol::seqlenK;
  case RoleExtent::heads:
    return LaunchSymbol::heads;
  case RoleExtent::kvHeads:
    return LaunchSymbol::kvHeads;
  case RoleExtent::headDim:
    return LaunchSymbol::headDim;
  case RoleExtent::valueDim:
    break;
  case RoleExtent::one:
    break; // of arrays only
  }
  return LaunchSymbol::valueDim;
}

// The sizes of the call, each from the first tensor of the kind that has it; dims are those of the kernel.
class CallSizes {
public:
  CallSizes(const KernelFamily &family, LaunchSymbols &symbols) : symbols(symbols) {
    set(LaunchSymbol::headDim, family.headDim);
    set(LaunchSymbol::valueDim, family.valueDim);
  }

  Status check(const RoleSpec &role, const heddle_tensor &tensor) {
    const LaunchSymbol extents[] = {LaunchSymbol::batch, symbolOf(role.rows), symbolOf(role.heads), symbolOf(role.dim)};
    int64_t expected[4];
    for (int i = 0; i < 4; ++i) {
      if (!isKnown[int(extents[i])])
        set(extents[i], tensor.size[i]);
      expected[i] = symbols[extents[i]];
    }
    return checkSizes(role.name, tensor, expected);
  }

private:
  void set(LaunchSymbol symbol, int64_t value) {
    symbols[symbol] = value;
    isKnown[int(symbol)] = true;
  }

  LaunchSymbols &symbols;
  bool isKnown[kLaunchSymbolCount] = {};
};

Status checkDtype(const RoleSpec &role, const heddle_tensor &tensor, DType expected) {
  if (tensor.dtype == int32_t(expected) + 1)
    return {};
  const int32_t given = tensor.dtype - 1;
  const std::string got = given >= 0 && given <= 2 ? dtypeName(DType(given)) : "number " + num(tensor.dtype);
  return bad(std::string(role.name) + ": dtype: this kernel takes " + dtypeName(expected) + ", got " + got);
}

// Nobody steps along a dimension of size 1 or in an empty tensor, so any stride is accepted there; kernels and tensor
// maps see one that is valid.
void setStrides(LaunchSymbols &symbols, Role role, const heddle_tensor &tensor) {
  constexpr int64_t kUnusedStride = 8; // elements; 16 bytes of the smallest type
  for (int i = 0; i < kStrideDims; ++i)
    symbols[strideOf(role, StrideDim(i))] = tensor.size[i] == 1 || isEmpty(tensor) ? kUnusedStride : tensor.stride[i];
}

bool isUnset(const heddle_tensor &tensor) {
  const heddle_tensor unset = {};
  return std::memcmp(&tensor, &unset, sizeof unset) == 0;
}

Status checkTensors(const KernelFamily &family, const KindSpec &kind, CallInputs &inputs) {
  CallSizes sizes(family, inputs.symbols);
  for (const KindRole &known : kind.roles) {
    const RoleSpec role = specOf(known);
    if (role.form != RoleForm::tensor)
      continue;
    const heddle_tensor &tensor = inputs.tensor(known.role);
    const DType dtype = elementOf(role, family);
    if (tensor.reserved != 0)
      return Status::unsupported("attention arguments: the reserved field of a tensor is not zero");
    HEDDLE_TRY(checkDtype(role, tensor, dtype));
    HEDDLE_TRY(sizes.check(role, tensor));
    HEDDLE_TRY(checkStrides(role.name, tensor, dtypeBytes(dtype), includes(known.access, Access::write)));
    setStrides(inputs.symbols, known.role, tensor);
  }
  const int64_t heads = inputs.symbols[LaunchSymbol::heads], kvHeads = inputs.symbols[LaunchSymbol::kvHeads];
  if (kind.find(Role::k) && heads > 0 && (kvHeads == 0 || heads % kvHeads != 0))
    return bad("k: size of head: expected a divisor of the " + num(heads) + " query heads, got " + num(kvHeads));
  return {};
}

// Rows of more than one element are read 16 bytes at a time.
int64_t alignmentOf(const RoleSpec &array) { return array.dim == RoleExtent::one ? 4 : 16; }

Status checkPresence(const KindRole &known, const CallRequirements &needs, const CallInputs &inputs) {
  const RoleSpec &role = specOf(known.role);
  const bool isGiven = inputs.address(known.role) != nullptr;
  const int64_t rows =
      inputs.symbols[LaunchSymbol::batch] * inputs.symbols[symbolOf(role.rows)] * inputs.symbols[symbolOf(role.heads)];
  if (isGiven && !needs.serves.has(known.role))
    return Status::unsupported("attention arguments: this kernel does not take " + std::string(role.name) +
                               "; leave it null");
  if (known.presence == Presence::required && !isGiven && rows != 0)
    return bad(std::string(role.name) + ": expected device memory for batch x heads x seqlen_q floats, got null");
  return {};
}

// "carry_out and carry_lse"
std::string namesOfTogether(const KindSpec &kind) {
  std::string names;
  for (const KindRole &known : kind.roles)
    if (known.presence == Presence::together)
      names += (names.empty() ? "" : " and ") + std::string(specOf(known.role).name);
  return names;
}

Status checkTogether(const KindSpec &kind, const CallInputs &inputs) {
  const char *missing = nullptr;
  bool isAnyGiven = false;
  for (const KindRole &known : kind.roles) {
    if (known.presence != Presence::together)
      continue;
    const bool isGiven = inputs.address(known.role) != nullptr;
    isAnyGiven = isAnyGiven || isGiven;
    missing = isGiven ? missing : specOf(known.role).name;
  }
  return isAnyGiven && missing
             ? bad(std::string(missing) + ": expected both " + namesOfTogether(kind) + " or neither, got null")
             : Status();
}

Status checkArrays(const CallRequirements &needs, const CallInputs &inputs) {
  for (const KindRole &known : needs.kind->roles) {
    const RoleSpec &role = specOf(known.role);
    if (role.form != RoleForm::array)
      continue;
    HEDDLE_TRY(checkPresence(known, needs, inputs));
    if (reinterpret_cast<uintptr_t>(inputs.address(known.role)) % uintptr_t(alignmentOf(role)) != 0)
      return bad(std::string(role.name) + ": address is not aligned");
  }
  return checkTogether(*needs.kind, inputs);
}

Status checkCallPositions(const CallRequirements &needs, const CallInputs &inputs) {
  const heddle_attention_args &args = inputs.args;
  const int64_t rows = inputs.symbols[LaunchSymbol::seqlenQ], keys = inputs.symbols[LaunchSymbol::seqlenK];
  const Status status = checkPositions({args.q_origin, rows, args.k_origin, keys});
  if (!status.isOk())
    return bad(status.message());
  const bool isEnd = needs.serves.qOrigin == QOriginRule::end && args.q_origin == keys - rows;
  if (needs.serves.qOrigin != QOriginRule::given && args.q_origin != 0 && !isEnd)
    return bad("q_origin: expected 0, got " + num(args.q_origin) + "; this pattern says itself where query 0 stands (" +
               qOriginRuleName(needs.serves.qOrigin) + "), one with q_origin given takes any");
  if (!needs.serves.keyOriginStep)
    return checkAllKeys(args.k_origin);
  if (args.k_origin % needs.serves.keyOriginStep != 0)
    return bad("k_origin: expected a multiple of " + num(needs.serves.keyOriginStep) + ", got " + num(args.k_origin) +
               "; this kernel keeps or drops whole blocks of keys. A pattern with q_origin given takes any");
  return {};
}

Status checkScale(const heddle_attention_args &args) {
  if (!std::isfinite(args.scale) || args.scale < 0)
    return bad("scale: expected a finite number above 0 (or 0 for 1 / sqrt(head_dim)), got " +
               std::to_string(args.scale));
  return {};
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
  if (args.operand_count > 2 * uint64_t(kMaxArguments) || (args.operand_count > 0 && !args.operands))
    return bad("operands: expected at most " + num(2 * kMaxArguments) + " with an address, got " +
               num(int64_t(args.operand_count)));
  for (uint64_t i = 0; i < args.operand_count; ++i) {
    const heddle_operand &operand = args.operands[i];
    bool isSize = operand.kind == HEDDLE_OPERAND_INT || operand.kind == HEDDLE_OPERAND_FLOAT;
    std::string_view kind = isSize ? "run-time size" : "pointer";
    if (!isSize && operand.kind != HEDDLE_OPERAND_POINTER)
      return Status::unsupported("attention arguments: operand " + num(operand.id) +
                                 ": no kernel takes operands of kind " + num(operand.kind));
    bool isKnown = operand.id >= 0 && operand.id < kMaxArguments &&
                   (isSize ? operand.id < needs.paramCount : (needs.operandMask >> operand.id & 1) != 0);
    if (!isKnown)
      return bad("operands: this kernel has no " + std::string(kind) + " number " + num(operand.id));
    uint64_t &seen = isSize ? sizesSeen : pointersSeen;
    if (seen >> operand.id & 1)
      return bad("operands: " + std::string(kind) + " number " + num(operand.id) + " is given twice");
    seen |= uint64_t(1) << operand.id;
    if (isSize)
      inputs.runtimeSizes[operand.id] =
          operand.kind == HEDDLE_OPERAND_INT ? operand.value.i64 : wordOf(operand.value.f64);
    else
      inputs.operands[operand.id] = operand.value.ptr;
  }
  if (const uint64_t missing = needs.sizeMask & ~sizesSeen)
    return bad("operands: run-time size number " + num(lowestBit(missing)) + " of " + num(needs.paramCount) +
               " is missing");
  if (const uint64_t missing = needs.operandMask & ~pointersSeen)
    return bad("operands: pointer number " + num(lowestBit(missing)) + " is missing");
  if (!isEmpty(inputs.tensor(needs.kind->roles.front().role)))
    for (uint64_t left = needs.operandMask; left; left &= left - 1)
      if (!inputs.operands[lowestBit(left)])
        return bad("operands: pointer number " + num(lowestBit(left)) + ": expected device memory, got null");
  return {};
}

void setOtherSymbols(int64_t smCount, CallInputs &inputs) {
  const heddle_attention_args &args = inputs.args;
  LaunchSymbols &symbols = inputs.symbols;
  symbols[LaunchSymbol::qOrigin] = args.q_origin;
  symbols[LaunchSymbol::kOrigin] = args.k_origin;
  symbols[LaunchSymbol::smCount] = smCount;
  for (LaunchSymbol rows : {LaunchSymbol::roundRows, LaunchSymbol::lseRows, LaunchSymbol::carryRows})
    symbols[rows] = symbols[LaunchSymbol::seqlenQ];
}

} // namespace

Status readArguments(const heddle_attention_args &args, heddle_attention_args &known) {
  HEDDLE_TRY(readVersioned("attention arguments", args, kLeastStructBytes, known));
  return checkUnserved(known);
}

Status checkForeign(const KindSpec &kind, const CallInputs &inputs) {
  for (const RoleSpec &role : kRoles) {
    const bool isTensor = role.form == RoleForm::tensor;
    if (!kind.find(role.role) && (isTensor ? !isUnset(inputs.tensor(role.role)) : inputs.address(role.role) != nullptr))
      return Status::unsupported("attention arguments: a call of kind " + std::string(kind.name) + " has no " +
                                 role.name + "; leave it zero");
  }
  return {};
}

Status checkArguments(const KernelFamily &family, const CallRequirements &needs, int64_t smCount,
                      const heddle_attention_args &args, CallInputs &inputs) {
  HEDDLE_TRY(readArguments(args, inputs.args));
  HEDDLE_TRY(checkForeign(*needs.kind, inputs));
  HEDDLE_TRY(checkTensors(family, *needs.kind, inputs));
  HEDDLE_TRY(checkArrays(needs, inputs));
  HEDDLE_TRY(checkScale(inputs.args));
  HEDDLE_TRY(checkCallPositions(needs, inputs));
  HEDDLE_TRY(readOperands(needs, inputs));
  HEDDLE_TRY(readGradients(needs, inputs));
  setOtherSymbols(smCount, inputs);
  inputs.symbols.params = inputs.runtimeSizes;
  inputs.symbols.paramCount = needs.paramCount;
  double scale =
      inputs.args.scale != 0 ? double(inputs.args.scale) : 1 / std::sqrt(double(std::max<int64_t>(family.headDim, 1)));
  inputs.scaleLog2 = float(scale * 1.4426950408889634074);
  return {};
}

} // namespace heddle
