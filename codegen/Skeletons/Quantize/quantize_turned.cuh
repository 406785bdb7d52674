// Rows of values that are written key-major: a piece is turned over in shared memory, so that bytes of neighbouring keys go
// to memory together. Traits: those of quantize_rows.cuh, kSmemColumns.
#pragma once

#include "Ptx/barriers.cuh"
#include "Ptx/scalar.cuh"
#include "Ptx/streams.cuh"
#include "Quantize/quantize_pieces.cuh"
#include "Quantize/quantize_units.cuh"

namespace heddle {

// A piece, in shared memory: of each dimension a row of words of four keys. Dimensions of the lanes of a warp are eight
// apart, and their words in different banks.
template <class K> struct TurnedPiece {
  static constexpr int kDim = K::kValueDim, kRows = K::kPieceRowsV, kWordKeys = quantize::kWordKeys;
  static constexpr int kRowWords = quantize::turnedRowWords(kRows), kUsedWords = (kRows + kWordKeys - 1) / kWordKeys;

  unsigned char *const bytes;

  DEV int32_t placeOf(int32_t dim, int32_t word) const {
    return (dim * kRowWords + (word ^ dim / quantize::kUnitElements % kRowWords)) * kWordKeys;
  }

  DEV void put(const UnitPlace<K, kDim> &own, int32_t row, const uint32_t (&unit)[2]) const {
#pragma unroll
    for (int e = 0; e < quantize::kUnitElements; ++e)
      bytes[placeOf(own.column + e, row / kWordKeys) + row % kWordKeys] =
          static_cast<unsigned char>(unit[e / 4] >> e % 4 * 8);
  }

  // Of a row's last word those bytes alone that are keys: what lies behind them is another's.
  DEV void copy(const PiecePlace<K> &place, int32_t dim, int32_t word) const {
    const uint32_t keys = *reinterpret_cast<const uint32_t *>(bytes + placeOf(dim, word));
    const int32_t first = word * kWordKeys;
    char *const to = place.to + dim * place.toBytes + first;
    if (kRows % kWordKeys == 0 && first + kWordKeys <= place.rows) {
      ptx::storePassing4<K::kEvictFirst != 0>(to, keys);
      return;
    }
#pragma unroll
    for (int i = 0; i < kWordKeys; ++i)
      if (first + i < min(place.rows, kRows))
        to[i] = static_cast<char>(keys >> 8 * i);
  }
};

// All threads with units, together.
template <class K> DEV void storeTurned(const PiecePlace<K> &place, const Unit<K> (&units)[K::kUnits], float factor) {
  using Turned = TurnedPiece<K>;
  constexpr int kBarrier = 1; // 0 is __syncthreads
  if (static_cast<int>(threadIdx.x) >= K::kUnitThreads)
    return;
  const Turned turned = {ptx::launchedMemory() + K::kSmemColumns};
  const UnitPlace<K, Turned::kDim> own(ptx::rereadThreadIndex()); // registers are scarce
#pragma unroll
  for (int unit = 0; unit < K::kUnits; ++unit) {
    UnitValues values;
    uint32_t bytes[2];
    valuesOf<K>(units[unit], values);
    convert<K>(values, factor, bytes);
    if (own.isIn(place.rows, unit))
      turned.put(own, own.row(unit), bytes);
  }
  ptx::syncNamed(kBarrier, K::kUnitThreads);
#pragma unroll 1
  for (int32_t i = ptx::rereadThreadIndex(); i < Turned::kDim * Turned::kUsedWords; i += K::kUnitThreads)
    turned.copy(place, i / Turned::kUsedWords, i % Turned::kUsedWords);
  ptx::syncNamed(kBarrier, K::kUnitThreads);
}

} // namespace heddle
