//===- Sm90BackwardPlan.h - the launches of the Hopper backward skeleton -----------------------===//
//
// Statistics of all rows; of gradient(detached) the deltas of the branches; the walk over key tiles; and d_q from its
// sums or by a walk over query tiles. Change it together with sm90_backward_params.cuh and backward_rows.cuh.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "codegen/Skeletons/Backward/Sm90BackwardConfig.h"
#include "runtime/Core/LaunchPlan.h"

namespace heddle {

LaunchPlan sm90BackwardPlan(const KernelRequest &request, const Sm90BackwardConfig &config);

} // namespace heddle
