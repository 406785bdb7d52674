// Values of bytes and of floats: wgmma sums these along rows only, so a tile of values must lie as a row of keys for each
// of their dimensions. Two warps turn it over, between the ring that the loader fills and the ring that the consumers read,
// while these multiply. In which order the keys of a row come costs nothing: it is that in which scores become operands
// without an exchange between lanes.
#pragma once

#include "Forward/sm90_shared.cuh"
#include "Ptx/matrix.cuh"
#include "Ptx/wide_memory.cuh"

namespace heddle {

// How a tile is turned over, by pieces of which each warp takes every other one: from `from`, rows of dimensions, to
// `to`, rows of keys.
template <class K, int ElementBytes> struct TurnedTile;

// 16 dimensions of all keys, 32 keys at a time: matrices of 16-bit elements are loaded transposed, each a pair of
// dimensions of one key; the low bytes of two of them are the row of the even dimension, the high ones that of the odd
// one. So, in every 16 bytes of a row, keys come as lanes of a quad hold scores: 2 c, 2 c + 1, 2 c + 8 and 2 c + 9 for
// lane c. And of 16 rows the first eight are the even dimensions: lane c of a quad holds columns 4 c to 4 c + 3 of the
// product (valueOf). Neither costs an instruction, and no two rows of a matrix lie in the same banks.
template <class K> struct TurnedTile<K, 1> {
  static constexpr int kKeys = 32, kDims = 16, kSteps = K::kBlockN / kKeys;
  static constexpr int kPieces = K::kValueDim / kDims;
  static_assert(K::kBlockN % kKeys == 0 && K::kValueDim % kDims == 0,
                "tiles of bytes are turned over in whole squares");

  DEV static void turn(uint32_t from, uint32_t to, int32_t piece) {
    constexpr int kPiecesOfColumn = kColumnRowBytes / kPieceBytes;
    const int32_t lane = ptx::rereadLane(), row = lane % 8, matrix = lane / 8;
    const uint32_t source = from + piece / kPiecesOfColumn * (K::kBlockN * kColumnRowBytes) + lane * kColumnRowBytes +
                            (piece % kPiecesOfColumn ^ row) * kPieceBytes;
    const uint32_t target = to + (piece * kDims + matrix % 2 * 8 + row) * kColumnRowBytes;
    uint32_t arriving[kSteps][4];
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      ptx::loadMatrix4Transposed(arriving[step], source + step * kKeys * kColumnRowBytes);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const auto &keys = arriving[step];
      uint32_t dims[4];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        dims[2 * half] = ptx::permuteBytes<0x6420>(keys[2 * half], keys[2 * half + 1]);
        dims[2 * half + 1] = ptx::permuteBytes<0x7531>(keys[2 * half], keys[2 * half + 1]);
      }
      ptx::storeMatrix4(target + ((2 * step + matrix / 2) ^ row) * kPieceBytes, dims);
    }
  }

  // The rows behind those of the values, in all slots.
  DEV static void writeOnes() {
    constexpr int32_t kFourOnes = 0x38383838;
#pragma unroll 1
    for (int stage = 0; stage < K::kValueStages; ++stage) {
      const uint32_t end = K::kValueTile + (stage + 1) * K::kSmemStageBytesV;
      for (int byte = ptx::rereadLane() * 16; byte < kOnesBytes; byte += 32 * 16)
        ptx::storeShared16(end - kOnesBytes + byte, kFourOnes, kFourOnes, kFourOnes, kFourOnes);
    }
  }
};

// 16 keys of 32 dimensions: each lane has four dimensions of four keys, which it loads as a piece of four rows and stores
// as a piece of four others. Its keys are the even or the odd ones of eight: lane c of a quad holds scores of keys 2 c and
// 2 c + 1 where an operand has numbers c and c + 4 (TurnedFloats::packWeights). Of eight lanes that load or store together
// no two have the same banks.
template <class K> struct TurnedTile<K, 4> {
  static constexpr int kKeys = 16, kDims = 32, kFloats = kPieceBytes / 4;
  static constexpr int kPiecesOfColumn = kColumnRowBytes / kPieceBytes;
  static constexpr int kKeyGroups = K::kBlockN / kKeys, kDimGroups = (K::kValueDim + kDims - 1) / kDims;
  static constexpr int kPieces = kKeyGroups * kDimGroups;
  static_assert(K::kBlockN % kKeys == 0, "tiles of floats are turned over by 16 keys");

  DEV static void turn(uint32_t from, uint32_t to, int32_t piece) {
    const int32_t lane = ptx::rereadLane(), keyGroup = piece % kKeyGroups, dimGroup = piece / kKeyGroups;
    const int32_t dims = lane % kPiecesOfColumn, keys = dims / 2 ^ lane / kPiecesOfColumn; // numbers of pieces
    const int32_t firstDim = dimGroup * kDims + dims * kFloats;
    if (K::kValueDim % kDims != 0 && firstDim >= K::kValueDim)
      return;
    const int32_t firstKey = keyGroup * kKeys + keys / 2 * 8 + keys % 2;
    const uint32_t column = from + dimGroup * (K::kBlockN * kColumnRowBytes);
    float values[kFloats][kFloats];
#pragma unroll
    for (int key = 0; key < kFloats; ++key)
      ptx::loadShared16(placeIn(column, firstKey + 2 * key, dims), values[key]);
    const int32_t keyPiece = keyGroup * (kKeys / kFloats) + keys;
    const uint32_t target = to + keyPiece / kPiecesOfColumn * (K::kValueDim * kColumnRowBytes);
#pragma unroll
    for (int dim = 0; dim < kFloats; ++dim)
      ptx::storeShared16(placeIn(target, firstDim + dim, keyPiece % kPiecesOfColumn), values[0][dim], values[1][dim],
                         values[2][dim], values[3][dim]);
  }

  DEV static void writeOnes() {
    for (int byte = ptx::rereadLane() * 16; byte < kOnesBytes; byte += 32 * 16)
      ptx::storeShared16(K::kOnes + byte, 1.f, 1.f, 1.f, 1.f);
  }

private:
  DEV static uint32_t placeIn(uint32_t column, int32_t row, int32_t piece) {
    return column + row * kColumnRowBytes + (piece ^ row % 8) * kPieceBytes;
  }
};

template <class K> class Transposer {
  using Tile = TurnedTile<K, K::kElementBytes>;

public:
  DEV explicit Transposer(int32_t warp) : warp(warp), raw(kReads), values(kFills) {}

  DEV void run() {
    if (warp == 0)
      Tile::writeOnes();
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

  DEV void turnTile() const {
    const uint32_t from = K::kRawTile + raw.slot() * K::kSmemStageBytesRaw;
    const uint32_t to = K::kValueTile + values.slot() * K::kSmemStageBytesV;
#pragma unroll 1
    for (int piece = warp; piece < Tile::kPieces; piece += kTransposerWarps)
      Tile::turn(from, to, piece);
  }

  int32_t warp;
  Pipeline<K::kRawStages, typename K::RawRing, PackedRingCursor> raw;
  Pipeline<K::kValueStages, typename K::ValueRing, PackedRingCursor> values;
};

} // namespace heddle
