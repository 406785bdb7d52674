// Owns which columns of a rank's windows must be zero, as kernels may look at them though no row keeps them.
#pragma once

#include "dialect/Geometry/IndexRange.h"
#include "runtime/Core/GroupPlan.h"

namespace heddle::attn {

struct BlankRules {
  int64_t heads; ///< of columns
  bool areDense; ///< what the rank's rows keep are consecutive columns: only tiles at an end of them hold others
};

/// Of the rank's windows of the step, whose hops are known.
void addBlanks(GroupStep &step, size_t rank, const std::vector<IndexRange> &own, const BlankRules &rules);

} // namespace heddle::attn
