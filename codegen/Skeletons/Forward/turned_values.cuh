// The launch before products of bytes whose values lie key-major in the workspace: rows of v become, for each dimension, a
// row of keys, with zeros up to the next multiple of 16. The kernel behind it takes them as they are, where its own warps
// would turn every tile over anew for each query tile.
// Launch: heddle_turn_values with batch * kv_heads * ceil(seqlen_k / kTurnedKeys) blocks.
#pragma once

#include "Ptx/memory.cuh"
#include "Ptx/scalar.cuh"
#include "Ptx/streams.cuh"
#include "Shared/sm90_layout.cuh"

namespace heddle {

struct TurnValuesParams {
  const char *from;  // [batch, key, kv head, dim]
  char *to;          // [batch, kv head, dim, key]
  int64_t stride[3]; // of from: batch, row, head; in bytes
  int32_t kvHeads, seqlenK;
};

// Traits: kValueDim, a multiple of 16.
template <class K> class TurnValues {
  static constexpr int kKeys = sm90::kTurnedKeys, kPiece = sm90::kTurnedPiece, kWord = 4;
  static constexpr int kWords = kKeys / kWord; // of a dimension, four keys each
  static constexpr int kPieces = K::kValueDim / kPiece;

public:
  using Params = TurnValuesParams;
  static constexpr int kThreads = sm90::kTurningThreads, kMinBlocks = 1;

  DEV static void run(const Params &p) {
    const int32_t blocksOfHead = (p.seqlenK + kKeys - 1) / kKeys, pair = blockIdx.x / blocksOfHead;
    const int32_t first = (blockIdx.x - pair * blocksOfHead) * kKeys, batch = pair / p.kvHeads;
    const char *const head = p.from + batch * p.stride[0] + (pair - batch * p.kvHeads) * p.stride[2];
    const uint32_t tile = ptx::sharedAddress(ptx::launchedMemory());
#pragma unroll
    for (int32_t i = threadIdx.x; i < kPieces * kWords; i += kThreads)
      turn(tile, head, p, first, i % kPieces, i / kPieces);
    __syncthreads();
    const int64_t pitch = sm90::turnedPitch<int64_t>(p.seqlenK);
    char *const to = p.to + pair * K::kValueDim * pitch + first;
    constexpr int kRowPieces = kKeys / kPiece;
#pragma unroll
    for (int32_t i = threadIdx.x; i < K::kValueDim * kRowPieces; i += kThreads)
      store(tile, to + i / kRowPieces * pitch, i / kRowPieces, i % kRowPieces, pitch - first);
  }

private:
  // Words of a dimension are shuffled, pieces of 16 keys as they are, so that neither way two lanes want the same banks.
  DEV static uint32_t placeOf(uint32_t tile, int32_t dim, int32_t word) {
    return tile + (dim * kWords + (word ^ dim / kPiece * 4 % kWords)) * kWord;
  }

  // 16 dimensions of four keys.
  DEV static void turn(uint32_t tile, const char *head, const Params &p, int32_t first, int32_t piece, int32_t word) {
    uint32_t keys[kWord][kPiece / kWord] = {};
#pragma unroll
    for (int key = 0; key < kWord; ++key) {
      const int32_t row = first + word * kWord + key;
      if (row < p.seqlenK) // read once: let go of first, that what is written may stay for the kernel behind
        ptx::loadPassing16<true>(head + row * p.stride[1] + piece * kPiece, keys[key]);
    }
#pragma unroll
    for (int four = 0; four < kPiece / kWord; ++four) {
      const uint32_t low = ptx::permuteBytes<0x5140>(keys[0][four], keys[1][four]),
                     high = ptx::permuteBytes<0x5140>(keys[2][four], keys[3][four]),
                     lowEnd = ptx::permuteBytes<0x7362>(keys[0][four], keys[1][four]),
                     highEnd = ptx::permuteBytes<0x7362>(keys[2][four], keys[3][four]);
      const int32_t dim = piece * kPiece + four * kWord;
      ptx::storeShared4(placeOf(tile, dim, word), ptx::permuteBytes<0x5410>(low, high));
      ptx::storeShared4(placeOf(tile, dim + 1, word), ptx::permuteBytes<0x7632>(low, high));
      ptx::storeShared4(placeOf(tile, dim + 2, word), ptx::permuteBytes<0x5410>(lowEnd, highEnd));
      ptx::storeShared4(placeOf(tile, dim + 3, word), ptx::permuteBytes<0x7632>(lowEnd, highEnd));
    }
  }

  // 16 keys of a dimension, of `left` bytes that its row has from here.
  DEV static void store(uint32_t tile, char *row, int32_t dim, int32_t piece, int64_t left) {
    int32_t words[4];
    ptx::loadShared16(placeOf(tile, dim, piece * 4), words);
    ptx::storeGlobal16(row + piece * kPiece, piece * kPiece < left, uint32_t(words[0]), uint32_t(words[1]),
                       uint32_t(words[2]), uint32_t(words[3]));
  }

  static_assert(K::kValueDim % kPiece == 0, "rows of values are whole pieces of 16 bytes");
};

} // namespace heddle
