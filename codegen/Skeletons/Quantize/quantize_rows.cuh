// Rows of a piece between memory and registers. Traits: kWarps, kUnits, kHeadDim, kValueDim, kEvictFirst,
// kRotates.
#pragma once

#include "Ptx/memory.cuh"
#include "Ptx/streams.cuh"
#include "Quantize/quantize_params.cuh"
#include "Quantize/quantize_pieces.cuh"
#include "Quantize/quantize_rotation.cuh"
#include "Quantize/quantize_turned.cuh"
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

// What is subtracted from the columns of a unit: nothing, or means that another block has written, `step` apart.
DEV void loadMeans(const float *mean, int32_t step, UnitValues &values) {
#pragma unroll
  for (int i = 0; i < quantize::kUnitElements / 4; ++i) {
    float own[4];
    ptx::loadGlobal16(mean + step * i, own);
#pragma unroll
    for (int e = 0; e < 4; ++e)
      values[4 * i + e] = own[e];
  }
}

template <int Dim, bool IsSmoothed, class K>
DEV void storeRows(const PiecePlace<K> &place, const Unit<K> (&units)[K::kUnits], float factor) {
  const UnitPlace<K, Dim> own;
  UnitValues mean;
  if constexpr (IsSmoothed)
    loadMeans(place.mean + own.column, 4, mean);
#pragma unroll
  for (int unit = 0; unit < K::kUnits; ++unit) {
    UnitValues values;
    valuesOf<K>(units[unit], values);
    if constexpr (IsSmoothed)
#pragma unroll
      for (int e = 0; e < quantize::kUnitElements; ++e)
        values[e] -= mean[e];
    uint32_t bytes[2];
    convert<K>(values, factor, bytes);
    if (own.isIn(place.rows, unit))
      ptx::storePassing8<K::kEvictFirst != 0>(place.to + own.row(unit) * place.toBytes + own.column, bytes[0],
                                              bytes[1]);
  }
}

// Smoothed or not.
template <class K>
DEV void storeRotated(const PiecePlace<K> &place, const float *signs, const Unit<K> (&units)[K::kUnits], float factor) {
  const UnitPlace<K, K::kHeadDim> own;
  constexpr int32_t kStep = Rotation<K>::kTogether / 2; // from four columns to the other four
  const int32_t first = own.template columnOf<true>(0);
  UnitValues ownSigns, shift = {};
  loadSigns(own, signs, ownSigns);
  if (place.mean)
    loadMeans(place.mean + first, kStep, shift);
#pragma unroll
  for (int e = 0; e < quantize::kUnitElements; ++e)
    shift[e] = 0.0f - shift[e];
#pragma unroll
  for (int unit = 0; unit < K::kUnits; ++unit) {
    UnitValues values;
    valuesOf<K>(units[unit], values);
    rotate<K>(ownSigns, shift, values);
    uint32_t bytes[2];
    convert<K>(values, factor, bytes);
    char *const to = place.to + own.row(unit) * place.toBytes + first;
    if (own.isIn(place.rows, unit)) {
      ptx::storePassing4<K::kEvictFirst != 0>(to, bytes[0]);
      ptx::storePassing4<K::kEvictFirst != 0>(to + kStep, bytes[1]);
    }
  }
}

template <bool IsLast, class K> DEV void load(const PiecePlace<K> &place, Unit<K> (&units)[K::kUnits]) {
  if (K::kDimsDiffer && place.isOfValues)
    loadRows<K::kValueDim, IsLast>(place, units);
  else
    loadRows<K::kHeadDim, IsLast>(place, units);
}

template <class K>
DEV void store(const QuantizeParams<K> &p, const PiecePlace<K> &place, const Unit<K> (&units)[K::kUnits],
               float factor) {
  if constexpr (K::kKeyMajorValues > 0)
    if (place.isOfValues)
      return storeTurned(place, units, factor);
  if constexpr (K::kRotates) {
    if (place.isOfValues)
      storeRows<K::kValueDim, false>(place, units, factor);
    else
      storeRotated(place, p.rotation, units, factor);
  } else if (place.mean)
    storeRows<K::kHeadDim, true>(place, units, factor);
  else if (K::kDimsDiffer && place.isOfValues)
    storeRows<K::kValueDim, false>(place, units, factor);
  else
    storeRows<K::kHeadDim, false>(place, units, factor);
}

} // namespace heddle
