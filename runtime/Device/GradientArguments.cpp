//===- GradientArguments.cpp - where gradients of arguments go ----------------===//
#include "runtime/Device/Arguments.h"

#include <algorithm>

namespace heddle {
namespace {

std::string num(int64_t value) { return std::to_string(value); }

Status bad(const std::string &what) { return Status::invalidArgument("attention arguments: " + what); }

// The kind of kernel that writes the gradients that are asked for.
std::string kindFor(const CallRequirements &needs, const heddle_attention_args &args) {
  KindText kind = {needs.kind->name};
  for (uint64_t i = 0; i < args.gradient_count; ++i)
    kind.gradientsOf.push_back(args.gradients[i].id);
  std::sort(kind.gradientsOf.begin(), kind.gradientsOf.end());
  return kind.str();
}

} // namespace

Status readGradients(const CallRequirements &needs, CallInputs &inputs) {
  const heddle_attention_args &args = inputs.args;
  if (args.gradient_count > uint64_t(kMaxArguments) || (args.gradient_count > 0 && !args.gradients))
    return bad("gradients: expected at most " + num(kMaxArguments) + " with an address, got " +
               num(int64_t(args.gradient_count)));
  uint64_t seen = 0;
  for (uint64_t i = 0; i < args.gradient_count; ++i) {
    const heddle_gradient &gradient = args.gradients[i];
    const std::string which = "gradients: argument " + num(gradient.id) + ": ";
    if (gradient.id < 0 || gradient.id >= kMaxArguments || (needs.gradientMask >> gradient.id & 1) == 0)
      return Status::unsupported(
          "attention arguments: " + which + "this kernel does not write it; " +
          (needs.kind->isBackward() ? "one of kind " + kindFor(needs, args) + " does" : "leave gradients zero"));
    if (seen >> gradient.id & 1)
      return bad(which + "is given twice");
    seen |= uint64_t(1) << gradient.id;
    if (gradient.reserved != 0)
      return Status::unsupported("attention arguments: " + which + "the reserved field is not zero");
    const bool isMissing = !gradient.ptr && !isEmpty(inputs.tensor(needs.kind->roles.front().role));
    if (isMissing || reinterpret_cast<uintptr_t>(gradient.ptr) % sizeof(float) != 0)
      return bad(which + "expected device memory for floats, got " + (gradient.ptr ? "an unaligned address" : "null"));
    inputs.gradients[gradient.id] = gradient.ptr;
  }
  if (const uint64_t missing = needs.gradientMask & ~seen)
    return bad("gradients: argument " + num(__builtin_ctzll(missing)) +
               " is missing, whose gradient this kernel writes");
  return {};
}

} // namespace heddle
