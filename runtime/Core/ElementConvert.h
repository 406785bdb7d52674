// Owns the conversions between elements in memory and numbers. To 16 and 8 bits rounds to nearest, ties to even; overflow
// gives infinity, or the largest number where there is none (e4m3); a NaN stays a NaN. Back is exact. Addresses need no
// alignment.
#pragma once

#include "runtime/Core/DType.h"
#include <cstdint>
#include <cstring>

namespace heddle {

inline uint32_t floatBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float floatFromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline float bf16ToFloat(uint16_t half) { return floatFromBits(uint32_t(half) << 16); }

inline uint16_t floatToBf16(float value) {
  uint32_t bits = floatBits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return uint16_t((bits >> 16) | 0x40u);
  return uint16_t((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// The multiplication moves the exponent and also normalises subnormal halves; it is exact.
inline float fp16ToFloat(uint16_t half) {
  uint32_t magnitude = uint32_t(half & 0x7fffu) << 13;
  uint32_t bits = floatBits(floatFromBits(magnitude) * 0x1p112f);
  bits |= magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
  return floatFromBits(bits | uint32_t(half & 0x8000u) << 16);
}

inline uint16_t floatToFp16(float value) {
  uint32_t bits = floatBits(value);
  uint16_t sign = uint16_t((bits >> 16) & 0x8000u);
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) // 65520, halfway to the first number that does not fit
    return sign | 0x7c00u;
  if (magnitude < 0x38800000u) { // below 2^-14: the sum has a unit of 2^-24 in its last place
    float aligned = floatFromBits(magnitude) + 0.5f;
    return sign | uint16_t(floatBits(aligned) - floatBits(0.5f));
  }
  uint32_t rebased = magnitude - (112u << 23);
  return sign | uint16_t((rebased + 0xfffu + ((rebased >> 13) & 1u)) >> 13);
}

// e4m3: exponent and fraction in their places are the value times 2^-120, also of a subnormal; all seven bits are a NaN.
inline float e4m3ToFloat(uint8_t byte) {
  const uint32_t magnitude = byte & 0x7fu;
  const uint32_t bits = magnitude == 0x7fu ? 0x7fc00000u : floatBits(floatFromBits(magnitude << 20) * 0x1p120f);
  return floatFromBits(bits | uint32_t(byte & 0x80u) << 24);
}

inline uint8_t floatToE4m3(float value) {
  const uint32_t bits = floatBits(value), magnitude = bits & 0x7fffffffu;
  const uint8_t sign = uint8_t((bits >> 24) & 0x80u);
  if (magnitude > 0x7f800000u)
    return sign | 0x7fu;
  if (magnitude >= 0x43e00000u) // 448
    return sign | 0x7eu;
  if (magnitude < 0x3c800000u) { // below 2^-6: the sum has a unit of 2^-9 in its last place
    const float aligned = floatFromBits(magnitude) + 0x1p14f;
    return sign | uint8_t(floatBits(aligned) - floatBits(0x1p14f));
  }
  const uint32_t rebased = magnitude - (120u << 23);
  return sign | uint8_t((rebased + 0x7ffffu + ((rebased >> 20) & 1u)) >> 20);
}

// The bits of an element, and the number that they stand for.
struct Bf16Codec {
  using Bits = uint16_t;
  static float load(Bits bits) { return bf16ToFloat(bits); }
  static Bits store(float value) { return floatToBf16(value); }
};
struct Fp16Codec {
  using Bits = uint16_t;
  static float load(Bits bits) { return fp16ToFloat(bits); }
  static Bits store(float value) { return floatToFp16(value); }
};
struct E4m3Codec {
  using Bits = uint8_t;
  static float load(Bits bits) { return e4m3ToFloat(bits); }
  static Bits store(float value) { return floatToE4m3(value); }
};
template <class Number> struct PlainCodec {
  using Bits = Number;
  static Number load(Bits bits) { return bits; }
  template <class Value> static Bits store(Value value) { return static_cast<Number>(value); }
};

// function(codec of dtype).
template <class Function> auto withCodec(DType dtype, Function function) {
  switch (dtype) {
  case DType::bf16:
    return function(Bf16Codec());
  case DType::fp16:
    return function(Fp16Codec());
  case DType::fp32:
    return function(PlainCodec<float>());
  case DType::e4m3:
    return function(E4m3Codec());
  case DType::i32:
    return function(PlainCodec<int32_t>());
  case DType::i64:
    return function(PlainCodec<int64_t>());
  }
  __builtin_unreachable();
}

template <class Codec, class Number> void loadWith(Codec, const char *at, int64_t count, Number *__restrict values) {
  for (int64_t i = 0; i < count; ++i) {
    typename Codec::Bits bits;
    std::memcpy(&bits, at + i * int64_t(sizeof bits), sizeof bits);
    values[i] = static_cast<Number>(Codec::load(bits));
  }
}

template <class Codec, class Number> void storeWith(Codec, const Number *__restrict values, int64_t count, char *at) {
  for (int64_t i = 0; i < count; ++i) {
    const typename Codec::Bits bits = Codec::store(values[i]);
    std::memcpy(at + i * int64_t(sizeof bits), &bits, sizeof bits);
  }
}

// Elements of `dtype` from number `first` on, where element 0 lies at `data`, as floats, doubles or integers.
template <class Number> void loadElements(DType dtype, const void *data, int64_t first, int64_t count, Number *values) {
  const char *at = static_cast<const char *>(data) + first * dtypeBytes(dtype);
  withCodec(dtype, [=](auto codec) { loadWith(codec, at, count, values); });
}

// Rounds once where Number is float.
template <class Number>
void storeElements(DType dtype, const Number *values, int64_t count, void *data, int64_t first) {
  char *at = static_cast<char *>(data) + first * dtypeBytes(dtype);
  withCodec(dtype, [=](auto codec) { storeWith(codec, values, count, at); });
}

template <class Number = float> Number loadElement(DType dtype, const void *data, int64_t index) {
  Number value;
  loadElements(dtype, data, index, 1, &value);
  return value;
}

// What is left of a number that is stored as `dtype`.
inline float roundedTo(DType dtype, float value) {
  return withCodec(dtype, [=](auto codec) { return static_cast<float>(codec.load(codec.store(value))); });
}

} // namespace heddle
