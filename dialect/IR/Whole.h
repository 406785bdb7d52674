// Owns where the positions end that a pattern speaks of: those of the call, or, where arguments of the pattern say it,
// those of a whole of which the call is a part (`attn.whole`).
#pragma once

#include "dialect/Geometry/IntExpr.h"

#include "mlir/Support/LLVM.h"

namespace heddle::attn {

class PatternOp;
struct TensorCall;

enum class WholeAxis : uint8_t { Queries, Keys };

/// "attn.whole", and its value for an axis.
inline constexpr llvm::StringLiteral kWhole = "attn.whole";
llvm::StringRef wholeName(WholeAxis axis);

/// i32 arguments, each axis at most once, with q_origin(given).
llvm::LogicalResult verifyWhole(PatternOp pattern);

/// Calls are parts: both axes have an argument.
bool areParts(PatternOp pattern);

/// One beyond the last position of the axis.
IntExpr endOf(PatternOp pattern, WholeAxis axis);
/// The same in one call.
int64_t endOf(PatternOp pattern, WholeAxis axis, const TensorCall &call);

} // namespace heddle::attn
