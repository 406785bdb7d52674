// Values of bytes: wgmma sums along rows only, so a tile of values must lie as a row of keys for each of their
// dimensions. Two warps turn it over, between the ring that the loader fills and the ring that the consumers read, while
// these multiply.
//
// 32 keys x 16 dimensions at a time: matrices of 16-bit elements are loaded transposed, each a pair of dimensions of one
// key; the low bytes of two of them are the row of the even dimension, the high ones that of the odd one. So, in every
// 16 bytes of a row, keys come as lanes of a quad hold scores: 2 c, 2 c + 1, 2 c + 8 and 2 c + 9 for lane c. And of 16
// rows the first eight are the even dimensions: lane c of a quad holds columns 4 c to 4 c + 3 of the product
// (valueOf). Neither costs an instruction, and no two rows of a matrix lie in the same banks.
#pragma once

#include "Forward/sm90_shared.cuh"
#include "Ptx/matrix.cuh"
#include "Ptx/wide_memory.cuh"

namespace heddle {

template <class K> class Transposer {
public:
  DEV explicit Transposer(int32_t warp) : warp(warp), raw(kReads), values(kFills) {}

  DEV void run() {
    if (warp == 0)
      writeOnes();
#pragma unroll 1
    for (;; next()) {
      raw.waitFull();
      if (ptx::loadShared4(K::rawEnd(raw.slot())))
        return;
      values.acquire();
      turnTile();
      ptx::fenceShared();
      __syncwarp();
      raw.release();
      values.publish();
    }
  }

private:
  DEV void next() {
    raw.next();
    values.next();
  }

  // The rows behind those of the values, in all slots.
  DEV static void writeOnes() {
    constexpr int32_t kFourOnes = 0x38383838;
    constexpr int kOnesBytes = kOnesRows * kColumnRowBytes;
#pragma unroll 1
    for (int stage = 0; stage < K::kValueStages; ++stage) {
      const uint32_t end = K::kValueTile + (stage + 1) * K::kSmemStageBytesV;
      for (int byte = ptx::rereadThreadIndex() % 32 * 16; byte < kOnesBytes; byte += 32 * 16)
        ptx::storeShared16(end - kOnesBytes + byte, kFourOnes, kFourOnes, kFourOnes, kFourOnes);
    }
  }

  DEV void turnTile() const {
    const uint32_t from = K::kRawTile + raw.slot() * K::kSmemStageBytesRaw;
    const uint32_t to = K::kValueTile + values.slot() * K::kSmemStageBytesV;
#pragma unroll 1
    for (int piece = warp; piece < K::kValueDim / kTurnedDims; piece += kTransposerWarps)
      turnPiece(from, to, piece);
  }

  // 16 dimensions of all keys.
  DEV static void turnPiece(uint32_t from, uint32_t to, int32_t piece) {
    constexpr int kPiecesOfColumn = kColumnRowBytes / kPieceBytes;
    const int32_t lane = ptx::rereadThreadIndex() % 32, row = lane % 8, matrix = lane / 8;
    const uint32_t source = from + piece / kPiecesOfColumn * (K::kBlockN * kColumnRowBytes) + lane * kColumnRowBytes +
                            (piece % kPiecesOfColumn ^ row) * kPieceBytes;
    const uint32_t target = to + (piece * kTurnedDims + matrix % 2 * 8 + row) * kColumnRowBytes;
#pragma unroll
    for (int step = 0; step < K::kBlockN / kTurnedKeys; ++step) {
      uint32_t keys[4], dims[4];
      ptx::loadMatrix4Transposed(keys, source + step * kTurnedKeys * kColumnRowBytes);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        dims[2 * half] = ptx::permuteBytes<0x6420>(keys[2 * half], keys[2 * half + 1]);
        dims[2 * half + 1] = ptx::permuteBytes<0x7531>(keys[2 * half], keys[2 * half + 1]);
      }
      ptx::storeMatrix4(target + ((2 * step + matrix / 2) ^ row) * kPieceBytes, dims);
    }
  }

  int32_t warp;
  Pipeline<kRawStages, typename K::RawRing, PackedRingCursor> raw;
  Pipeline<K::kValueStages, typename K::ValueRing, PackedRingCursor> values;
};

} // namespace heddle
