// Units of kUnitElements elements in registers: their largest magnitude, and the e4m3 numbers that they become. Traits:
// Element, kConvertsE4m3.
#pragma once

#include "Ptx/scalar.cuh"
#include "Ptx/streams.cuh"
#include "Quantize/quantize_layout.cuh"
#include "Shared/elements.cuh"

namespace heddle {

template <class Traits> struct QuantizeUnits : ElementNumbers<Traits> {
  static constexpr int kUnitPieces = quantize::kUnitElements / QuantizeUnits::kPieceElements; // loads of 16 bytes
  static constexpr int kUnitWords = kUnitPieces * kPieceBytes / 4;
  static constexpr int kWordElements = 4 / Traits::kElementBytes;
};
constexpr uint32_t kInfinity = 0x7f800000;

template <class K> using Unit = uint32_t[K::kUnitWords];

// Magnitudes of the elements of a word as such a word, the larger of two of them, and a word's elements.
template <class E> struct WordOf;
template <> struct WordOf<Bf16> {
  DEV static uint32_t magnitudes(uint32_t word) { return word & 0x7fff7fffu; }
  DEV static uint32_t larger(uint32_t a, uint32_t b) { return ptx::largerBf16(a, b); }
  DEV static void unpack(uint32_t word, float (&values)[2]) { Bf16::unpack(word, values[0], values[1]); }
};
template <> struct WordOf<Fp16> {
  DEV static uint32_t magnitudes(uint32_t word) { return word & 0x7fff7fffu; }
  DEV static uint32_t larger(uint32_t a, uint32_t b) { return ptx::largerFp16(a, b); }
  DEV static void unpack(uint32_t word, float (&values)[2]) { Fp16::unpack(word, values[0], values[1]); }
};
template <> struct WordOf<Fp32> {
  DEV static uint32_t magnitudes(uint32_t word) { return word & 0x7fffffffu; }
  DEV static uint32_t larger(uint32_t a,
                             uint32_t b) { // bits of magnitudes ascend with them; those of NaN are above all
    return a > kInfinity ? b : b > kInfinity ? a : max(a, b);
  }
  DEV static void unpack(uint32_t word, float (&values)[1]) { values[0] = __uint_as_float(word); }
};
template <class K> DEV float magnitudeOf(uint32_t word) {
  float values[K::kWordElements], largest = 0;
  WordOf<typename K::Element>::unpack(word, values);
#pragma unroll
  for (int e = 0; e < K::kWordElements; ++e)
    largest = fmaxf(largest, values[e]);
  return largest;
}

// Of what is finite. Rare: infinity is among the units.
template <class K, int Units> DEV float largestFinite(const Unit<K> (&units)[Units]) {
  float largest = 0;
#pragma unroll
  for (int unit = 0; unit < Units; ++unit)
#pragma unroll
    for (int word = 0; word < K::kUnitWords; ++word) {
      float values[K::kWordElements];
      WordOf<typename K::Element>::unpack(units[unit][word], values);
#pragma unroll
      for (int e = 0; e < K::kWordElements; ++e)
        largest = fabsf(values[e]) < INFINITY ? fmaxf(largest, fabsf(values[e])) : largest;
    }
  return largest;
}

template <class K, int Units> DEV float largestOf(const Unit<K> (&units)[Units]) {
  uint32_t largest = 0;
#pragma unroll
  for (int unit = 0; unit < Units; ++unit)
#pragma unroll
    for (int word = 0; word < K::kUnitWords; ++word)
      largest =
          WordOf<typename K::Element>::larger(largest, WordOf<typename K::Element>::magnitudes(units[unit][word]));
  const float magnitude = magnitudeOf<K>(largest);
  return magnitude < INFINITY ? magnitude : largestFinite<K>(units);
}

// To nearest even; beyond 448 it is that, NaN is NaN. Where no instruction does it: as floatToE4m3 of
// runtime/Core/ElementConvert.h.
DEV uint32_t e4m3Of(float value) {
  const uint32_t bits = __float_as_uint(value), magnitude = bits & 0x7fffffffu;
  const uint32_t rebased = magnitude - (120u << 23);
  const float aligned = __uint_as_float(magnitude) + 16384.0f; // 2^14: a unit of 2^-9 in its last place
  uint32_t byte = magnitude < 0x3c800000u ? __float_as_uint(aligned) - 0x46800000u
                                          : (rebased + 0x7ffffu + (rebased >> 20 & 1u)) >> 20;
  byte = magnitude >= 0x43e00000u ? 0x7eu : byte;
  byte = magnitude > kInfinity ? 0x7fu : byte;
  return byte | (bits >> 24 & 0x80u);
}

template <class K> DEV uint32_t packE4m3(float a, float b, float c, float d) {
  if constexpr (K::kConvertsE4m3)
    return ptx::packE4m3(a, b, c, d);
  else
    return e4m3Of(a) | e4m3Of(b) << 8 | e4m3Of(c) << 16 | e4m3Of(d) << 24;
}

// Infinity, too, becomes NaN, as it would be in what is computed of it: 0 * x is 0, with the sign of x, or NaN.
DEV float scaled(float value, float factor) { return fmaf(value, 0.0f, value * factor); }

using UnitValues = float[quantize::kUnitElements];

template <class K> DEV void valuesOf(const Unit<K> &unit, UnitValues &values) {
#pragma unroll
  for (int word = 0; word < K::kUnitWords; ++word) {
    float own[K::kWordElements];
    WordOf<typename K::Element>::unpack(unit[word], own);
#pragma unroll
    for (int e = 0; e < K::kWordElements; ++e)
      values[word * K::kWordElements + e] = own[e];
  }
}

template <class K> DEV void convert(UnitValues &values, float factor, uint32_t (&bytes)[2]) {
#pragma unroll
  for (int i = 0; i < quantize::kUnitElements; ++i)
    values[i] = scaled(values[i], factor);
#pragma unroll
  for (int i = 0; i < 2; ++i)
    bytes[i] = packE4m3<K>(values[4 * i], values[4 * i + 1], values[4 * i + 2], values[4 * i + 3]);
}

} // namespace heddle
