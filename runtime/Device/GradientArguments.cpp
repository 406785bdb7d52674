#include "runtime/Device/Arguments.h"

#include <algorithm>

namespace heddle {
namespace {

// The kind of kernel that writes the gradients that are asked for.
std::string kindFor(const CallRequirements &needs, const heddle_attention_args &args) {
  Kind kind = needs.shape.kind;
  for (uint64_t i = 0; i < args.gradient_count; ++i)
    kind.gradientsOf.push_back(args.gradients[i].id);
  std::sort(kind.gradientsOf.begin(), kind.gradientsOf.end());
  return kind.str();
}

} // namespace

Status readGradients(const CallRequirements &needs, const CallRules &rules, CallInputs &inputs) {
  const heddle_attention_args &args = inputs.args;
  HEDDLE_TRY(checkGradientList(args));
  uint64_t seen = 0;
  for (uint64_t i = 0; i < args.gradient_count; ++i) {
    const heddle_gradient &gradient = args.gradients[i];
    if (gradient.id < 0 || gradient.id >= kMaxArguments || (needs.gradientMask >> gradient.id & 1) == 0)
      return Status::unsupported(
          "attention arguments: gradients: argument " + std::to_string(gradient.id) +
          ": this kernel does not write it; " +
          (needs.shape.kind.isBackward() ? "one of kind " + kindFor(needs, args) + " does" : "leave gradients zero"));
    HEDDLE_TRY(checkGradient(gradient, rules, !isEmpty(inputs.tensor(needs.shape.kind.roles().front().role)), seen));
    inputs.gradients[gradient.id] = gradient.ptr;
  }
  if (const uint64_t missing = needs.gradientMask & ~seen)
    return badArguments("gradients: argument " + std::to_string(__builtin_ctzll(missing)) +
                        " is missing, whose gradient this kernel writes");
  return {};
}

} // namespace heddle
