// Owns the bounds that keep analysis and emission short and their numbers within range, whatever a file says. They lie
// far beyond what patterns of use need.
#pragma once

#include "dialect/IR/Attn.h"

namespace heddle::attn {

/// sizes, numbers and tensors together; runtime/Core/LaunchExpr.h has the same number
constexpr int64_t kMaxArguments = 64;
constexpr int64_t kMaxNesting = 64;      ///< masks inside masks, and links of a chain of scores
constexpr int64_t kMaxVariants = 256;    ///< choices of operands of attn.heads
constexpr int64_t kMaxWrittenOut = 4096; ///< ops, each as often as it is used, all variants together

/// Diagnoses at the op where a pattern whose ops are verified passes a limit.
llvm::LogicalResult verifyLimits(PatternOp pattern);

} // namespace heddle::attn
