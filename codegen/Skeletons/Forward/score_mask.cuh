// Removes the pairs of a masked tile that the branch does not keep, and the keys beyond the length. Runs on
// masked tiles only; the branch is a compile-time constant of each instance, so the generated predicate folds.
// Where tiles are kept or dropped whole (kTilesAreWhole), only missing keys are removed; where a band of
// positions cuts them besides, what lies outside of it.
// Where the pattern gives the kept columns of a row as bits, the cost hardly depends on the predicate; otherwise the
// predicate is evaluated for every score.
#pragma once

#include "Forward/key_columns.cuh"
#include "Forward/key_tiles.cuh"
#include "Forward/online_softmax.cuh"
#include "Ptx/scalar.cuh"
#include "Shared/pattern_context.cuh"

namespace heddle {

// What the generated predicate needs, the same for all lanes.
template <class K> struct MaskScope {
  const Context<K> &context;
  int32_t variant;
  int32_t tilePosition; // position of the query tile's first row
  int32_t queryRate;
};

// The first column and the first row of this lane; KeyColumns says where its other columns are.
struct LanePlace {
  int32_t column, position;

  template <class K> DEV LanePlace(const MaskScope<K> &scope, int chunk) {
    const uint32_t thread = ptx::rereadThreadIndex();
    column = chunk * K::kChunkN + thread % 4 * K::KeyColumns::kLaneKeys;
    position = scope.tilePosition +
               scope.queryRate * static_cast<int32_t>(thread / 32 * (K::kRowTiles * 16) + thread % 32 / 4);
  }
};

// Bits of one row slot (i, half), one for each of the lane's kScoreTiles * 2 columns: 1 = kept.
template <class K> using KeepMask = uint32_t[K::kRowTiles][2];

// What a tile keeps of its square, or of everything. Only patterns with a band have that function.
template <class K> constexpr bool kOnlyBandCuts = K::kTilesAreWhole == 2;

template <int Branch, class K>
DEV void findKeepMask(KeepMask<K> &kept, const MaskScope<K> &scope, const KeyTile &tile, const LanePlace &lane) {
  using Pattern = typename K::Pattern;
  static_assert(K::kScoreTiles * 2 <= 32, "the kept columns of one row fit one word");
  const int32_t first = scope.context.kOrigin + tile.firstKey + Pattern::keyRate(scope.variant, Branch) * lane.column;
#pragma unroll
  for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int32_t position = lane.position + scope.queryRate * (i * 16 + half * 8);
      if constexpr (kOnlyBandCuts<K>)
        kept[i][half] = Pattern::template bandColumns<typename K::KeyColumns::Bits>(scope.context, scope.variant,
                                                                                    Branch, position, first);
      else
        kept[i][half] = Pattern::template keptColumns<typename K::KeyColumns::Bits>(scope.context, scope.variant,
                                                                                    Branch, position, first);
    }
}

// Row by row and bit by bit: ptxas then moves seven bits at a time into predicates.
template <class Columns, int Rows, int Tiles>
DEV void applyKeepMask(float (&scores)[Rows][Tiles][4], const uint32_t (&kept)[Rows][2]) {
#pragma unroll
  for (int i = 0; i < Rows; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int bit = 0; bit < Tiles * 2; ++bit) {
        float &score = scores[i][Columns::tileOfBit(bit)][half * 2 + Columns::elementOfBit(bit)];
        score = kept[i][half] & 1u << bit ? score : -INFINITY;
      }
}

// Evaluates the predicate for the two columns of the lane in score tile n, and tells take(i, half, e, isKept).
template <int Branch, class K, class Take>
DEV void evaluatePredicate(const MaskScope<K> &scope, const KeyTile &tile, const LanePlace &lane, int n,
                           const Take &take) {
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    int32_t key = tile.firstKey + K::Pattern::keyRate(scope.variant, Branch) * K::KeyColumns::keyAt(lane.column, n, e);
    bool keyExists = key < scope.context.seqlenK;
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        int32_t position = lane.position + scope.queryRate * (i * 16 + half * 8);
        take(i, half, e, keyExists & K::Pattern::keep(scope.context, Branch, position, scope.context.kOrigin + key));
      }
  }
}

// Unrolled: short predicates fold into a comparison and a selection for each score.
template <int Branch, class K>
DEV void maskUnrolled(Scores<K> &scores, const MaskScope<K> &scope, const KeyTile &tile, const LanePlace &lane) {
#pragma unroll
  for (int n = 0; n < K::kScoreTiles; ++n)
    evaluatePredicate<Branch>(scope, tile, lane, n, [&](int i, int half, int e, bool isKept) {
      float &score = scores[i][n][2 * half + e];
      score = isKept ? score : -INFINITY;
    });
}

// A loop keeps long predicates small in code and registers: it only collects one bit for each score.
template <int Branch, class K>
DEV void findKeepMaskInLoop(KeepMask<K> &kept, const MaskScope<K> &scope, const KeyTile &tile, const LanePlace &lane) {
#pragma unroll
  for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      kept[i][half] = 0;
#pragma unroll 1
  for (int n = 0; n < K::kScoreTiles; ++n)
    evaluatePredicate<Branch>(scope, tile, lane, n, [&](int i, int half, int e, bool isKept) {
      kept[i][half] |= static_cast<uint32_t>(isKept) << K::KeyColumns::bitOf(n, e);
    });
}

// All pairs of the tile are kept whose key exists.
template <int Branch, class K>
DEV void maskMissingKeys(Scores<K> &scores, const MaskScope<K> &scope, const KeyTile &tile, const LanePlace &lane) {
  const int32_t rate = K::Pattern::keyRate(scope.variant, Branch), behind = scope.context.seqlenK - tile.firstKey;
#pragma unroll
  for (int n = 0; n < K::kScoreTiles; ++n)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const bool keyExists = rate * K::KeyColumns::keyAt(lane.column, n, e) < behind;
#pragma unroll
      for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float &score = scores[i][n][2 * half + e];
          score = keyExists ? score : -INFINITY;
        }
    }
}

// Whether what a branch keeps of a tile is found as words, and whether in a loop.
template <int Branch, class K> constexpr bool kIsWord = kOnlyBandCuts<K> || K::Pattern::kHasKeptColumns[Branch];
template <int Branch, class K>
constexpr bool kHasWords = K::kTilesAreWhole != 1 && (kIsWord<Branch, K> || K::kCompactMask);
template <int Branch, class K> constexpr bool allHaveWords() {
  if constexpr (Branch < K::Pattern::kBranchCount)
    return kHasWords<Branch, K> && allHaveWords<Branch + 1, K>();
  return true;
}

template <int Branch, class K>
DEV void findWords(KeepMask<K> &kept, const MaskScope<K> &scope, const KeyTile &tile, const LanePlace &lane) {
  if constexpr (kIsWord<Branch, K>)
    findKeepMask<Branch>(kept, scope, tile, lane);
  else
    findKeepMaskInLoop<Branch>(kept, scope, tile, lane);
}

template <int Value> struct BranchNumber {
  static constexpr int value = Value;
};

// Tells take the branch of the tile, as a constant.
template <int Branch, class K, class Take> DEV void withBranch(const KeyTile &tile, const Take &take) {
  if constexpr (Branch + 1 < K::Pattern::kBranchCount) {
    if (tile.branch != Branch)
      return withBranch<Branch + 1, K>(tile, take);
  }
  take(BranchNumber<Branch>{});
}

template <int Branch, class K>
DEV void maskBranch(Scores<K> &scores, const MaskScope<K> &scope, const KeyTile &tile, const LanePlace &lane) {
  if constexpr (K::kTilesAreWhole == 1) {
    maskMissingKeys<Branch>(scores, scope, tile, lane);
  } else if constexpr (!kHasWords<Branch, K>) {
    maskUnrolled<Branch>(scores, scope, tile, lane);
  } else {
    KeepMask<K> kept;
    findWords<Branch>(kept, scope, tile, lane);
    applyKeepMask<typename K::KeyColumns>(scores, kept);
  }
}

// Branches that all have words share what these do to scores.
template <class K> DEV void maskScores(Scores<K> &scores, const MaskScope<K> &scope, const KeyTile &tile, int chunk) {
  const LanePlace lane(scope, chunk);
  if constexpr (allHaveWords<0, K>()) {
    KeepMask<K> kept;
    withBranch<0, K>(tile, [&](auto branch) { findWords<branch.value>(kept, scope, tile, lane); });
    applyKeepMask<typename K::KeyColumns>(scores, kept);
  } else {
    withBranch<0, K>(tile, [&](auto branch) { maskBranch<branch.value>(scores, scope, tile, lane); });
  }
}

} // namespace heddle
