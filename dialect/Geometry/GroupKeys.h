// Owns which keys meet the queries that came to a rank, where gradients of its keys need all that these queries keep.
#pragma once

#include "dialect/Geometry/GroupBlocks.h"

namespace heddle::attn {

/// GroupPlan::keys, of the blocks of the transposed walk.
GroupWalk keysOf(const GroupPlanRequest &request, const GroupBlocks &blocks);

} // namespace heddle::attn
