// Rows of a piece between memory and registers. Needs KernelTraits: kWarps, kUnits, kHeadDim, kValueDim, kEvictFirst.
#pragma once

#include "Ptx/memory.cuh"
#include "Ptx/streams.cuh"
#include "Quantize/quantize_pieces.cuh"
#include "Quantize/quantize_units.cuh"

namespace heddle {

constexpr int kUnits = KernelTraits::kUnits;

template <int Dim, bool IsLast> DEV void loadRows(const PiecePlace &place, Unit (&units)[kUnits]) {
  const UnitPlace<Dim> own;
#pragma unroll
  for (int unit = 0; unit < kUnits; ++unit) {
    const char *from = place.from + own.row(unit) * place.fromBytes + own.column * kElementBytes;
#pragma unroll
    for (int piece = 0; piece < kUnitPieces; ++piece) {
      uint32_t words[4] = {0, 0, 0, 0};
      if (own.isIn(place.rows, unit))
        ptx::loadPassing16<IsLast>(from + piece * kPieceBytes, words);
#pragma unroll
      for (int word = 0; word < 4; ++word)
        units[unit][4 * piece + word] = words[word];
    }
  }
}

// What is subtracted from the columns of a unit: nothing, or means that another block has written.
DEV void loadMeans(const float *mean, UnitValues &values) {
#pragma unroll
  for (int i = 0; i < quantize::kUnitElements / 4; ++i) {
    float own[4];
    ptx::loadGlobal16(mean + 4 * i, own);
#pragma unroll
    for (int e = 0; e < 4; ++e)
      values[4 * i + e] = own[e];
  }
}

template <int Dim, bool IsSmoothed>
DEV void storeRows(const PiecePlace &place, const Unit (&units)[kUnits], float factor) {
  const UnitPlace<Dim> own;
  UnitValues mean;
  if constexpr (IsSmoothed)
    loadMeans(place.mean + own.column, mean);
#pragma unroll
  for (int unit = 0; unit < kUnits; ++unit) {
    UnitValues values;
    valuesOf(units[unit], values);
    if constexpr (IsSmoothed)
#pragma unroll
      for (int e = 0; e < quantize::kUnitElements; ++e)
        values[e] -= mean[e];
    uint32_t bytes[2];
    convert(values, factor, bytes);
    if (own.isIn(place.rows, unit))
      ptx::storePassing8<KernelTraits::kEvictFirst != 0>(place.to + own.row(unit) * place.toBytes + own.column,
                                                         bytes[0], bytes[1]);
  }
}

constexpr bool kDimsDiffer = KernelTraits::kHeadDim != KernelTraits::kValueDim;

template <bool IsLast> DEV void load(const PiecePlace &place, Unit (&units)[kUnits]) {
  if (kDimsDiffer && place.isOfValues)
    loadRows<KernelTraits::kValueDim, IsLast>(place, units);
  else
    loadRows<KernelTraits::kHeadDim, IsLast>(place, units);
}

DEV void store(const PiecePlace &place, const Unit (&units)[kUnits], float factor) {
  if (place.mean)
    storeRows<KernelTraits::kHeadDim, true>(place, units, factor);
  else if (kDimsDiffer && place.isOfValues)
    storeRows<KernelTraits::kValueDim, false>(place, units, factor);
  else
    storeRows<KernelTraits::kHeadDim, false>(place, units, factor);
}

} // namespace heddle
