// Owns where the positions end that a pattern speaks of: those of the call, or, where arguments of the pattern say it,
// those of a whole of which the call is a part (`attn.whole`).
#pragma once

#include "dialect/Geometry/IntExpr.h"

#include "mlir/Support/LLVM.h"

namespace heddle::attn {

class PatternOp;
struct TensorCall;

/// Columns: so many entries has a row of tensors with one for each query and key; those of the keys of a call are among
/// them, that of position 0 is where the row begins, whether it is there or not.
enum class WholeAxis : uint8_t { Queries, Keys, Columns };
inline constexpr WholeAxis kWholeAxes[] = {WholeAxis::Queries, WholeAxis::Keys, WholeAxis::Columns};

/// "attn.whole", and its value for an axis.
inline constexpr llvm::StringLiteral kWhole = "attn.whole";
llvm::StringRef wholeName(WholeAxis axis);

/// i32 arguments, each axis at most once, with q_origin(given).
llvm::LogicalResult verifyWhole(PatternOp pattern);

/// Calls are parts: queries and keys have an argument.
bool areParts(PatternOp pattern);
/// Of parts: the argument that says how many columns tensors have; those without one of their own have all keys.
unsigned columnsArgument(PatternOp pattern);

/// One beyond the last position of the axis.
IntExpr endOf(PatternOp pattern, WholeAxis axis);
/// The same in one call.
int64_t endOf(PatternOp pattern, WholeAxis axis, const TensorCall &call);

} // namespace heddle::attn
