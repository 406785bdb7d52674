// The first launch of a backward pass: delta = sum over the value dimension of out * dOut in fp32, one number for each
// row of out. Bound by memory: a row is read by as few lanes as hold it in pieces of 16 bytes, and every lane has the
// pieces of all its rows under way before it adds the first. Needs, before it in the source: prelude.cuh, struct
// KernelTraits.
//
// KernelTraits, all `static constexpr int`:
//   kBlockM      rows of one block, all of one head; a multiple of the rows that its warps read at a time
//   kWarps       warps of one block
//   kValueDim    a multiple of 8
//   Element      of out and dOut, unless kOutFloat32 is 1
// Launch: grid.x = batch * heads * ceil(seqlen_q / kBlockM), heads side by side; block = 32 * kWarps.
#pragma once

#include "Backward/row_pieces.cuh"

namespace heddle {

struct KernelParams {
  const void *out, *dOut;
  float *delta;
  int64_t outStride[3], dOutStride[3]; // batch, row, head; in elements
  int32_t batch, heads, seqlenQ;
};

} // namespace heddle

extern "C" __global__ void __launch_bounds__(32 * KernelTraits::kWarps)
    heddle_kernel(const __grid_constant__ heddle::KernelParams p) {
  using namespace heddle;
  using Rows = RowsOfLane<KernelTraits::kBlockM, KernelTraits::kWarps>;
  constexpr int kSteps = Rows::kSteps;
  const Rows rows(p, p.seqlenQ);
  Piece out[kSteps][kPiecesOfLane], dOut[kSteps][kPiecesOfLane];
#pragma unroll
  for (int step = 0; step < kSteps; ++step)
#pragma unroll
    for (int piece = 0; piece < kPiecesOfLane; ++piece) {
      loadPiece(p.out, rows.offset(p.outStride, step), piece, out[step][piece]);
      loadPiece(p.dOut, rows.offset(p.dOutStride, step), piece, dOut[step][piece]);
    }
  float *delta = p.delta + (static_cast<int64_t>(rows.batch) * p.heads + rows.head) * p.seqlenQ;
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    float sum = 0;
#pragma unroll
    for (int piece = 0; piece < kPiecesOfLane; ++piece)
      sum += dotOf(out[step][piece], dOut[step][piece]);
    sum = sumOfRow(sum);
    if (threadIdx.x % kLanesOfRow == 0 && rows.row(step) < rows.end)
      delta[rows.row(step)] = sum;
  }
}
