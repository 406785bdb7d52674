// The two products of the forward kernel that the source is of, and the registers that hold scores, weights and output.
#pragma once

#ifdef HEDDLE_WARPGROUP_SHAPES
#include "Forward/warpgroup_mma.cuh"
#else
#include "Forward/float_mma.cuh"
#endif
