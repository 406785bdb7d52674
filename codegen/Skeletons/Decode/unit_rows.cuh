// How rows of a unit enter and leave: queries into shared memory, sinks into the softmax, out and lse to memory. Every
// existing row is written once; a row without a kept key gives 0 and -inf.
#pragma once

#include "Decode/row_states.cuh"
#include "Ptx/async_copy.cuh"
#include "Shared/row_stores.cuh"
#include "Shared/score_units.cuh"

namespace heddle {

// By all threads of the block; completion follows the caller's commit.
DEV void loadQueries(const KernelParams &p, const Unit &unit, uint32_t tile) {
  constexpr int kPieces = KernelTraits::kHeadDim / kPieceElements;
#pragma unroll 1
  for (int32_t place = ptx::rereadThreadIndex(); place < unit.groups() * decode::kRows * kPieces; place += kThreads) {
    const int32_t number = place / kPieces, piece = place % kPieces;
    const PackedRow row(unit, number);
    const int64_t element = unit.sequence.batch * p.qStride[0] + (unit.sequence.firstRow + row.index) * p.qStride[1] +
                            row.head * p.qStride[2];
    ptx::copyAsync16OrZero(tile + number * KernelTraits::kSmemRowBytesQK + (piece ^ number % 8) * kPieceBytes,
                           static_cast<const char *>(p.q) + element * kElementBytes + piece * kPieceBytes, row.exists);
  }
}

// The row maximum starts this far below the sink, as in forward_rows.cuh.
constexpr float kSinkHeadroom = KernelTraits::kLargestExponent >= 127 ? 0.f : 8.f;

// A key of this score without a value, -inf: none. `rows` must be clear.
DEV void startFromSinks(RowState<K> &rows, const KernelParams &p, const Unit &unit, int32_t group) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float sink =
        Pattern::sink(unit.sequence.context(p, PackedRow(unit, group * decode::kRows + rowOfLane(half)).head));
    const bool isKey = sink != -INFINITY;
    rows.rowMax[0][half] = isKey ? sink * kLog2OfE - kSinkHeadroom : kNoRowMax;
    rows.sum[0][half] = isKey && threadIdx.x % 4 == 0 ? exp2f(kSinkHeadroom) : 0.f;
  }
}

DEV void writeHalf(const KernelParams &p, const Unit &unit, const ColumnShare &share, int32_t group, int32_t half) {
  constexpr int kOutBytes = KernelTraits::kOutFloat32 ? 4 : kElementBytes;
  const PackedRow row(unit, group * decode::kRows + rowOfLane(half));
  const RowSum sum = rowSum<Element>(share.rowMax, share.sum);
  const float inverse = sum.ofProducts == 0.f ? 0.f : ptx::reciprocalApprox(sum.ofProducts);
  const int32_t index = unit.sequence.firstRow + row.index;
  char *const to =
      static_cast<char *>(p.out) +
      (unit.sequence.batch * p.outStride[0] + index * p.outStride[1] + row.head * p.outStride[2]) * kOutBytes;
#pragma unroll
  for (int i = 0; i < kPairsOfWarp; ++i) {
    if (!ColumnShare::hasPair(i))
      continue;
    float values[2][2];
#pragma unroll
    for (int e = 0; e < 4; ++e)
      values[e / 2][e % 2] = share.out[i][e] * inverse;
    char *const columns = to + ColumnShare::pairOf(i) * 16 * kOutBytes;
    if constexpr (KernelTraits::kOutFloat32)
      storeRowAsFloat(columns, row.exists, values);
    else
      storeRowAsElements<KernelTraits::OutElement>(columns, row.exists, values);
  }
  const float lse = (share.rowMax + ptx::log2Approx(sum.ofWeights)) * kLogOf2;
  const int64_t place = (static_cast<int64_t>(unit.sequence.batch) * p.heads + row.head) * p.seqlenQ + index;
  const int32_t thread = ptx::rereadThreadIndex();
  ptx::storeGlobal4(p.lse + place, row.exists & (thread < 32) & (thread % 4 == 0), __float_as_uint(lse));
}

} // namespace heddle
