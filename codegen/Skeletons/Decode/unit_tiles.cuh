// Rows of a warp and the key tiles that come through its ring: scores, what the pattern makes of them, weights and values.
#pragma once

#include "Decode/packed_mask.cuh"
#include "Decode/page_ring.cuh"
#include "Forward/warp_weights.cuh"

namespace heddle {

// From the scores of a slice to what the pattern makes of them. `keys`: the slice.
template <class K>
DEV void scoreSlice(Scores<K> &scores, uint32_t keys, const typename KeyProducts<K>::Query &query,
                    const LaneScope<K> &lane, const KeyTile &tile, int32_t slice, float dotScale) {
  KeyProducts<K>::queryKey(scores, query, keys + laneOffsetColumnsFirst(K::kKeyRowBytes));
  if constexpr (K::Pattern::kHasScore)
    applyScores(scores, lane, tile, slice, dotScale);
  if (tile.isMasked)
    maskScores(scores, lane, tile, slice);
}

// Its values are there behind beforeValues(). `scaleLog2`: from scores to log2 units.
template <class K, class BeforeValues = AllThere>
DEV void addScoredSlice(RowState<K> &rows, const Scores<K> &scores, uint32_t values, float scaleLog2,
                        const BeforeValues &beforeValues = BeforeValues()) {
  RowValues<K> largest, factor;
  Probabilities<K> probabilities;
  laneMax(largest, scores);
  if (raiseRowMax(rows, largest, scaleLog2, factor))
    scaleOutput(rows, factor);
  addWeights(rows, probabilities, scores, scaleLog2);
  beforeValues();
  KeyProducts<K>::probabilityValue(rows.out, probabilities, values + laneOffsetRowsFirst(K::kSmemRowBytesV));
}

// One slice of a tile for the 16 rows of this warp.
template <class K, class Ring, class BeforeValues = AllThere>
DEV void addSlice(RowState<K> &rows, const Ring &ring, const typename KeyProducts<K>::Query &query,
                  const LaneScope<K> &lane, const KeyTile &tile, int32_t slice, float dotScale,
                  const BeforeValues &beforeValues = BeforeValues()) {
  Scores<K> scores;
  scoreSlice(scores, ring.keysOfSlice(slice), query, lane, tile, slice, dotScale);
  addScoredSlice(rows, scores, ring.valuesOfSlice(slice), K::Pattern::kHasScore ? kLog2OfE : dotScale, beforeValues);
}

// All slices of a tile: add(scores, values) one of them. Scores of the next one are made while one is added, where there are
// registers for them.
template <class K, class Add>
DEV void addAllSlices(const PageRing<K> &ring, const typename KeyProducts<K>::Query &query, const LaneScope<K> &lane,
                      const KeyTile &tile, float dotScale, const Add &add) {
  constexpr int kAtOnce = K::kChunkN > 16 || !hasOneLattice<K>() ? 1 : 2;
#pragma unroll 1
  for (int32_t first = 0; first < K::kWarps; first += kAtOnce) {
    Scores<K> scores[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      scoreSlice(scores[i], ring.keysOfSlice(first + i), query, lane, tile, first + i, dotScale);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      add(scores[i], ring.valuesOfSlice(first + i));
  }
}

// The keys of a part: of each tile this warp's slice, or all of them where it has rows of its own.
template <class K>
DEV void walkTiles(RowState<K> &rows, PageRing<K> &ring, const typename KeyProducts<K>::Query &query,
                   const LaneScope<K> &lane, float dotScale) {
  const int32_t warp = ptx::rereadThreadIndex() / 32;
#pragma unroll 1
  for (;;) {
    const KeyTile tile = ring.template advance<false>();
    if (!tile.exists())
      return;
    addSlice(rows, ring, query, lane, tile, warp, dotScale);
  }
}

template <class K>
DEV void walkTallTiles(RowState<K> &rows, PageRing<K> &ring, const typename KeyProducts<K>::Query &query,
                       const LaneScope<K> &lane, float dotScale, bool hasRows) {
#pragma unroll 1
  for (;;) {
    const KeyTile tile = ring.template advance<true>();
    if (!tile.exists())
      return;
    if (hasRows)
      addAllSlices(ring, query, lane, tile, dotScale, [&](const Scores<K> &scores, uint32_t values) {
        addScoredSlice(rows, scores, values, K::Pattern::kHasScore ? kLog2OfE : dotScale);
      });
  }
}

} // namespace heddle
