// Owns the way from expressions of the analysis over sizes of a call to those of launch plans.
#pragma once

#include "dialect/Geometry/IntExpr.h"
#include "runtime/Core/LaunchExpr.h"

namespace heddle {

/// `expr` has sums, quotients and extremes of lengths, positions of row 0 and run-time sizes: words of arguments.
LaunchExpr launchExprOf(const attn::IntExpr &expr, QOriginRule rule);

} // namespace heddle
