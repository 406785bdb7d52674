// Rows of a warp and the key tiles that come through its ring: scores, what the pattern makes of them, weights and values.
#pragma once

#include "Decode/packed_mask.cuh"
#include "Decode/page_ring.cuh"
#include "Forward/warp_weights.cuh"

namespace heddle {

// One slice of a tile for the 16 rows of this warp. Its values are there behind beforeValues().
template <class K, class Ring, class BeforeValues = AllThere>
DEV void addSlice(RowState<K> &rows, const Ring &ring, const typename KeyProducts<K>::Query &query,
                  const LaneScope<K> &lane, const KeyTile &tile, int32_t slice, float dotScale,
                  const BeforeValues &beforeValues = BeforeValues()) {
  const float scaleLog2 = K::Pattern::kHasScore ? kLog2OfE : dotScale; // from scores to log2 units
  Scores<K> scores;
  RowValues<K> largest, factor;
  Probabilities<K> probabilities;
  KeyProducts<K>::queryKey(scores, query, ring.keysOfSlice(slice) + laneOffsetColumnsFirst(K::kKeyRowBytes));
  if constexpr (K::Pattern::kHasScore)
    applyScores(scores, lane, tile, slice, dotScale);
  if (tile.isMasked)
    maskScores(scores, lane, tile, slice);
  laneMax(largest, scores);
  if (raiseRowMax(rows, largest, scaleLog2, factor))
    scaleOutput(rows, factor);
  addWeights(rows, probabilities, scores, scaleLog2);
  beforeValues();
  KeyProducts<K>::probabilityValue(rows.out, probabilities,
                                   ring.valuesOfSlice(slice) + laneOffsetRowsFirst(K::kSmemRowBytesV));
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
#pragma unroll 1
      for (int32_t slice = 0; slice < K::kWarps; ++slice)
        addSlice(rows, ring, query, lane, tile, slice, dotScale);
  }
}

} // namespace heddle
