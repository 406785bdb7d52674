// KernelParams of the forward kernel that the source is of. Hopper's kernels have shapes of warpgroup products.
#pragma once

#ifdef HEDDLE_WARPGROUP_SHAPES
#include "Forward/sm90_params.cuh"
#else
#include "Forward/forward_params.cuh"
#endif
