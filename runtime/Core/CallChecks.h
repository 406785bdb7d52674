// Owns the checks of the arguments of a call by the table of roles: dtypes, sizes, strides, addresses, positions, scale,
// and what is given for arguments of a pattern. Launches and calls on the processors ask them in the same order, so that
// one refusal has the same words wherever the call comes in; Python's and the command line's calls end in one of the
// two. Which memory may not meet which is CallMemory.h, what sizes and lengths must be ArgumentBounds.h. Nothing here
// allocates unless it fails.
#pragma once

#include "runtime/Core/CallArguments.h"
#include "runtime/Core/CallShape.h"
#include "runtime/Core/LaunchPlan.h"

namespace heddle {

// Where a call runs and what it computes with.
struct CallRules {
  explicit CallRules(const Kind &kind) : kind(&kind), roles(&kind.roles()) {}

  const Kind *kind;                   // outlives the rules
  const std::vector<KindRole> *roles; // of the kind
  CallElements elements = {};
  const char *memory = "device memory"; // "host memory"
  int64_t alignment = 16;               // bytes, of tensors and the strides that are stepped along; 1: any
  bool needsAllResults = true;          // else arrays that are written may be null

  bool isOnDevice() const { return alignment > 1; }
};

// Of a role, in the order of memory, without those that are one.
std::vector<RoleExtent> extentsOf(const RoleSpec &role);
// That an array of the role has in a call of these sizes.
int64_t elementsOf(const RoleSpec &role, const LaunchSymbols &symbols);

// The sizes of a call, each from the first tensor of its kind that has it.
class CallSizes {
public:
  explicit CallSizes(LaunchSymbols &symbols) : symbols(symbols) {}
  void set(LaunchSymbol symbol, int64_t value);
  // Of `size`, that of a tensor of the role, what is known already; else it is known from now on.
  Status check(const RoleSpec &role, const int64_t (&size)[4]);

private:
  LaunchSymbols &symbols;
  bool isKnown[kLaunchSymbolCount] = {};
};

// `dtype`: a heddle_dtype, of the role's tensor in a call of these types.
Status checkDtype(const RoleSpec &role, int32_t dtype, const CallRules &rules);
// heads is a multiple of kv_heads, and neither is 0 where the other is not and something must be written.
Status checkHeads(const Kind &kind, const LaunchSymbols &symbols);
// Tensors and arrays of the kind. Sizes go to `sizes`, and their symbols, strides of tensors included.
Status checkRoles(const CallRules &rules, const heddle_attention_args &args, CallSizes &sizes, LaunchSymbols &symbols);

Status checkScale(float scale);
// Of an array in host memory, of that role, each number: scales are finite and above 0, signs are 1 or -1. Others are not
// looked at. What lies on a GPU is the caller's word.
Status checkNumbers(const KindRole &known, const void *numbers, int64_t count);

// q_origin and k_origin, as what computes the call takes them.
struct OriginRules {
  QOriginRule qOrigin = QOriginRule::given;
  int64_t keyOriginStep = 1; // PlanService
};
Status checkOrigins(const OriginRules &rules, const heddle_attention_args &args, const LaunchSymbols &symbols);

// Of the arguments of a pattern; bit i: number i.
struct OperandNumbers {
  uint64_t sizes = 0, pointers = 0;             // that there are
  uint64_t neededSizes = 0, neededPointers = 0; // that must be given
};
struct GivenOperands {
  uint64_t sizes = 0, pointers = 0;
};
// Each is known and given once, and nothing is missing. Values are not looked at, but that pointers are not null where
// `hasWork`.
Status checkOperands(const OperandNumbers &known, const heddle_attention_args &args, const CallRules &rules,
                     bool hasWork, GivenOperands &given);

// gradients and gradient_count; then each, whose number the caller has found to be one, and which `seen` has not.
Status checkGradientList(const heddle_attention_args &args);
Status checkGradient(const heddle_gradient &gradient, const CallRules &rules, bool hasWork, uint64_t &seen);

} // namespace heddle
