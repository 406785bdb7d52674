// The launches around the backward kernel, a row at a time: heddle_prepare writes delta, the sum over the value
// dimension of out * d_out less the gradient of lse; heddle_finish turns the sums of query_sums.cuh into d_q.
// Launch: heddle_prepare as row_dot.cuh with kPrepareRows rows and kRowWarps warps a block; heddle_finish with
// ceil(batch * seqlen_q * heads * ceil(kHeadDim / 16) / kFinishThreads) blocks.
#pragma once

#include "Backward/query_sums.cuh"
#include "Backward/row_pieces.cuh"
#include "Shared/score_units.cuh"

namespace heddle {

constexpr int kPrepareRows = KernelTraits::kPrepareRows, kRowWarps = KernelTraits::kRowWarps;
constexpr int kFinishThreads = 32 * kRowWarps;

struct PrepareParams {
  const void *out, *dOut;
  const float *dLse; // null: none is given
  float *delta;
  int64_t outStride[3], dOutStride[3]; // batch, row, head; in elements
  int32_t batch, heads, seqlenQ;
};

struct FinishParams {
  const float *sums;
  void *queryGradient;
  int64_t stride[3];
  int32_t batch, heads, seqlenQ;
  float scaleLog2;
};

// One group of 16 columns of one row.
struct SumGroup {
  static constexpr int kOfRow = (KernelTraits::kHeadDim + kSumGroupColumns - 1) / kSumGroupColumns;
  static constexpr int kOfSplit = kSumColumns / kSumGroupColumns;
  int32_t batch, row, head, group;

  DEV explicit SumGroup(const FinishParams &p) {
    const int64_t number = static_cast<int64_t>(blockIdx.x) * kFinishThreads + threadIdx.x;
    group = static_cast<int32_t>(number % kOfRow);
    const int64_t rest = number / kOfRow;
    head = static_cast<int32_t>(rest % p.heads);
    row = static_cast<int32_t>(rest / p.heads % p.seqlenQ);
    batch = static_cast<int32_t>(rest / p.heads / p.seqlenQ);
  }
  DEV const float *from(const FinishParams &p) const {
    const int32_t split = group / kOfSplit;
    return p.sums + sumPlace(firstSumRow(batch, p.heads, head, split, p.seqlenQ) + row) +
           (group - split * kOfSplit) * kSumGroupFloats;
  }
  DEV char *to(const FinishParams &p) const {
    return static_cast<char *>(p.queryGradient) +
           (batch * p.stride[0] + row * p.stride[1] + head * p.stride[2] + group * kSumGroupColumns) * kElementBytes;
  }
  DEV bool hasSecondHalf() const { return KernelTraits::kHeadDim % kSumGroupColumns == 0 || group + 1 < kOfRow; }
};

} // namespace heddle

extern "C" __global__ void __launch_bounds__(32 * heddle::kRowWarps)
    heddle_prepare(const __grid_constant__ heddle::PrepareParams p) {
  using namespace heddle;
  using Rows = RowsOfLane<kPrepareRows, kRowWarps>;
  const Rows rows(p);
  const int64_t first = (static_cast<int64_t>(rows.batch) * p.heads + rows.head) * p.seqlenQ;
#pragma unroll
  for (int step = 0; step < Rows::kSteps; ++step) {
    float sum = 0;
#pragma unroll
    for (int piece = 0; piece < kPiecesOfLane; ++piece) {
      Piece out, dOut;
      loadPiece(p.out, rows.offset(p.outStride, step), piece, out);
      loadPiece(p.dOut, rows.offset(p.dOutStride, step), piece, dOut);
      sum += dotOf(out, dOut);
    }
    sum = sumOfRow(sum);
    const int32_t row = rows.row(step);
    if (threadIdx.x % kLanesOfRow == 0 && row < rows.end)
      p.delta[first + row] = sum - (p.dLse ? p.dLse[first + row] : 0.f);
  }
}

extern "C" __global__ void __launch_bounds__(heddle::kFinishThreads)
    heddle_finish(const __grid_constant__ heddle::FinishParams p) {
  using namespace heddle;
  const SumGroup group(p);
  if (group.batch >= p.batch)
    return;
  const float scale = p.scaleLog2 * kLogOf2;
  const float *from = group.from(p);
  uint32_t low[kSumPiecesOfRow], high[kSumPiecesOfRow];
#pragma unroll
  for (int piece = 0; piece < kSumPiecesOfRow; ++piece) {
    float values[kSumPieceFloats];
    ptx::loadGlobal16(from + piece * kSumPieceFloats, values);
    low[piece] = pack(values[0] * scale, values[1] * scale);
    high[piece] = pack(values[2] * scale, values[3] * scale);
  }
  char *to = group.to(p);
  ptx::storeGlobal16(to, true, low[0], low[1], low[2], low[3]);
  ptx::storeGlobal16(to + kPieceBytes, group.hasSecondHalf(), high[0], high[1], high[2], high[3]);
}
