// Owns how a set of columns on lattices that may overlap becomes what travels: runs at a stride without a common column.
#pragma once

#include "dialect/Geometry/LatticeColumns.h"
#include "runtime/Core/GroupPlan.h"

namespace heddle::attn {

/// Ascending by their first columns. Where classes meet that have no common multiple up to 4096, everything between their
/// ends is taken.
std::vector<RowRun> travelRuns(const std::vector<LatticeColumns> &columns);

} // namespace heddle::attn
