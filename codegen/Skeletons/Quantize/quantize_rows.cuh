// Rows of a piece between memory and registers. Traits: kWarps, kUnits, kHeadDim, kValueDim, kEvictFirst.
#pragma once

#include "Ptx/memory.cuh"
#include "Ptx/streams.cuh"
#include "Quantize/quantize_pieces.cuh"
#include "Quantize/quantize_rotation.cuh"
#include "Quantize/quantize_units.cuh"

namespace heddle {

template <int Dim, bool IsLast, class K> DEV void loadRows(const PiecePlace<K> &place, Unit<K> (&units)[K::kUnits]) {
  const UnitPlace<K, Dim> own;
#pragma unroll
  for (int unit = 0; unit < K::kUnits; ++unit) {
    const char *from = place.from + own.row(unit) * place.fromBytes + own.column * K::kElementBytes;
#pragma unroll
    for (int piece = 0; piece < K::kUnitPieces; ++piece) {
      uint32_t words[4] = {0, 0, 0, 0};
      if (own.isIn(place.rows, unit))
        ptx::loadPassing16<IsLast>(from + piece * kPieceBytes, words);
#pragma unroll
      for (int word = 0; word < 4; ++word)
        units[unit][4 * piece + word] = words[word];
    }
  }
}

// What is subtracted from the columns of a unit: means that another block has written.
template <bool IsRotated, class K, int Dim>
DEV void loadMeans(const UnitPlace<K, Dim> &own, const float *means, UnitValues &values) {
#pragma unroll
  for (int first = 0; first < quantize::kUnitElements; first += 4) {
    float four[4];
    ptx::loadGlobal16(means + own.template columnOf<IsRotated>(first), four);
#pragma unroll
    for (int e = 0; e < 4; ++e)
      values[first + e] = four[e];
  }
}

template <bool IsRotated, class K, int Dim>
DEV void storeUnit(const UnitPlace<K, Dim> &own, char *row, const uint32_t (&bytes)[2]) {
  if constexpr (IsRotated) {
    ptx::storePassing4<K::kEvictFirst != 0>(row + own.template columnOf<true>(0), bytes[0]);
    ptx::storePassing4<K::kEvictFirst != 0>(row + own.template columnOf<true>(4), bytes[1]);
  } else {
    ptx::storePassing8<K::kEvictFirst != 0>(row + own.column, bytes[0], bytes[1]);
  }
}

// `signs`: those that rows are rotated by.
template <int Dim, bool IsSmoothed, bool IsRotated, class K>
DEV void storeRows(const PiecePlace<K> &place, const float *signs, const Unit<K> (&units)[K::kUnits], float factor) {
  const UnitPlace<K, Dim> own;
  UnitValues mean, ownSigns;
  if constexpr (IsRotated)
    loadSigns(own, signs, ownSigns);
  if constexpr (IsSmoothed)
    loadMeans<IsRotated>(own, place.mean, mean);
#pragma unroll
  for (int unit = 0; unit < K::kUnits; ++unit) {
    UnitValues values;
    valuesOf<K>(units[unit], values);
    if constexpr (IsRotated)
      rotate<K>(ownSigns, values);
    if constexpr (IsSmoothed)
#pragma unroll
      for (int e = 0; e < quantize::kUnitElements; ++e)
        values[e] -= mean[e];
    uint32_t bytes[2];
    convert<K>(values, factor, bytes);
    if (own.isIn(place.rows, unit))
      storeUnit<IsRotated>(own, place.to + own.row(unit) * place.toBytes, bytes);
  }
}

template <bool IsLast, class K> DEV void load(const PiecePlace<K> &place, Unit<K> (&units)[K::kUnits]) {
  if (K::kDimsDiffer && place.isOfValues)
    loadRows<K::kValueDim, IsLast>(place, units);
  else
    loadRows<K::kHeadDim, IsLast>(place, units);
}

template <class K>
DEV void store(const QuantizeParams &p, const PiecePlace<K> &place, const Unit<K> (&units)[K::kUnits], float factor) {
  const float *signs = signsOf(p, place);
  if (signs && place.mean)
    storeRows<K::kHeadDim, true, true>(place, signs, units, factor);
  else if (signs)
    storeRows<K::kHeadDim, false, true>(place, signs, units, factor);
  else if (place.mean)
    storeRows<K::kHeadDim, true, false>(place, signs, units, factor);
  else if (K::kDimsDiffer && place.isOfValues)
    storeRows<K::kValueDim, false, false>(place, signs, units, factor);
  else
    storeRows<K::kHeadDim, false, false>(place, signs, units, factor);
}

} // namespace heddle
