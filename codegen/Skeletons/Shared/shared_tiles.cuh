// Tiles of rows of tensors in shared memory: asynchronous loads of rows at a stride, and the addresses of
// ldmatrix operands. A row takes a multiple of 128 bytes; its 16-byte piece number x lies at piece
// x ^ (row % 8), so that the eight rows of one 8x8 matrix fall into eight different bank groups.
#pragma once

#include "Ptx/async_copy.cuh"
#include "Ptx/memory.cuh"
#include "Ptx/scalar.cuh"
#include "Shared/elements.cuh"

namespace heddle {

constexpr int kSwizzleBytes = 128;

// A block of so many warps, all of one role.
template <class Traits> struct WarpBlock : Traits {
  static constexpr int kThreads = Traits::kWarps * 32;
};

constexpr int roundUpToPowerOfTwo(int n) {
  int power = 1;
  while (power < n)
    power *= 2;
  return power;
}

constexpr int roundUp(int n, int multiple) { return (n + multiple - 1) / multiple * multiple; }

// Rows of global memory: row number i of the tile is row `first + i * rate`; rows at or beyond `end` are
// absent and read as zeros.
struct StridedRows {
  const char *base;
  int64_t rowBytes;
  int32_t first, rate, end;
};

template <class K, int ElementBytes = K::kElementBytes>
DEV const char *headBase(const void *tensor, const int64_t (&stride)[3], int32_t batch, int32_t head) {
  return static_cast<const char *>(tensor) + (batch * stride[0] + head * stride[2]) * ElementBytes;
}

// Loaded by all threads of a kernel K.
template <class K, int Rows, int Dim, int SharedRowBytes, int ElementBytes = K::kElementBytes> struct SharedTile {
  static constexpr int kThreads = K::kThreads;
  static constexpr int kPieces = Dim * ElementBytes / kPieceBytes;
  static constexpr int kLanesPerRow = roundUpToPowerOfTwo(kPieces);
  static constexpr int kRowsPerPass = kThreads / kLanesPerRow;
  static constexpr int kPasses = (Rows + kRowsPerPass - 1) / kRowsPerPass;

  // Columns behind the last one, where it ends half a step of a matrix product: no copy writes them.
  DEV static void clearPadding(uint32_t tile) {
    if constexpr (Dim % K::kMmaStep != 0) {
#pragma unroll 1
      for (int row = threadIdx.x; row < Rows; row += kThreads)
        ptx::storeShared16(tile + pieceOffset(row, kPieces), 0, 0, 0, 0);
    }
  }

  // Every thread of the CTA takes part; completion follows the caller's commit.
  DEV static void load(uint32_t tile, const StridedRows &source) {
    int thread = ptx::rereadThreadIndex();
    int piece = thread % kLanesPerRow;
    if (kPieces < kLanesPerRow && piece >= kPieces)
      return;
    int row = thread / kLanesPerRow;
    int32_t index = source.first + row * source.rate;
    const char *from = source.base + index * source.rowBytes + piece * kPieceBytes;
    int64_t passBytes = kRowsPerPass * source.rate * source.rowBytes;
    int32_t lastIndex = source.first + (Rows - 1) * source.rate;
    if (lastIndex < source.end)
      copyPasses<false>(tile, from, passBytes, row, piece, index, source);
    else
      copyPasses<true>(tile, from, passBytes, row, piece, index, source);
  }

private:
  static constexpr bool kSwizzleRepeats = kRowsPerPass % 8 == 0;

  DEV static uint32_t pieceOffset(int row, int piece) {
    return row * SharedRowBytes + ((piece ^ (row % 8)) * kPieceBytes);
  }

  template <bool CheckRows>
  DEV static void copyPasses(uint32_t tile, const char *from, int64_t passBytes, int row, int piece, int32_t index,
                             const StridedRows &source) {
    uint32_t firstOffset = tile + pieceOffset(row, piece);
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      int passRow = pass * kRowsPerPass;
      uint32_t to = kSwizzleRepeats ? firstOffset + passRow * SharedRowBytes : tile + pieceOffset(row + passRow, piece);
      if (Rows % kRowsPerPass == 0 || row + passRow < Rows) {
        if (CheckRows)
          ptx::copyAsync16OrZero(to, from, index < source.end);
        else
          ptx::copyAsync16(to, from);
      }
      from += passBytes;
      index += kRowsPerPass * source.rate;
    }
  }
};

// Address of this lane's row for ldmatrix on 16 rows x 16 columns, matrices in row-major order of the
// lanes: rows 0-7, rows 8-15, then the upper eight columns. Operand A from rows, operand B transposed.
DEV uint32_t laneOffsetRowsFirst(int rowBytes) {
  uint32_t lane = threadIdx.x % 32, row = lane % 16, piece = lane / 16;
  return row * rowBytes + ((piece ^ (row % 8)) * kPieceBytes);
}

// The same block with the upper eight columns before rows 8-15: operand B from rows of keys.
DEV uint32_t laneOffsetColumnsFirst(int rowBytes) {
  uint32_t lane = threadIdx.x % 32, row = lane % 8 + lane / 16 * 8, piece = lane / 8 % 2;
  return row * rowBytes + ((piece ^ (row % 8)) * kPieceBytes);
}

// Moves a lane address by `step` blocks of 16 columns. The address must lie in a tile aligned to 128 bytes.
DEV uint32_t columnBlock(uint32_t address, int step) {
  constexpr int kBlocksPerSwizzle = kSwizzleBytes / kMmaBytes;
  return (address ^ (step % kBlocksPerSwizzle * kMmaBytes)) + step / kBlocksPerSwizzle * kSwizzleBytes;
}

} // namespace heddle
