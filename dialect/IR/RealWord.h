// Run-time numbers travel where run-time sizes do, as one 32-bit word each: an f32 as its bits, sign-extended like
// every i32 on its way through 64-bit integers.
#pragma once

#include <cstdint>
#include <cstring>

namespace heddle::attn {

inline int64_t wordOfReal(float value) {
  int32_t word;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

inline float realOfWord(int64_t word) {
  const int32_t bits = static_cast<int32_t>(word);
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

} // namespace heddle::attn
