// Rows of out and d_out, read in pieces of 16 bytes by as few lanes as hold a row, and their products summed over the
// row. Traits: kValueDim, Element, kOutFloat32.
#pragma once

#include "Ptx/memory.cuh"
#include "Shared/elements.cuh"

namespace heddle {

constexpr int kWarpLanes = 32;
constexpr int kWordsOfPiece = kPieceBytes / 4;

constexpr int lanesFor(int pieces) {
  int lanes = 1;
  while (lanes < pieces && lanes < kWarpLanes)
    lanes *= 2;
  return lanes;
}

using Piece = float[kWordsOfPiece];

// The rows of one lane: they begin at `first`, kRowsAtATime apart.
template <class K, int BlockRows, int Warps> struct RowsOfLane {
  static constexpr int kOutBytes = K::kOutFloat32 ? 4 : K::kElementBytes;
  static constexpr int kPiecesOfRow = K::kValueDim * kOutBytes / kPieceBytes;
  static_assert(K::kValueDim * kOutBytes % kPieceBytes == 0, "rows are whole pieces of 16 bytes");
  static constexpr int kLanesOfRow = lanesFor(kPiecesOfRow);
  static constexpr int kPiecesOfLane = (kPiecesOfRow + kLanesOfRow - 1) / kLanesOfRow;
  static constexpr int kRowsAtATime = kWarpLanes / kLanesOfRow; // of a warp
  static constexpr int kRowsOfWarp = BlockRows / Warps;
  static constexpr int kSteps = kRowsOfWarp / kRowsAtATime;
  static_assert(BlockRows % Warps == 0 && kRowsOfWarp % kRowsAtATime == 0 && kSteps >= 1,
                "the warps of a block read its rows in whole steps");
  int32_t batch, head, first, end;

  // Every head has `rows` rows, of which those below seqlenQ exist.
  template <class Params> DEV RowsOfLane(const Params &p, int32_t rows) : end(p.seqlenQ) {
    const int32_t tiles = (rows + BlockRows - 1) / BlockRows;
    const int32_t block = static_cast<int32_t>(blockIdx.x);
    const int32_t warp = threadIdx.x / kWarpLanes, lane = threadIdx.x % kWarpLanes;
    head = block % p.heads;
    batch = block / p.heads / tiles;
    first = block / p.heads % tiles * BlockRows + warp * kRowsOfWarp + lane / kLanesOfRow;
  }
  DEV int32_t row(int step) const { return first + step * kRowsAtATime; }
  // Rows beyond the last one read that one once more, and store nothing.
  DEV int64_t offset(const int64_t (&stride)[3], int step) const {
    return (batch * stride[0] + min(row(step), end - 1) * stride[1] + head * stride[2]) * kOutBytes;
  }
  // One lane speaks for the row.
  DEV static bool isFirstOfRow() { return threadIdx.x % kLanesOfRow == 0; }

  // Piece number `piece` of this lane; it is zeros behind the end of a row.
  DEV static void load(const void *tensor, int64_t offset, int piece, Piece &values) {
    const int number = threadIdx.x % kLanesOfRow + piece * kLanesOfRow;
    if (kPiecesOfRow % kLanesOfRow == 0 || number < kPiecesOfRow)
      ptx::loadGlobal16(static_cast<const char *>(tensor) + offset + number * kPieceBytes, values);
    else
      for (float &value : values)
        value = 0;
  }

  // The sum over the elements of two pieces.
  DEV static float dotOf(const Piece &a, const Piece &b) {
    float sum = 0;
#pragma unroll
    for (int word = 0; word < kWordsOfPiece; ++word) {
      if constexpr (K::kOutFloat32) {
        sum = fmaf(a[word], b[word], sum);
      } else {
        using E = typename K::Element;
        float aLow, aHigh, bLow, bHigh;
        E::unpack(__float_as_uint(a[word]), aLow, aHigh);
        E::unpack(__float_as_uint(b[word]), bLow, bHigh);
        sum = fmaf(aHigh, bHigh, fmaf(aLow, bLow, sum));
      }
    }
    return sum;
  }

  // Over the lanes of a row.
  DEV static float sumOfRow(float value) {
#pragma unroll
    for (int step = kLanesOfRow / 2; step > 0; step /= 2)
      value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
  }
};

} // namespace heddle
