// How rows of a unit enter and leave: queries into shared memory, sinks into the softmax, out and lse to memory. Every
// existing row is written once; a row without a kept key gives 0 and -inf.
#pragma once

#include "Decode/row_states.cuh"
#include "Ptx/async_copy.cuh"
#include "Shared/row_stores.cuh"
#include "Shared/score_units.cuh"

namespace heddle {

// By all threads of the block; completion follows the caller's commit.
template <class K> DEV void loadQueries(const ParamsOf<K> &p, const Unit<K> &unit, uint32_t tile) {
  constexpr int kPieces = K::kHeadDim / K::kPieceElements, kThreadsOfRow = K::kThreads / decode::kRows;
  const uint32_t thread = ptx::rereadThreadIndex();
  const int32_t ofRow = thread % kThreadsOfRow;
#pragma unroll 1
  for (int32_t number = thread / kThreadsOfRow; number < unit.groups() * decode::kRows; number += decode::kRows) {
    const PackedRow row(unit, number);
    const char *const from = static_cast<const char *>(p.q) +
                             rowOffset(placeOf<K>(p, unit.sequence, row.index), row.head, p.qStride) * K::kElementBytes;
    const uint32_t to = tile + number * K::kSmemRowBytesQK;
#pragma unroll
    for (int i = 0; i < kPieces; i += kThreadsOfRow)
      if (kPieces % kThreadsOfRow == 0 || i + ofRow < kPieces)
        ptx::copyAsync16OrZero(to + ((i + ofRow) ^ number % 8) * kPieceBytes, from + (i + ofRow) * kPieceBytes,
                               row.exists);
  }
}

// The row maximum starts this far below the sink, as in forward_rows.cuh.
template <class K> constexpr float kSinkHeadroom = K::kLargestExponent >= 127 ? 0.f : 8.f;

// A key of this score without a value, -inf: none, as the state of a row.
template <class K>
DEV void findSink(float &rowMax, float &sum, const ParamsOf<K> &p, const Unit<K> &unit, int32_t row) {
  const float sink = K::Pattern::sink(unit.sequence.context(p, PackedRow(unit, row).head));
  const bool isKey = sink != -INFINITY;
  rowMax = isKey ? sink * kLog2OfE - kSinkHeadroom<K> : kNoRowMax;
  sum = isKey && threadIdx.x % 4 == 0 ? exp2f(kSinkHeadroom<K>) : 0.f;
}

// `rows` must be clear. Rows have it beside keys of their own.
template <class K>
DEV void startFromSinks(RowState<K> &rows, const ParamsOf<K> &p, const Unit<K> &unit, int32_t group) {
  if (unit.isGroup())
    return;
#pragma unroll
  for (int half = 0; half < 2; ++half)
    findSink(rows.rowMax[0][half], rows.sum[0][half], p, unit, group * decode::kRows + rowOfLane(half));
}

// The warp's columns of 8 rows, each of which begins at `to` in its lanes; `scale` is that of values.
template <bool AsFloat, class K>
DEV void writeColumns(const ColumnShare<K> &share, bool exists, float scale, char *to, float *lse) {
  const RowSum sum = rowSum<typename K::Element>(share.rowMax, share.sum);
  const float inverse = sum.ofProducts == 0.f ? 0.f : ptx::reciprocalApprox(sum.ofProducts) * scale;
#pragma unroll
  for (int i = 0; i < K::kPairsOfWarp; ++i) {
    if (!ColumnShare<K>::hasPair(i))
      continue;
    float values[2][2];
#pragma unroll
    for (int e = 0; e < 4; ++e)
      values[e / 2][e % 2] = share.out[i][e] * inverse;
    char *const columns = to + ColumnShare<K>::pairOf(i) * 16 * (AsFloat ? 4 : K::kElementBytes);
    K::Values::Columns::template store<AsFloat>(columns, exists, values);
  }
  const uint32_t thread = ptx::rereadThreadIndex();
  ptx::storeGlobal4(lse, exists & (thread < 32) & (thread % 4 == 0),
                    __float_as_uint((share.rowMax + ptx::log2Approx(sum.ofWeights)) * kLogOf2));
}

template <class K>
DEV void writeHalf(const ParamsOf<K> &p, const Unit<K> &unit, const ColumnShare<K> &share, int32_t group,
                   int32_t half) {
  constexpr int kOutBytes = K::kOutFloat32 ? 4 : K::kElementBytes;
  const PackedRow row(unit, group * decode::kRows + rowOfLane(half));
  const float scale = p.ofValues(unit.scalePair(p));
  if (unit.leavesStates()) {
    char *const state = unit.stateOf(p, row.index, row.head);
    return writeColumns<true>(share, row.exists, scale, state, reinterpret_cast<float *>(state) + K::kValueDim);
  }
  const RowPlace place = placeOf<K>(p, unit.sequence, row.index);
  char *const to = static_cast<char *>(p.out) + rowOffset(place, row.head, p.outStride) * kOutBytes;
  const int64_t ofLse = (static_cast<int64_t>(place.batch) * p.heads + row.head) * p.seqlenQ + place.row;
  writeColumns<K::kOutFloat32 != 0>(share, row.exists, scale, to, p.lse + ofLse);
}

} // namespace heddle
