// Applies the pattern's chain of score ops to what q . k is in a tile, before its masks. Scores are then in natural
// units and the softmax, which runs in base 2, multiplies by log2(e) instead of by scale * log2(e). Without a chain
// everything here is empty and scores stay q . k.
#pragma once

#include "Forward/score_mask.cuh"
#include "Shared/score_units.cuh"

namespace heddle {

// The factor from scores to log2 units.
template <class K> DEV float weightScale(float scaleLog2) { return K::Pattern::kHasScore ? kLog2OfE : scaleLog2; }

template <class K>
DEV void applyScores(Scores<K> &scores, const MaskScope<K> &scope, const KeyTile &tile, int chunk, float scaleLog2) {
  const float scale = scaleLog2 * kLogOf2;
  using Pattern = typename K::Pattern;
  const LanePlace lane(scope, chunk);
  const int32_t keyRate = Pattern::keyRate(scope.variant, Pattern::kBranchCount == 1 ? 0 : tile.branch);
  const int32_t firstPosition = scope.context.kOrigin + tile.firstKey + keyRate * lane.column;
  int32_t documents[K::kRowTiles][2] = {};
  if constexpr (Pattern::kHasScoreDocument) {
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        documents[i][half] =
            Pattern::scoreDocument(scope.context, lane.position + scope.queryRate * (i * 16 + half * 8));
  }
#pragma unroll
  for (int n = 0; n < K::kScoreTiles; ++n)
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
      for (int slot = 0; slot < 4; ++slot) {
        const int32_t query = lane.position + scope.queryRate * (i * 16 + slot / 2 * 8);
        const int32_t key = firstPosition + keyRate * K::KeyColumns::keyAt(0, n, slot % 2);
        float &score = scores[i][n][slot];
        score = Pattern::score(scope.context, query, key, documents[i][slot / 2], score * scale);
      }
}

} // namespace heddle
