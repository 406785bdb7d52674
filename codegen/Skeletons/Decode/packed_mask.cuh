// What the pattern makes of the scores of packed rows, each of which is a query and a head of its own: the chain of score
// ops, and what it does not keep.
#pragma once

#include "Decode/row_contexts.cuh"
#include "Forward/key_tile.cuh"
#include "Forward/online_softmax.cuh"
#include "Shared/lane_columns.cuh"
#include "Shared/score_units.cuh"

namespace heddle {

// Rows of this lane in a group, and its first column in a slice of a tile.
template <class K> struct LaneScope {
  const Context<K> &context;
  int32_t variant, column;
  PackedRow row[2];
  RowContexts<K> contexts;

  DEV LaneScope(const ParamsOf<K> &p, const Context<K> &context, const Unit<K> &unit, int32_t group)
      : context(context), variant(unit.variant), column(ptx::rereadThreadIndex() % 4 * 2),
        row{PackedRow(unit, group * decode::kRows + rowOfLane(0)),
            PackedRow(unit, group * decode::kRows + rowOfLane(1))},
        contexts(p, unit, row) {}

  DEV int32_t position(int half) const { return contexts.position(context, half, row[half].index); }
  DEV Context<K> contextOf(int half) const {
    Context<K> own = context;
    own.head = row[half].head;
    contexts.give(own, half);
    return own;
  }
};

// From q . k to natural units and through the chain.
template <class K>
DEV void applyScores(Scores<K> &scores, const LaneScope<K> &lane, const KeyTile &tile, int32_t slice, float scaleLog2) {
  const float scale = scaleLog2 * kLogOf2;
  const int32_t rate = K::Pattern::keyRate(lane.variant, K::Pattern::kBranchCount == 1 ? 0 : tile.branch);
  const int32_t first = lane.context.kOrigin + tile.firstKey + rate * (slice * K::kChunkN + lane.column);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Context<K> context = lane.contextOf(half);
    const int32_t query = lane.position(half);
    int32_t document = 0;
    if constexpr (K::Pattern::kHasScoreDocument)
      document = K::Pattern::scoreDocument(context, query);
#pragma unroll
    for (int n = 0; n < K::kScoreTiles; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float &score = scores[0][n][2 * half + e];
        score = K::Pattern::score(context, query, first + rate * (n * 8 + e), document, score * scale);
      }
  }
}

// A bit for each of the lane's columns: the key exists and is kept.
template <int Branch, class K>
DEV uint32_t keptOf(const LaneScope<K> &lane, const KeyTile &tile, int32_t slice, int half) {
  const int32_t rate = K::Pattern::keyRate(lane.variant, Branch);
  const int32_t key = tile.firstKey + rate * (slice * K::kChunkN + lane.column);
  const Context<K> context = lane.contextOf(half);
  const int32_t first = context.kOrigin + key;
  if constexpr (K::Pattern::kHasKeptColumns[Branch]) {
    return K::Pattern::template keptColumns<LaneColumns>(context, lane.variant, Branch, lane.position(half), first);
  } else {
    uint32_t kept = 0;
#pragma unroll 1
    for (int n = 0; n < K::kScoreTiles; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int32_t step = rate * (n * 8 + e);
        const bool isKept =
            (key + step < context.seqlenK) & K::Pattern::keep(context, Branch, lane.position(half), first + step);
        kept |= static_cast<uint32_t>(isKept) << (n * 2 + e);
      }
    return kept;
  }
}

template <int Branch = 0, class K>
DEV void maskScores(Scores<K> &scores, const LaneScope<K> &lane, const KeyTile &tile, int32_t slice) {
  if constexpr (Branch + 1 < K::Pattern::kBranchCount) {
    if (tile.branch != Branch)
      return maskScores<Branch + 1>(scores, lane, tile, slice);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint32_t kept = keptOf<Branch>(lane, tile, slice, half);
#pragma unroll
    for (int bit = 0; bit < K::kScoreTiles * 2; ++bit) {
      float &score = scores[0][bit / 2][half * 2 + bit % 2];
      score = kept & 1u << bit ? score : -INFINITY;
    }
  }
}

} // namespace heddle
