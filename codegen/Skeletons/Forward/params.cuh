// KernelParams of the forward kernel that the source is of: macros for names of instructions come with Hopper's.
#pragma once

#ifdef HEDDLE_SCORE_COLUMNS
#include "Forward/sm90_params.cuh"
#else
#include "Forward/forward_params.cuh"
#endif
