// On the host: scalar instructions, and 16-bit floats rounded to nearest even.
#pragma once

namespace heddle {
namespace ptx {

inline float exp2Approx(float x) { return std::exp2(x); }
inline float log2Approx(float x) { return std::log2(x); }
inline float reciprocalApprox(float x) { return 1.0f / x; }
inline uint32_t rereadThreadIndex() { return host_gpu::threadIndex().x; }
inline int32_t rereadLane() { return rereadThreadIndex() % 32; }
inline int32_t rereadWarpgroupThread() { return rereadThreadIndex() % 128; }
inline int32_t rereadGridSize() { return int32_t(host_gpu::gridSize.x); }
inline int32_t rereadBlockIndex() { return int32_t(blockIdx.x); }
inline uint32_t lowestBits(uint32_t count) { return count < 32 ? (1u << count) - 1 : 0xffffffffu; }

inline uint32_t bf16Of(float value) {
  const uint32_t bits = __float_as_uint(value);
  return std::isnan(value) ? 0x7fffu : (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
}
inline uint32_t packBf16(float low, float high) { return bf16Of(low) | bf16Of(high) << 16; }

inline uint32_t fp16Of(float value) { return host_gpu::bitsAs<uint16_t>(_Float16(value)); }
inline uint32_t packFp16(float low, float high) { return fp16Of(low) | fp16Of(high) << 16; }
inline void unpackFp16(uint32_t pair, float &low, float &high) {
  low = host_gpu::bitsAs<_Float16>(uint16_t(pair));
  high = host_gpu::bitsAs<_Float16>(uint16_t(pair >> 16));
}

inline uint32_t packNotNegative(float low, float high) {
  const auto clamped = [](float value) { return std::isnan(value) ? 0x7fffu : value < 0 ? 0u : fp16Of(value); };
  return clamped(low) | clamped(high) << 16;
}
inline uint32_t largerHalves(uint32_t a, uint32_t b) {
  return std::max(a & 0xffff, b & 0xffff) | std::max(a >> 16, b >> 16) << 16;
}

template <uint32_t Places> uint32_t permuteBytes(uint32_t a, uint32_t b) {
  const uint64_t bytes = uint64_t(b) << 32 | a;
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i)
    word |= uint32_t(bytes >> 8 * (Places >> 4 * i & 7) & 0xff) << 8 * i;
  return word;
}

inline float e4m3Value(uint32_t byte) {
  const uint32_t magnitude = byte & 0x7f, exponent = magnitude >> 3, fraction = magnitude & 7;
  const float value = magnitude == 0x7f ? NAN
                      : exponent == 0   ? std::ldexp(float(fraction), -9)
                                        : std::ldexp(float(8 + fraction), int(exponent) - 10);
  return byte & 0x80 ? -value : value;
}
template <int Half> uint32_t halvesOfE4m3(uint32_t word) {
  const uint32_t pair = word >> 16 * Half;
  return packFp16(e4m3Value(pair & 0xff), e4m3Value(pair >> 8 & 0xff));
}

// To nearest even; beyond 448 it is that.
inline uint32_t byteOfE4m3(float value) {
  const uint32_t sign = std::signbit(value) ? 0x80 : 0;
  const float magnitude = std::abs(value);
  if (std::isnan(value) || magnitude >= 448)
    return sign | (std::isnan(value) ? 0x7f : 0x7e);
  const int exponent = magnitude == 0 ? -6 : std::max(std::ilogb(magnitude), -6);
  return sign | (uint32_t(exponent + 6) * 8 + uint32_t(std::nearbyint(std::ldexp(magnitude, 3 - exponent))));
}
inline uint32_t packE4m3(float a, float b, float c, float d) {
  return byteOfE4m3(a) | byteOfE4m3(b) << 8 | byteOfE4m3(c) << 16 | byteOfE4m3(d) << 24;
}

// Tensor cores see no more of a float.
inline float asTf32(uint32_t word) { return __uint_as_float(word & ~0x1fffu); }

inline uint32_t roundTf32(float value) {
  const uint32_t bits = __float_as_uint(value);
  return std::isfinite(value) ? (bits + 0x1000u) & ~0x1fffu : bits;
}

inline float smallerOf(float a, float b) { return std::isnan(a) || a < b ? a : b; }
template <class Unpack, class Pack>
uint32_t smallerOfWords(uint32_t a, uint32_t b, const Unpack &unpack, const Pack &pack) {
  float lows[2], highs[2];
  unpack(a, lows[0], highs[0]), unpack(b, lows[1], highs[1]);
  return pack(smallerOf(lows[0], lows[1]), smallerOf(highs[0], highs[1]));
}
inline uint32_t smallerBf16(uint32_t a, uint32_t b) {
  const auto unpack = [](uint32_t pair, float &low, float &high) {
    low = __uint_as_float(pair << 16), high = __uint_as_float(pair & 0xffff0000u);
  };
  return smallerOfWords(a, b, unpack, packBf16);
}
inline uint32_t smallerFp16(uint32_t a, uint32_t b) { return smallerOfWords(a, b, unpackFp16, packFp16); }

} // namespace ptx
} // namespace heddle
