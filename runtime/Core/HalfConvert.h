//===- HalfConvert.h - bf16 and fp16 as bits --------------------------------===//
// Owns the conversions between fp32 and the 16-bit types on the host. To 16 bits rounds to nearest,
// ties to even; overflow gives infinity; a NaN stays a NaN. From 16 bits is exact.
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

// `count` contiguous elements of `dtype`, starting `offset` elements behind `data`.
inline void loadFloats(DType dtype, const void *data, int64_t offset, int count, float *__restrict values) {
  if (dtype == DType::fp32) {
    std::memcpy(values, static_cast<const float *>(data) + offset, count * sizeof(float));
    return;
  }
  const uint16_t *halves = static_cast<const uint16_t *>(data) + offset;
  if (dtype == DType::bf16)
    for (int i = 0; i < count; ++i)
      values[i] = bf16ToFloat(halves[i]);
  else
    for (int i = 0; i < count; ++i)
      values[i] = fp16ToFloat(halves[i]);
}

inline void storeFloats(DType dtype, const float *__restrict values, int count, void *data, int64_t offset) {
  if (dtype == DType::fp32) {
    std::memcpy(static_cast<float *>(data) + offset, values, count * sizeof(float));
    return;
  }
  uint16_t *halves = static_cast<uint16_t *>(data) + offset;
  for (int i = 0; i < count; ++i)
    halves[i] = dtype == DType::bf16 ? floatToBf16(values[i]) : floatToFp16(values[i]);
}

} // namespace heddle
