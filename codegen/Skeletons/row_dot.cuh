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

#include "Ptx/memory.cuh"
#include "Ptx/scalar.cuh"
#include "elements.cuh"

namespace heddle {

struct KernelParams {
  const void *out, *dOut;
  float *delta;
  int64_t outStride[3], dOutStride[3]; // batch, row, head; in elements
  int32_t batch, heads, seqlenQ;
};

constexpr int kWarpLanes = 32;
constexpr int kWordsOfPiece = kPieceBytes / 4;
constexpr int kOutBytes = KernelTraits::kOutFloat32 ? 4 : kElementBytes;
constexpr int kPiecesOfRow = KernelTraits::kValueDim * kOutBytes / kPieceBytes;
static_assert(KernelTraits::kValueDim * kOutBytes % kPieceBytes == 0, "rows are whole pieces of 16 bytes");

constexpr int lanesFor(int pieces) {
  int lanes = 1;
  while (lanes < pieces && lanes < kWarpLanes)
    lanes *= 2;
  return lanes;
}
constexpr int kLanesOfRow = lanesFor(kPiecesOfRow);
constexpr int kPiecesOfLane = (kPiecesOfRow + kLanesOfRow - 1) / kLanesOfRow;
constexpr int kRowsAtATime = kWarpLanes / kLanesOfRow; // of a warp
constexpr int kRowsOfWarp = KernelTraits::kBlockM / KernelTraits::kWarps;
constexpr int kSteps = kRowsOfWarp / kRowsAtATime;
static_assert(KernelTraits::kBlockM % KernelTraits::kWarps == 0 && kRowsOfWarp % kRowsAtATime == 0 && kSteps >= 1,
              "the warps of a block read its rows in whole steps");

using Piece = float[kWordsOfPiece];

// Of the elements of two pieces.
DEV float dotOf(const Piece &a, const Piece &b) {
  float sum = 0;
#pragma unroll
  for (int word = 0; word < kWordsOfPiece; ++word) {
    if (KernelTraits::kOutFloat32) {
      sum = fmaf(a[word], b[word], sum);
    } else {
      float aLow, aHigh, bLow, bHigh;
      Element::unpack(__float_as_uint(a[word]), aLow, aHigh);
      Element::unpack(__float_as_uint(b[word]), bLow, bHigh);
      sum = fmaf(aHigh, bHigh, fmaf(aLow, bLow, sum));
    }
  }
  return sum;
}

// The rows of one lane: they begin at `first`, kRowsAtATime apart.
struct RowsOfLane {
  int32_t batch, head, first, end;

  DEV explicit RowsOfLane(const KernelParams &p) : end(p.seqlenQ) {
    const int32_t tiles = (p.seqlenQ + KernelTraits::kBlockM - 1) / KernelTraits::kBlockM;
    const int32_t block = static_cast<int32_t>(blockIdx.x);
    const int32_t warp = threadIdx.x / kWarpLanes, lane = threadIdx.x % kWarpLanes;
    head = block % p.heads;
    batch = block / p.heads / tiles;
    first = block / p.heads % tiles * KernelTraits::kBlockM + warp * kRowsOfWarp + lane / kLanesOfRow;
  }
  DEV int32_t row(int step) const { return first + step * kRowsAtATime; }
  // Rows beyond the last one read that one once more, and store nothing.
  DEV int64_t offset(const int64_t (&stride)[3], int step) const {
    return (batch * stride[0] + min(row(step), end - 1) * stride[1] + head * stride[2]) * kOutBytes;
  }
};

// Of piece number `piece` of this lane; zeros behind the end of a row.
DEV void loadPiece(const void *tensor, int64_t offset, int piece, Piece &values) {
  const int number = threadIdx.x % kLanesOfRow + piece * kLanesOfRow;
  if (kPiecesOfRow % kLanesOfRow == 0 || number < kPiecesOfRow)
    ptx::loadGlobal16(static_cast<const char *>(tensor) + offset + number * kPieceBytes, values);
  else
    for (float &value : values)
      value = 0;
}

// Over the lanes of a row.
DEV float sumOfRow(float value) {
#pragma unroll
  for (int step = kLanesOfRow / 2; step > 0; step /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

} // namespace heddle

extern "C" __global__ void __launch_bounds__(32 * KernelTraits::kWarps)
    heddle_kernel(const __grid_constant__ heddle::KernelParams p) {
  using namespace heddle;
  const RowsOfLane rows(p);
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
