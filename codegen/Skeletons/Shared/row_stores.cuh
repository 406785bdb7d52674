// How rows of accumulators leave registers as elements of out, up to 16 bytes a lane. The four lanes of a quad hold a
// row: of each tile of eight columns two, side by side, or of each two tiles four (sm90_transposer.cuh).
#pragma once

#include "Ptx/memory.cuh"
#include "Shared/elements.cuh"

namespace heddle {

DEV uint32_t exchange(uint32_t word, int distance) { return __shfl_xor_sync(0xffffffffu, word, distance); }

// Exchanges, between the two lanes of each pair at a distance, the high word of the lane whose bit of the distance is
// clear for the low word of the other one.
DEV void exchangeHalves(uint32_t &low, uint32_t &high, int distance) {
  const bool isUpper = threadIdx.x & distance;
  const uint32_t other = exchange(isUpper ? low : high, distance);
  low = isUpper ? other : low;
  high = isUpper ? high : other;
}

// Transposes the 4x4 matrix whose row c is held by lane c of the quad.
DEV void transposeQuad(uint32_t (&words)[4]) {
#pragma unroll
  for (int w = 0; w < 4; w += 2)
    exchangeHalves(words[w], words[w + 1], 1);
#pragma unroll
  for (int w = 0; w < 2; ++w)
    exchangeHalves(words[w], words[w + 2], 2);
}

// Stores of one row, up to 16 bytes a lane. All lanes call; only rows that exist are written. Values are the
// lane's two columns of each 8-column tile.
template <class E, int Tiles> DEV void storeRowAsElements(void *row, bool isPresent, const float (&values)[Tiles][2]) {
  char *to = static_cast<char *>(row);
  constexpr int kGroup = 4, kPairs = Tiles / kGroup * kGroup, kSingle = Tiles / 2 * 2;
#pragma unroll
  for (int n = 0; n + kGroup <= Tiles; n += kGroup) {
    uint32_t words[kGroup];
#pragma unroll
    for (int w = 0; w < kGroup; ++w)
      words[w] = pack<E>(values[n + w][0], values[n + w][1]);
    transposeQuad(words);
    ptx::storeGlobal16(to + (n + threadIdx.x % 4) * kPieceBytes, isPresent, words[0], words[1], words[2], words[3]);
  }
  if constexpr (kPairs < kSingle) {
    uint32_t low = pack<E>(values[kPairs][0], values[kPairs][1]),
             high = pack<E>(values[kPairs + 1][0], values[kPairs + 1][1]);
    exchangeHalves(low, high, 1);
    ptx::storeGlobal8(to + (kPairs + threadIdx.x % 2) * kPieceBytes + (threadIdx.x & 2) * 4, isPresent, low, high);
  }
  if constexpr (kSingle < Tiles)
    ptx::storeGlobal4(to + kSingle * kPieceBytes + threadIdx.x % 4 * 4, isPresent,
                      pack<E>(values[kSingle][0], values[kSingle][1]));
}

// The same as floats.
template <int Tiles> DEV void storeRowAsFloat(void *row, bool isPresent, const float (&values)[Tiles][2]) {
  char *to = static_cast<char *>(row);
  constexpr int kTileBytes = 8 * sizeof(float), kSingle = Tiles / 2 * 2;
#pragma unroll
  for (int n = 0; n < kSingle; n += 2) {
    uint32_t low[2], high[2];
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      low[e] = __float_as_uint(values[n][e]);
      high[e] = __float_as_uint(values[n + 1][e]);
      exchangeHalves(low[e], high[e], 1);
    }
    ptx::storeGlobal16(to + (n + threadIdx.x % 2) * kTileBytes + (threadIdx.x & 2) * 8, isPresent, low[0], low[1],
                       high[0], high[1]);
  }
  if constexpr (kSingle < Tiles)
    ptx::storeGlobal8(to + kSingle * kTileBytes + threadIdx.x % 4 * 8, isPresent, __float_as_uint(values[kSingle][0]),
                      __float_as_uint(values[kSingle][1]));
}

// Rows of out, in the type that traits give it. Lane c of a quad has columns 2 c and 2 c + 1 of each tile of eight.
template <class Traits> struct ColumnPairs {
  // Those of tile n, from a row of floats.
  DEV static void load(const float *row, int n, bool isPresent, float (&columns)[2]) {
    ptx::loadGlobal8(row + threadIdx.x % 4 * 2 + n * 8, isPresent, columns);
  }
  template <bool AsFloat = Traits::kOutFloat32 != 0, int Tiles>
  DEV static void store(void *row, bool isPresent, const float (&values)[Tiles][2]) {
    if constexpr (AsFloat)
      storeRowAsFloat(row, isPresent, values);
    else
      storeRowAsElements<typename Traits::OutElement>(row, isPresent, values);
  }
};

// Lane c of a quad has columns 4 c to 4 c + 3 of each two tiles, the even ones in the first.
template <class Traits> struct ColumnFours {
  using OutElement = typename Traits::OutElement;
  static constexpr int kColumns = 16, kLaneColumns = 4;

  DEV static void load(const float *row, int n, bool isPresent, float (&columns)[2]) {
    const float *from = row + n / 2 * kColumns + threadIdx.x % 4 * kLaneColumns;
    float first[2], second[2];
    ptx::loadGlobal8(from, isPresent, first);
    ptx::loadGlobal8(from + 2, isPresent, second);
    const bool isOdd = n % 2 != 0; // not a place in an array, which would lie in memory
    columns[0] = isOdd ? first[1] : first[0];
    columns[1] = isOdd ? second[1] : second[0];
  }
  template <bool AsFloat = Traits::kOutFloat32 != 0, int Tiles>
  DEV static void store(void *row, bool isPresent, const float (&values)[Tiles][2]) {
    constexpr int kBytes = AsFloat ? 4 : 2;
    char *to = static_cast<char *>(row) + threadIdx.x % 4 * (kLaneColumns * kBytes);
#pragma unroll
    for (int n = 0; n < Tiles; n += 2) {
      const float a = values[n][0], b = values[n + 1][0], c = values[n][1], d = values[n + 1][1];
      char *const at = to + n / 2 * (kColumns * kBytes);
      if constexpr (AsFloat)
        ptx::storeGlobal16(at, isPresent, a, b, c, d);
      else
        ptx::storeGlobal8(at, isPresent, pack<OutElement>(a, b), pack<OutElement>(c, d));
    }
  }
};

} // namespace heddle
