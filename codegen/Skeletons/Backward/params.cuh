// KernelParams of the backward kernel that the source is of, and rows and columns of its tiles. Hopper's kernels have
// shapes of warpgroup products.
#pragma once

#ifdef HEDDLE_WARPGROUP_SHAPES
#include "Backward/sm90_backward_params.cuh"
#else
#include "Backward/portable_backward_params.cuh"
#endif

namespace heddle {

constexpr int kBlockM = KernelTraits::kBlockM, kBlockN = KernelTraits::kBlockN;

} // namespace heddle
