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

// Bits of one row slot (i, half), one for each of the lane's kScoreTiles * 2 columns: 1 = kept.
typedef uint32_t KeptColumns[kRowTiles][2];

// Evaluates the predicate for the two columns of the lane in score tile n. lanePosition: of row (0, 0).
template <int Branch>
DEV void keepColumns(KeptColumns &kept, const MaskScope &scope, const KeyTile &tile, int32_t lanePosition,
                     int firstColumn, int n) {
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    int32_t key = tile.firstKey + Pattern::keyRate(scope.variant, Branch) * (firstColumn + n * 8 + e);
    bool keyExists = key < scope.context.seqlenK;
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        int32_t position = lanePosition + scope.queryRate * (i * 16 + half * 8);
        bool isKept = keyExists & Pattern::keep(scope.context, Branch, position, scope.context.kOrigin + key);
        kept[i][half] |= static_cast<uint32_t>(isKept) << (n * 2 + e);
      }
  }
}

DEV void applyColumns(Scores &scores, const KeptColumns &kept) {
#pragma unroll
  for (int n = 0; n < kScoreTiles; ++n)
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
      for (int slot = 0; slot < 4; ++slot) {
        float &score = scores[i][n][slot];
        score = kept[i][slot / 2] >> (n * 2 + slot % 2) & 1 ? score : -INFINITY;
      }
}

// Unrolled: short predicates fold into a comparison and a selection for each score.
template <int Branch>
DEV void maskUnrolled(Scores &scores, const MaskScope &scope, const KeyTile &tile, int32_t lanePosition,
                      int firstColumn) {
#pragma unroll
  for (int n = 0; n < kScoreTiles; ++n)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      int32_t key = tile.firstKey + Pattern::keyRate(scope.variant, Branch) * (firstColumn + n * 8 + e);
      bool keyExists = key < scope.context.seqlenK;
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          int32_t position = lanePosition + scope.queryRate * (i * 16 + half * 8);
          bool isKept = keyExists & Pattern::keep(scope.context, Branch, position, scope.context.kOrigin + key);
          float &score = scores[i][n][2 * half + e];
          score = isKept ? score : -INFINITY;
        }
    }
}

// A loop keeps long predicates small in code and registers: it only collects one bit for each score.
template <int Branch>
DEV void maskInLoop(Scores &scores, const MaskScope &scope, const KeyTile &tile, int32_t lanePosition,
                    int firstColumn) {
  static_assert(kScoreTiles * 2 <= 32, "the kept columns of one row fit one word");
  KeptColumns kept = {};
#pragma unroll 1
  for (int n = 0; n < kScoreTiles; ++n)
    keepColumns<Branch>(kept, scope, tile, lanePosition, firstColumn, n);
  applyColumns(scores, kept);
}

template <int Branch>
DEV void maskBranch(Scores &scores, const MaskScope &scope, const KeyTile &tile, int chunk) {
  int firstColumn = chunk * kChunkN + ptx::rereadThreadIndex() % 4 * 2;
  int32_t lanePosition = scope.tilePosition + scope.queryRate * laneRowNumber();
  if constexpr (KernelTraits::kCompactMask)
    maskInLoop<Branch>(scores, scope, tile, lanePosition, firstColumn);
  else
    maskUnrolled<Branch>(scores, scope, tile, lanePosition, firstColumn);
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
