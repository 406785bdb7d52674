// KernelParams of the backward kernel that the source is of: macros for names of instructions come with Hopper's. And
// rows and columns of its tiles.
#pragma once

#ifdef HEDDLE_SCORE_COLUMNS
#include "Backward/sm90_backward_params.cuh"
#else
#include "Backward/portable_backward_params.cuh"
#endif

namespace heddle {

constexpr int kBlockM = KernelTraits::kBlockM, kBlockN = KernelTraits::kBlockN;

} // namespace heddle
