//===- PatternApi.cpp - patterns of the C interface, and attention on the CPU -===//
#include "codegen/Cpu/CpuKinds.h"
#include "compiler/Session/CompileForCpu.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Library/EmbeddedPattern.h"
#include "runtime/Device/Arguments.h"
#include "runtime/Api/Handles.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

using namespace heddle;

namespace {

Status openPattern(const std::string &text, const char *label, const char *name, heddle_pattern **pattern) {
  HEDDLE_ASSIGN(std::shared_ptr<EmbeddedPattern> made, EmbeddedPattern::create(text, label, name ? name : ""));
  *pattern = new heddle_pattern{std::move(made)};
  return {};
}

Status bad(const std::string &what) { return Status::invalidArgument("attention arguments: " + what); }

constexpr const char *kDims[] = {"batch", "row", "head", "dim"};

Status checkTensor(const KindRole &role, const heddle_tensor &tensor, int32_t ofQuery,
                   const std::vector<int64_t> &expected) {
  const std::string name = specOf(role.role).name;
  const bool isFp32 = specOf(role).element == RoleElement::fp32;
  const int32_t dtype = isFp32 ? HEDDLE_FP32 : ofQuery;
  if (tensor.dtype != dtype)
    return bad(name + ": dtype: expected " + (isFp32 ? "fp32" : "that of q") + ", number " + std::to_string(dtype) +
               ", got number " + std::to_string(tensor.dtype));
  for (int i = 0; i < 4; ++i)
    if (tensor.size[i] < 0 || tensor.size[i] > INT32_MAX || tensor.size[i] != expected[i])
      return bad(name + ": size of " + kDims[i] + ": expected " + std::to_string(expected[i]) + ", got " +
                 std::to_string(tensor.size[i]));
  if (isEmpty(tensor))
    return {};
  if (tensor.size[3] > 1 && tensor.stride[3] != 1)
    return bad(name + ": stride of dim: expected 1, got " + std::to_string(tensor.stride[3]) +
               "; make the tensor contiguous in dim");
  if (!tensor.ptr)
    return bad(name + ": address: expected host memory, got null");
  for (int i = 0; i < 3; ++i)
    if (includes(role.access, Access::write) && tensor.size[i] > 1 && tensor.stride[i] == 0)
      return bad(name + ": stride of " + kDims[i] + ": expected rows that do not overlap, got 0");
  return {};
}

/// Forward calls need no lse.
Status checkArray(const KindRole &role, const void *address, const AttentionSizes &sizes) {
  const RoleSpec &spec = specOf(role.role);
  const bool isEmpty = sizes.batch * sizes.of(spec.rows) * sizes.of(spec.heads) == 0;
  if (role.access == Access::read && role.presence == Presence::required && !address && !isEmpty)
    return bad(std::string(spec.name) + ": address: expected host memory, got null");
  return {};
}

/// Fills in the tensors, the arrays and the sizes that they give.
Status bindRoles(const KindSpec &kind, const heddle_attention_args &args, CpuCall &call) {
  if (args.q.dtype < HEDDLE_BF16 || args.q.dtype > HEDDLE_FP32)
    return bad("q: dtype: expected bf16, fp16 or fp32 (1 to 3), got number " + std::to_string(args.q.dtype));
  CallInputs inputs;
  inputs.args = args;
  HEDDLE_TRY(checkForeign(kind, inputs));
  SizesOfTensors given;
  for (const KindRole &role : kind.roles) {
    call.give(role.role, inputs.address(role.role));
    if (specOf(role.role).form != RoleForm::tensor) {
      HEDDLE_TRY(checkArray(role, inputs.address(role.role), given.sizes));
      continue;
    }
    const heddle_tensor &tensor = inputs.tensor(role.role);
    HEDDLE_TRY(checkTensor(role, tensor, args.q.dtype, given.expected(specOf(role.role), tensor.size)));
    call.stride[size_t(role.role)] = CpuStrides{tensor.stride[0], tensor.stride[1], tensor.stride[2]};
  }
  const AttentionSizes &sizes = given.sizes;
  const bool isOfNone =
      sizes.heads == 0 && (sizes.kvHeads == 0 || !kind.isBackward()); // d_k has nothing to be written from
  if (!isOfNone && (sizes.heads == 0 || sizes.kvHeads == 0 || sizes.heads % sizes.kvHeads != 0))
    return bad("k: size of head: expected a divisor of the " + std::to_string(sizes.heads) + " query heads, got " +
               std::to_string(sizes.kvHeads));
  call.dtype = call.outDtype = DType(args.q.dtype - 1);
  setSizes(sizes, call);
  return {};
}

Status checkScale(const heddle_attention_args &args) {
  if (!std::isfinite(args.scale) || args.scale < 0)
    return bad("scale: expected a finite number above 0 (or 0 for 1 / sqrt(head_dim)), got " +
               std::to_string(args.scale));
  return {};
}

/// Of tensors that the pattern does not have, or that are given twice.
Status checkPointers(const EmbeddedPattern &pattern, const heddle_attention_args &args) {
  std::vector<bool> isGiven(pattern.arguments().size());
  for (uint64_t i = 0; i < args.operand_count; ++i) {
    const heddle_operand &operand = args.operands[i];
    if (operand.kind != HEDDLE_OPERAND_POINTER)
      continue;
    const std::string number = "pointer number " + std::to_string(operand.id);
    const bool exists = operand.id >= 0 && size_t(operand.id) < isGiven.size();
    if (!exists || pattern.arguments()[size_t(operand.id)].kind != HEDDLE_OPERAND_POINTER)
      return bad("operands: this pattern has no " + number);
    if (isGiven[size_t(operand.id)])
      return bad("operands: " + number + " is given twice");
    isGiven[size_t(operand.id)] = true;
  }
  return {};
}

/// The pattern's tensors, in order of its arguments.
Result<std::vector<const void *>> operandsOf(const EmbeddedPattern &pattern, const heddle_attention_args &args) {
  HEDDLE_TRY(checkPointers(pattern, args));
  std::vector<const void *> operands;
  for (const heddle_pattern_argument &argument : pattern.arguments()) {
    if (argument.kind != HEDDLE_OPERAND_POINTER)
      continue;
    const void *address = nullptr;
    for (uint64_t i = 0; i < args.operand_count; ++i)
      if (args.operands[i].kind == HEDDLE_OPERAND_POINTER && args.operands[i].id == argument.id)
        address = args.operands[i].value.ptr;
    if (!address)
      return bad(std::string("operands: tensor '") + argument.name + "', number " + std::to_string(argument.id) +
                 ", is missing");
    operands.push_back(address);
  }
  return operands;
}

/// Of numbers and tensors of the pattern; the call has its sizes.
Status bindGradients(const KindSpec &kind, const EmbeddedPattern &pattern, const heddle_attention_args &args,
                     CpuCall &call) {
  if (args.gradient_count > 0 && !kind.isBackward())
    return Status::unsupported("attention arguments: a call of kind " + std::string(kind.name) +
                               " has no gradients; leave it zero");
  if (args.gradient_count > 0 && !args.gradients)
    return bad("gradients: expected an address, got null");
  for (uint64_t i = 0; i < args.gradient_count; ++i) {
    HEDDLE_ASSIGN(call.argumentGradients.emplace_back(), pattern.gradientOf(args.gradients[i], call));
  }
  return {};
}

Status compute(const KindSpec &kind, EmbeddedPattern &pattern, const heddle_attention_args &given, int32_t threads) {
  heddle_attention_args args;
  HEDDLE_TRY(readArguments(given, args));
  CpuCall call;
  HEDDLE_TRY(bindRoles(kind, args, call));
  HEDDLE_TRY(checkScale(args));
  HEDDLE_ASSIGN(std::vector<int64_t> words,
                pattern.parameters(args.operands, args.operand_count, /*needsLengths=*/true));
  call.params.assign(words.begin(), words.end());
  HEDDLE_ASSIGN(call.operands, operandsOf(pattern, args));
  HEDDLE_TRY(bindGradients(kind, pattern, args, call));
  for (int64_t origin : {args.q_origin, args.k_origin})
    if (origin < INT32_MIN || origin > INT32_MAX)
      return bad("origins: expected 32 bits, got " + std::to_string(origin));
  call.qOrigin = int32_t(pattern.queryOrigin(args.q_origin, call.seqlenQ, call.seqlenK));
  call.kOrigin = int32_t(args.k_origin);
  call.scale = args.scale != 0 ? args.scale : float(1 / std::sqrt(double(std::max(call.headDim, 1))));
  call.threads = threads;
  if (call.batch == 0 || call.heads == 0 || (call.seqlenQ == 0 && !kind.isBackward())) {
    for (const CpuCall::ArgumentGradient &gradient : call.argumentGradients)
      std::fill_n(gradient.address, gradient.elements, 0.0f);
    return {};
  }
  HEDDLE_ASSIGN(std::shared_ptr<const JitPattern> code, pattern.machineCode(walkOf(kind.name)));
  call.pattern = code.get();
  return cpuFunctionOf(kind)(call);
}

/// A call of kind `name` through the C interface, `what` for people.
heddle_status callOnCpu(const char *name, const char *what, const heddle_pattern *pattern,
                        const heddle_attention_args *args, int32_t threads) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen(what, "pattern", pattern));
    if (!args)
      return missing(what, "args");
    if (threads < 0)
      return Status::invalidArgument(std::string(what) + ": threads: expected 0 or more, got " +
                                     std::to_string(threads));
    return compute(**findKind(name), *pattern->pattern, *args, threads);
  });
}

} // namespace

extern "C" {

heddle_status heddle_pattern_parse(const char *text, const char *label, const char *name, heddle_pattern **pattern) {
  return guarded([&]() -> Status {
    if (!text || !pattern)
      return missing("parse pattern", text ? "pattern" : "text");
    return openPattern(text, label ? label : "pattern", name, pattern);
  });
}

heddle_status heddle_pattern_read(const char *path, const char *name, heddle_pattern **pattern) {
  return guarded([&]() -> Status {
    if (!path || !pattern)
      return missing("read pattern", path ? "pattern" : "path");
    HEDDLE_ASSIGN(std::string text, PatternFile::readText(path));
    return openPattern(text, path, name, pattern);
  });
}

heddle_status heddle_pattern_get_info(const heddle_pattern *pattern, heddle_pattern_info *info) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen("pattern info", "pattern", pattern));
    if (!info)
      return missing("pattern info", "info");
    return writeVersioned("pattern info", pattern->pattern->info(), offsetof(heddle_pattern_info, name), *info);
  });
}

heddle_status heddle_pattern_get_argument(const heddle_pattern *pattern, int32_t index,
                                          heddle_pattern_argument *argument) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen("pattern argument", "pattern", pattern));
    if (!argument)
      return missing("pattern argument", "argument");
    const std::vector<heddle_pattern_argument> &all = pattern->pattern->arguments();
    if (index < 0 || size_t(index) >= all.size())
      return Status::invalidArgument("pattern argument: index: expected 0 to " +
                                     std::to_string(int64_t(all.size()) - 1) + ", got " + std::to_string(index));
    return writeVersioned("pattern argument", all[size_t(index)], offsetof(heddle_pattern_argument, name), *argument);
  });
}

void heddle_pattern_close(heddle_pattern *pattern) { closeHandle(pattern); }

heddle_status heddle_cpu_attention(const heddle_pattern *pattern, const heddle_attention_args *args, int32_t threads) {
  return callOnCpu("forward", "attention on the CPU", pattern, args, threads);
}

heddle_status heddle_cpu_backward(const heddle_pattern *pattern, const heddle_attention_args *args, int32_t threads) {
  return callOnCpu("backward", "gradients on the CPU", pattern, args, threads);
}

heddle_status heddle_cpu_backward_accumulate(const heddle_pattern *pattern, const heddle_attention_args *args,
                                             int32_t threads) {
  return callOnCpu("backward_accumulate", "gradients on the CPU", pattern, args, threads);
}

} // extern "C"
