// Removes the pairs of a masked tile that the branch does not keep, and the keys beyond the length. Runs on
// masked tiles only; the branch is a compile-time constant of each instance, so the generated predicate folds.
#pragma once

namespace heddle {

// What the generated predicate needs, the same for all lanes.
struct MaskScope {
  const PatternContext &context;
  int32_t variant;
  int32_t tilePosition; // position of the query tile's first row
  int32_t queryRate;
};

template <int Branch>
DEV void maskBranch(Scores &scores, const MaskScope &scope, const KeyTile &tile, int chunk) {
  int32_t rate = Pattern::keyRate(scope.variant, Branch);
  int32_t lanePosition = scope.tilePosition + scope.queryRate * laneRowNumber();
  int32_t firstColumn = chunk * kChunkN + threadIdx.x % 4 * 2;
#pragma unroll
  for (int n = 0; n < kScoreTiles; ++n)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      int32_t key = tile.firstKey + rate * (firstColumn + n * 8 + e);
      bool keyExists = key < scope.context.seqlenK;
      int32_t keyPosition = scope.context.kOrigin + key;
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          int32_t position = lanePosition + scope.queryRate * (i * 16 + half * 8);
          bool isKept = keyExists & Pattern::keep(scope.context, Branch, position, keyPosition);
          float &score = scores[i][n][2 * half + e];
          score = isKept ? score : -INFINITY;
        }
    }
}

template <int Branch = 0>
DEV void maskScores(Scores &scores, const MaskScope &scope, const KeyTile &tile, int chunk) {
  if constexpr (Branch + 1 < Pattern::kBranchCount) {
    if (tile.branch != Branch)
      return maskScores<Branch + 1>(scores, scope, tile, chunk);
  }
  maskBranch<Branch>(scores, scope, tile, chunk);
}

} // namespace heddle
