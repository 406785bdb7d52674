// Who is the last of those that leave something in the workspace.
#pragma once

#include "Ptx/memory.cuh"
#include "Shared/quads.cuh"

namespace heddle {

// This warp's arrival, with `own` of them, where `count` arrive. True for the last one, which sees what the others stored and
// leaves the counter at zero. All lanes call.
DEV bool arrivesLast(uint32_t *arrivals, int32_t count, int32_t own = 1) {
  __syncwarp();
  int32_t isLast = 0;
  if (threadIdx.x % 32 == 0) { // what it orders is ordered for the warp
    isLast = static_cast<int32_t>(ptx::addGlobalInOrder(arrivals, own)) + own == count;
    if (isLast)
      ptx::storeCoherent4(arrivals, 0);
  }
  isLast = __shfl_sync(kWholeWarp, isLast, 0);
  __syncwarp();
  return isLast != 0;
}

} // namespace heddle
