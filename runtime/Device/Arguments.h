// Owns the check of heddle_attention_args against a kernel and their translation into the symbols,
// pointers and numbers that a LaunchPlan refers to. Pure: no driver, and no allocation unless it fails.
#pragma once

#include "runtime/Core/CallChecks.h"
#include "runtime/Core/KernelRecord.h"
#include "runtime/Core/LaunchPlan.h"
#include "runtime/Include/heddle.h"

namespace heddle {

struct CallInputs {
  heddle_attention_args args; // as this version knows them
  LaunchSymbols symbols;      // params points into runtimeSizes
  int64_t runtimeSizes[kMaxArguments];
  const void *operands[kMaxArguments];
  float *gradients[kMaxArguments]; // of arguments of the pattern
  WorkspaceLayout layout;
  float scaleLog2 = 0;

  CallInputs() = default;
  CallInputs(const CallInputs &) = delete;
  CallInputs &operator=(const CallInputs &) = delete;

  const void *address(Role role) const { return addressOf(args, role); }
  const heddle_tensor &tensor(Role role) const { return tensorOf(args, role); }
  // The address of a pointer source; null where the caller gave none.
  const void *pointer(const PointerSource &source) const;
  // The same as the base of a tensor map: an empty tensor, whose address may be anything, is replaced by what the kind
  // writes. Nothing is read through such a map.
  const void *mapBase(const PointerSource &source, const Kind &kind) const;
};

// What a kernel asks of its arguments; computed once at load.
struct CallRequirements {
  int64_t paramCount = 0;
  uint64_t sizeMask = 0;     // bit i: run-time size i is used
  uint64_t operandMask = 0;  // bit i: pointer operand i is used
  uint64_t gradientMask = 0; // bit i: the gradient of argument i is written
  CallShape shape = {};      // that of the record, of the plan's kind
  PlanService serves;

  // Of a valid plan; unsupported: the record is of a kind that is not known.
  static Result<CallRequirements> of(const LaunchPlan &plan, const KernelFamily &family);
};

// The gradients of arguments of the pattern, which are those that the kernel writes; the rest of `inputs` is there.
Status readGradients(const CallRequirements &needs, const CallRules &rules, CallInputs &inputs);

// Fills `inputs`, or names the first offending field. Does not look at the workspace.
Status checkArguments(const CallRequirements &needs, int64_t smCount, const heddle_attention_args &args,
                      CallInputs &inputs);

// What checkArguments does not look at, as questions about sizes have no memory yet: whether addresses lie apart. Of
// tensors of the pattern the first bytes count, their sizes are not told.
Status checkMemory(const CallRequirements &needs, const CallInputs &inputs);

} // namespace heddle
