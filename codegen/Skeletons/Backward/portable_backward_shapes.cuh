// Shapes of what a warp of the portable backward kernels multiplies.
#pragma once

namespace heddle {

constexpr int kMmaRows = 16;

template <class Traits> struct PortableBackwardShapes : Traits {
  static constexpr bool kWalksQueries = Traits::kQueryWalk;

  static constexpr int kSlices = Traits::kColumnSlices;
  static constexpr int kRowTiles = Traits::kBlockN * kSlices / (kMmaRows * Traits::kWarps);
  static constexpr int kQueryTiles = Traits::kBlockM / 8, kQuerySteps = Traits::kBlockM / Traits::kMmaStep;
  static constexpr int kStepRowTiles = Traits::kBlockM / kMmaRows; // of the query gradient
  static constexpr int kHeadSteps = (Traits::kHeadDim + Traits::kMmaStep - 1) / Traits::kMmaStep;
  static constexpr int kValueSteps = (Traits::kValueDim + Traits::kMmaStep - 1) / Traits::kMmaStep;
  static constexpr int kScoreRowBytes = Traits::kSmemRowBytesScores;

  using Scores = float[kRowTiles][kQueryTiles][4];
  using ScoreOperand = uint32_t[kRowTiles][kQuerySteps][4];
};

} // namespace heddle
