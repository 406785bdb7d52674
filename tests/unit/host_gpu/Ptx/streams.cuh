// On the host: loads and stores of what passes once, and words of which blocks tell each other.
#pragma once

#include "Ptx/memory.cuh"
#include "Ptx/scalar.cuh"

namespace heddle {
namespace ptx {

template <bool> void loadPassing16(const void *global, uint32_t (&words)[4]) { std::memcpy(words, global, 16); }
template <bool> void storePassing8(void *global, uint32_t a, uint32_t b) {
  const uint32_t words[] = {a, b};
  std::memcpy(global, words, 8);
}
template <bool> void storePassing4(void *global, uint32_t word) { std::memcpy(global, &word, 4); }
inline uint32_t loadCoherent4(const uint32_t *word) { return *word ? *word : loadAcquire4(word); }
inline void raiseGlobal(uint32_t *word, uint32_t value) { *word = value > *word ? value : *word; }
template <int> void sleep() { host_gpu::letOthersRun(); }
inline void orRelease(uint32_t *word, uint32_t bits) { *word |= bits; }
inline void addRelease(uint32_t *counter, uint32_t value) { *counter += value; }
inline uint32_t addAcquireRelease(uint32_t *counter, uint32_t value) {
  const uint32_t before = *counter;
  *counter += value;
  return before;
}
inline void addGlobal8(uint64_t *sum, int64_t value) { *sum += uint64_t(value); }

inline float largerOf(float a, float b) { return std::isnan(a) || a < b ? b : a; }
inline uint32_t largerBf16(uint32_t a, uint32_t b) {
  const float low = largerOf(__uint_as_float(a << 16), __uint_as_float(b << 16));
  const float high = largerOf(__uint_as_float(a & 0xffff0000u), __uint_as_float(b & 0xffff0000u));
  return packBf16(low, high);
}
inline uint32_t largerFp16(uint32_t a, uint32_t b) {
  float lows[2], highs[2];
  unpackFp16(a, lows[0], highs[0]), unpackFp16(b, lows[1], highs[1]);
  return packFp16(largerOf(lows[0], lows[1]), largerOf(highs[0], highs[1]));
}

} // namespace ptx
} // namespace heddle
