// The first launch of a backward pass: delta = sum over the value dimension of out * dOut in fp32, one number for each
// row of out. Bound by memory: a row is read by as few lanes as hold it in pieces of 16 bytes, and every lane has the
// pieces of all its rows under way before it adds the first. Needs prelude.cuh before it in the source.
//
// Traits, all `static constexpr int`:
//   kBlockM      rows of one block, all of one head; a multiple of the rows that its warps read at a time
//   kWarps       warps of one block
//   kValueDim    a multiple of 8
//   Element      of out and dOut, unless kOutFloat32 is 1
// Launch: grid.x = batch * heads * ceil(seqlen_q / kBlockM), heads side by side; block = 32 * kWarps.
#pragma once

#include "Backward/row_pieces.cuh"

namespace heddle {

struct RowDotParams {
  const void *out, *dOut;
  float *delta;
  int64_t outStride[3], dOutStride[3]; // batch, row, head; in elements
  int32_t batch, heads, seqlenQ;
};

template <class Traits, class> struct RowDot : ElementNumbers<Traits> {
  using Params = RowDotParams;
  static constexpr int kThreads = kWarpLanes * Traits::kWarps, kMinBlocks = 0;

  DEV static void run(const Params &p) {
    using Rows = RowsOfLane<RowDot, Traits::kBlockM, Traits::kWarps>;
    constexpr int kSteps = Rows::kSteps, kPieces = Rows::kPiecesOfLane;
    const Rows rows(p, p.seqlenQ);
    Piece out[kSteps][kPieces], dOut[kSteps][kPieces];
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) {
        Rows::load(p.out, rows.offset(p.outStride, step), piece, out[step][piece]);
        Rows::load(p.dOut, rows.offset(p.dOutStride, step), piece, dOut[step][piece]);
      }
    float *delta = p.delta + (static_cast<int64_t>(rows.batch) * p.heads + rows.head) * p.seqlenQ;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      float sum = 0;
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece)
        sum += Rows::dotOf(out[step][piece], dOut[step][piece]);
      sum = Rows::sumOfRow(sum);
      if (Rows::isFirstOfRow() && rows.row(step) < rows.end)
        delta[rows.row(step)] = sum;
    }
  }
};

} // namespace heddle
