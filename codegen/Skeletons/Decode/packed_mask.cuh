// What the pattern makes of the scores of packed rows, each of which is a query and a head of its own: the chain of score
// ops, and what it does not keep.
#pragma once

#include "Decode/row_contexts.cuh"
#include "Forward/key_tile.cuh"
#include "Decode/decode_kernel.cuh"
#include "Shared/lane_columns.cuh"
#include "Shared/score_units.cuh"

namespace heddle {

static_assert(kRowTiles == 1 && kChunkN == KernelTraits::kBlockN / KernelTraits::kWarps, "a warp scores its own keys");

// Rows of this lane in a group, and its first column in a slice of a tile.
struct LaneScope {
  const PatternContext &context;
  int32_t variant, column;
  PackedRow row[2];
  LaneContexts contexts;

  DEV LaneScope(const KernelParams &p, const PatternContext &context, const Unit &unit, int32_t group)
      : context(context), variant(unit.variant), column(ptx::rereadThreadIndex() % 4 * 2),
        row{PackedRow(unit, group * decode::kRows + rowOfLane(0)),
            PackedRow(unit, group * decode::kRows + rowOfLane(1))},
        contexts(p, unit, row) {}

  DEV int32_t position(int half) const { return contexts.position(context, half, row[half].index); }
  DEV PatternContext contextOf(int half) const {
    PatternContext own = context;
    own.head = row[half].head;
    contexts.give(own, half);
    return own;
  }
};

// From q . k to natural units and through the chain.
DEV void applyScores(Scores<K> &scores, const LaneScope &lane, const KeyTile &tile, int32_t slice, float scaleLog2) {
  const float scale = scaleLog2 * kLogOf2;
  const int32_t rate = Pattern::keyRate(lane.variant, Pattern::kBranchCount == 1 ? 0 : tile.branch);
  const int32_t first = lane.context.kOrigin + tile.firstKey + rate * (slice * kChunkN + lane.column);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const PatternContext context = lane.contextOf(half);
    const int32_t query = lane.position(half);
    int32_t document = 0;
    if constexpr (Pattern::kHasScoreDocument)
      document = Pattern::scoreDocument(context, query);
#pragma unroll
    for (int n = 0; n < kScoreTiles; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float &score = scores[0][n][2 * half + e];
        score = Pattern::score(context, query, first + rate * (n * 8 + e), document, score * scale);
      }
  }
}

// A bit for each of the lane's columns: the key exists and is kept.
template <int Branch, class P = Pattern>
DEV uint32_t keptOf(const LaneScope &lane, const KeyTile &tile, int32_t slice, int half) {
  const int32_t rate = P::keyRate(lane.variant, Branch);
  const int32_t key = tile.firstKey + rate * (slice * kChunkN + lane.column);
  const PatternContext context = lane.contextOf(half);
  const int32_t first = context.kOrigin + key;
  if constexpr (P::kHasKeptColumns[Branch]) {
    return P::template keptColumns<LaneColumns>(context, lane.variant, Branch, lane.position(half), first);
  } else {
    uint32_t kept = 0;
#pragma unroll 1
    for (int n = 0; n < kScoreTiles; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int32_t step = rate * (n * 8 + e);
        const bool isKept =
            (key + step < context.seqlenK) & P::keep(context, Branch, lane.position(half), first + step);
        kept |= static_cast<uint32_t>(isKept) << (n * 2 + e);
      }
    return kept;
  }
}

template <int Branch = 0>
DEV void maskScores(Scores<K> &scores, const LaneScope &lane, const KeyTile &tile, int32_t slice) {
  if constexpr (Branch + 1 < Pattern::kBranchCount) {
    if (tile.branch != Branch)
      return maskScores<Branch + 1>(scores, lane, tile, slice);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint32_t kept = keptOf<Branch>(lane, tile, slice, half);
#pragma unroll
    for (int bit = 0; bit < kScoreTiles * 2; ++bit) {
      float &score = scores[0][bit / 2][half * 2 + bit % 2];
      score = kept & 1u << bit ? score : -INFINITY;
    }
  }
}

} // namespace heddle
