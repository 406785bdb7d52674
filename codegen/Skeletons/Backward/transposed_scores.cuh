// The chain of scores and the masks of a tile whose rows are keys and whose columns are queries. Branches are
// compile-time constants of each instance, so the generated predicate folds.
#pragma once

#include "Shared/lane_columns.cuh"

namespace heddle {

// Of a lane: its keys are firstKey and firstKey + 8 * keyRate, its queries 8 n and 8 n + 1 from firstQuery.
struct TilePlace {
  PatternContext context;
  int32_t variant, branch, queryRate, keyRate;
  int32_t firstKey, lastKey; // rows of k; lastKey is the item's
  int32_t firstQuery;        // position
  DEV TilePlace(const KernelParams &p, const KeyItem &item, const QueryTileHeader &tile, int32_t firstKey)
      : context(makeContext(p, item.batch, tile.head)), variant(Pattern::variant(context)),
        branch(Pattern::kBranchCount == 1 ? 0 : tile.branch()),
        queryRate(TransposedPattern::queryRate(variant, branch)), keyRate(item.keyRate), firstKey(firstKey),
        lastKey(item.lastKey) {
    firstQuery = p.qOrigin + tile.firstRow + queryRate * static_cast<int32_t>(threadIdx.x % 4 * 2);
  }
  DEV int32_t key(int half) const { return firstKey + keyRate * half * 8; }
  DEV int32_t keyPosition(int half) const { return context.kOrigin + key(half); }
  DEV int32_t queryPosition(int n, int e) const { return firstQuery + queryRate * (n * 8 + e); }
  DEV bool queryExists(int n, int e) const { return queryPosition(n, e) - context.qOrigin < context.seqlenQ; }
};

template <int Tiles> DEV void applyScores(float (&scores)[Tiles][4], const TilePlace &place, float scale) {
#pragma unroll
  for (int n = 0; n < Tiles; ++n)
#pragma unroll
    for (int slot = 0; slot < 4; ++slot)
      scores[n][slot] = Pattern::score(place.context, place.queryPosition(n, slot % 2), place.keyPosition(slot / 2),
                                       scores[n][slot] * scale);
}

template <int Branch, class P = TransposedPattern, int Tiles>
DEV void maskRow(float (&scores)[Tiles][4], const TilePlace &place, int half) {
  const bool exists = place.key(half) <= place.lastKey;
  if constexpr (P::kHasKeptColumns[Branch]) {
    const uint32_t word = P::template keptColumns<LaneColumns>(place.context, place.variant, Branch,
                                                               place.keyPosition(half), place.firstQuery);
    const uint32_t kept = exists ? word : 0;
#pragma unroll
    for (int bit = 0; bit < Tiles * 2; ++bit) {
      float &score = scores[bit / 2][half * 2 + bit % 2];
      score = kept & 1u << bit ? score : -INFINITY;
    }
  } else {
#pragma unroll
    for (int bit = 0; bit < Tiles * 2; ++bit) {
      float &score = scores[bit / 2][half * 2 + bit % 2];
      const bool isKept =
          exists & place.queryExists(bit / 2, bit % 2) &
          Pattern::keep(place.context, Branch, place.queryPosition(bit / 2, bit % 2), place.keyPosition(half));
      score = isKept ? score : -INFINITY;
    }
  }
}

// Pairs that the branch does not keep, and keys and queries that do not exist.
template <int Branch = 0, int Tiles> DEV void maskScores(float (&scores)[Tiles][4], const TilePlace &place) {
  if constexpr (Branch + 1 < Pattern::kBranchCount) {
    if (place.branch != Branch)
      return maskScores<Branch + 1>(scores, place);
  }
  maskRow<Branch>(scores, place, 0);
  maskRow<Branch>(scores, place, 1);
}

} // namespace heddle
