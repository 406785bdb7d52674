// Slices of key tiles in the order of the keys, for rows whose bits must not depend on who shares a unit with them. A row's
// maximum moves by its own scores alone, slice by slice; weights of a slice are summed before they are added to the row's. Two
// ways to the same bits: a warp takes all slices for 16 rows of its own (addScoredInOrder), or each warp scores a slice for
// 16 rows that all warps have, and all warps sum all slices, each for columns of its own (addTileOfAll).
#pragma once

#include "Decode/packed_mask.cuh"
#include "Decode/page_ring.cuh"
#include "Decode/row_states.cuh"
#include "Decode/unit_tiles.cuh"
#include "Forward/warp_weights.cuh"

namespace heddle {

// Rounded by itself, whatever it is added to.
DEV float product(float a, float b) { return fmaf(a, b, 0.f); }

template <class K> constexpr float kMaxLag = K::kRescaleThreshold + K::kWeightExponent;

// The row maximum behind a slice whose largest score is `largest`, over all lanes of the row.
template <class K> DEV float raisedMax(float rowMax, float largest, float scaleLog2) {
  const bool exceeds = fmaf(largest, scaleLog2, -kMaxLag<K>) > rowMax;
  return exceeds ? fmaf(largest, scaleLog2, -static_cast<float>(K::kWeightExponent)) : rowMax;
}

// `sum`: of this lane's weights.
template <class K>
DEV void sliceWeights(Probabilities<K> &probabilities, float (&sum)[2], const Scores<K> &scores,
                      const float (&rowMax)[2], float scaleLog2) {
#pragma unroll
  for (int half = 0; half < 2; ++half)
    sum[half] = 0.f;
#pragma unroll
  for (int n = 0; n < K::kScoreTiles; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float low = ptx::exp2Approx(fmaf(scores[0][n][2 * half], scaleLog2, -rowMax[half]));
      const float high = ptx::exp2Approx(fmaf(scores[0][n][2 * half + 1], scaleLog2, -rowMax[half]));
      sum[half] += low;
      sum[half] += high;
      WarpProducts<K>::setWeights(probabilities[0], n, half, low, high);
    }
}

// Of a slice of the warp's rows; slices follow each other.
template <class K>
DEV void addScoredInOrder(RowState<K> &rows, const Scores<K> &scores, uint32_t values, float scaleLog2) {
  RowValues<K> largest, factor;
  Probabilities<K> probabilities;
  float sum[2];
  laneMax(largest, scores);
  if (__any_sync(kWholeWarp, exceedsRowMax(rows, largest, scaleLog2))) {
    bool moves = false; // a sum of weights has to be scaled
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float raised = raisedMax<K>(rows.rowMax[0][half], quadMax(largest[0][half]), scaleLog2);
      moves |= raised != rows.rowMax[0][half] && rows.rowMax[0][half] != kNoRowMax;
      factor[0][half] = ptx::exp2Approx(rows.rowMax[0][half] - raised);
      rows.rowMax[0][half] = raised;
      rows.sum[0][half] = product(rows.sum[0][half], factor[0][half]);
    }
    if (!hasOneLattice<K>() || __any_sync(kWholeWarp, moves))
      scaleOutput(rows, factor);
  }
  sliceWeights<K>(probabilities, sum, scores, rows.rowMax[0], scaleLog2);
#pragma unroll
  for (int half = 0; half < 2; ++half)
    rows.sum[0][half] += sum[half];
  KeyProducts<K>::probabilityValue(rows.out, probabilities, values + laneOffsetRowsFirst(K::kSmemRowBytesV));
}

// Where a part ends, the first lane of a row has its sum.
DEV float sumInFirstLane(float lanePart) {
  const float sum = quadSum(lanePart);
  return ptx::rereadThreadIndex() % 4 == 0 ? sum : 0.f;
}

// 16 rows that all warps have: the warp's columns of them, and of each row what all know.
template <class K> struct SharedRows {
  float out[K::kPairsOfWarp][2][4]; // as products leave them
  float rowMax[2], sum[2];

  DEV void clear() {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      rowMax[half] = kNoRowMax, sum[half] = 0.f;
#pragma unroll
    for (int i = 0; i < K::kPairsOfWarp; ++i)
#pragma unroll
      for (int e = 0; e < 8; ++e)
        out[i][e / 4][e % 4] = 0.f;
  }
  // Rows 8 half and on.
  DEV void give(ColumnShare<K> &share, int half) const {
    share.rowMax = rowMax[half], share.sum = sumInFirstLane(sum[half]);
#pragma unroll
    for (int i = 0; i < K::kPairsOfWarp; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        share.out[i][e] = out[i][e / 2][2 * half + e % 2];
  }
};

// What warps tell each other of their slices of a tile: the
// largest score of each row, then weights and their sums. A barrier lies between what is stored and what is loaded of it.
template <class K> class SliceWords {
  static constexpr int kWeightBytes = K::kChunkSteps * 16 * 32, kSliceBytes = kWeightBytes + 8 * 32;
  static constexpr int kLargestBytes = decode::kRows * K::kWarps * 4;
  const uint32_t largest, slices;

public:
  static constexpr int kBytes = kLargestBytes + K::kWarps * kSliceBytes;

  DEV explicit SliceWords(uint32_t address) : largest(address), slices(address + kLargestBytes) {}

  DEV void storeLargest(int32_t slice, const float (&ofRow)[2]) const {
    if (ptx::rereadThreadIndex() % 4 == 0)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        ptx::storeShared4(placeOfLargest(slice, half), __float_as_int(ofRow[half]));
  }
  DEV void loadLargest(float (&ofSlice)[K::kWarps], int half) const {
#pragma unroll
    for (int first = 0; first < K::kWarps; first += 4) {
      int32_t words[4];
      ptx::loadShared16(placeOfLargest(first, half), words);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        ofSlice[first + i] = __int_as_float(words[i]);
    }
  }
  DEV float largestOf(int32_t slice, int half) const {
    return __int_as_float(ptx::loadShared4(placeOfLargest(slice, half)));
  }

  DEV void storeWeights(int32_t slice, const Probabilities<K> &weights, const float (&sum)[2]) const {
    const uint32_t to = slices + slice * kSliceBytes;
#pragma unroll
    for (int step = 0; step < K::kChunkSteps; ++step)
      ptx::storeShared16(to + step * (16 * 32) + lanePlace(16), weights[0][step][0], weights[0][step][1],
                         weights[0][step][2], weights[0][step][3]);
    ptx::storeShared8(to + kWeightBytes + lanePlace(8), __float_as_int(sum[0]), __float_as_int(sum[1]));
  }
  DEV void loadWeights(int32_t slice, Probabilities<K> &weights, float (&sum)[2]) const {
    const uint32_t from = slices + slice * kSliceBytes;
    int32_t words[4], sums[2];
#pragma unroll
    for (int step = 0; step < K::kChunkSteps; ++step) {
      ptx::loadShared16(from + step * (16 * 32) + lanePlace(16), words);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        weights[0][step][i] = words[i];
    }
    ptx::loadShared8(from + kWeightBytes + lanePlace(8), sums);
    sum[0] = __int_as_float(sums[0]), sum[1] = __int_as_float(sums[1]);
  }

private:
  DEV uint32_t placeOfLargest(int32_t slice, int half) const {
    const int32_t row = ptx::rereadLane() / 4 + 8 * half;
    return largest + (row * K::kWarps + slice) * 4;
  }
};

// A tile that exists, for rows that all warps have. Values of the warp's slice are there behind beforeValues(). All threads of
// the block call together.
template <class K, class Ring, class BeforeValues = AllThere>
DEV void addTileOfAll(SharedRows<K> &rows, const Ring &ring, const typename KeyProducts<K>::Query &query,
                      const LaneScope<K> &lane, const KeyTile &tile, const SliceWords<K> &words, float dotScale,
                      const BeforeValues &beforeValues = BeforeValues()) {
  const float scaleLog2 = K::Pattern::kHasScore ? kLog2OfE : dotScale;
  const int32_t warp = ptx::rereadThreadIndex() / 32;
  Scores<K> scores;
  RowValues<K> largest;
  Probabilities<K> probabilities;
  float sum[2], last[2], own[2];
  scoreSlice(scores, ring.keysOfSlice(warp), query, lane, tile, warp, dotScale);
  laneMax(largest, scores);
#pragma unroll
  for (int half = 0; half < 2; ++half)
    largest[0][half] = quadMax(largest[0][half]);
  words.storeLargest(warp, largest[0]);
  __syncthreads();
  bool moves = false; // a sum of weights has to be scaled
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float ofSlice[K::kWarps], rowMax = rows.rowMax[half];
    words.loadLargest(ofSlice, half);
#pragma unroll
    for (int slice = 0; slice < K::kWarps; ++slice) {
      last[half] = raisedMax<K>(rowMax, ofSlice[slice], scaleLog2);
      moves |= last[half] != rowMax && rowMax != kNoRowMax;
      rowMax = last[half];
      own[half] = slice == 0 || slice == warp ? rowMax : own[half];
    }
  }
  moves = __any_sync(kWholeWarp, moves);
  sliceWeights<K>(probabilities, sum, scores, own, scaleLog2);
  words.storeWeights(warp, probabilities, sum);
  beforeValues();
  __syncthreads();
#pragma unroll
  for (int slice = 0; slice < K::kWarps; ++slice) {
    words.loadWeights(slice, probabilities, sum);
    if (moves) {
      float factor[2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float raised = raisedMax<K>(rows.rowMax[half], words.largestOf(slice, half), scaleLog2);
        factor[half] = ptx::exp2Approx(rows.rowMax[half] - raised);
        rows.rowMax[half] = raised;
        rows.sum[half] = product(rows.sum[half], factor[half]);
      }
#pragma unroll
      for (int i = 0; i < K::kPairsOfWarp; ++i)
#pragma unroll
        for (int e = 0; e < 8; ++e)
          rows.out[i][e / 4][e % 4] *= factor[e % 4 / 2];
    }
#pragma unroll
    for (int half = 0; half < 2; ++half)
      rows.sum[half] += sum[half];
    const uint32_t values = ring.valuesOfSlice(slice) + laneOffsetRowsFirst(K::kSmemRowBytesV);
#pragma unroll
    for (int i = 0; i < K::kPairsOfWarp; ++i)
      if (ColumnShare<K>::hasPair(i))
        KeyProducts<K>::probabilityValueOfPair(rows.out[i], probabilities, values, ColumnShare<K>::pairOf(i));
  }
#pragma unroll
  for (int half = 0; half < 2; ++half)
    rows.rowMax[half] = last[half];
}

} // namespace heddle
