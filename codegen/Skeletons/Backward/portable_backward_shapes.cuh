// Shapes of what a warp of the portable backward kernels multiplies.
#pragma once

#include "Backward/params.cuh"
#include "Shared/elements.cuh"

namespace heddle {

constexpr int kWarps = KernelTraits::kWarps, kStages = KernelTraits::kStages;
constexpr int kSlices = KernelTraits::kColumnSlices;
constexpr int kMmaRows = 16, kRowTiles = kBlockN * kSlices / (kMmaRows * kWarps);
constexpr int kQueryTiles = kBlockM / 8, kQuerySteps = kBlockM / kMmaStep;
constexpr int kStepRowTiles = kBlockM / kMmaRows; // of the query gradient
constexpr int kHeadSteps = (KernelTraits::kHeadDim + kMmaStep - 1) / kMmaStep;
constexpr int kValueSteps = (KernelTraits::kValueDim + kMmaStep - 1) / kMmaStep;
constexpr int kScoreRowBytes = KernelTraits::kSmemRowBytesScores;
constexpr bool kWalksQueries = KernelTraits::kQueryWalk;

} // namespace heddle
