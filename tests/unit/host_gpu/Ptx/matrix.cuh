// On the host: matrices of a warp, by the tables of the PTX manual.
#pragma once

namespace heddle {
namespace ptx {

inline uint32_t sharedHalf(uint32_t address) {
  uint16_t half;
  std::memcpy(&half, ::sharedMemory + address, sizeof half);
  return half;
}

inline void loadMatrix4(uint32_t (&fragment)[4], uint32_t address, bool isTransposed) {
  host_gpu::Group &warp = host_gpu::warp();
  const uint32_t lane = host_gpu::lane();
  warp.words[lane][0] = address;
  host_gpu::waitForWarp();
  for (uint32_t matrix = 0; matrix < 4; ++matrix) {
    uint32_t halves[2];
    for (uint32_t e = 0; e < 2; ++e) {
      const uint32_t outer = lane / 4, inner = lane % 4 * 2 + e;
      const uint32_t row = isTransposed ? inner : outer, column = isTransposed ? outer : inner;
      halves[e] = sharedHalf(warp.words[matrix * 8 + row][0] + column * 2);
    }
    fragment[matrix] = halves[0] | halves[1] << 16;
  }
  host_gpu::waitForWarp();
}
inline void loadMatrix4(uint32_t (&fragment)[4], uint32_t address) { loadMatrix4(fragment, address, false); }
inline void loadMatrix4Transposed(uint32_t (&fragment)[4], uint32_t address) { loadMatrix4(fragment, address, true); }

template <class Element> void mma(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  auto &words = host_gpu::warp().words;
  const uint32_t lane = host_gpu::lane();
  for (uint32_t i = 0; i < 4; ++i)
    words[lane][i] = a[i];
  words[lane][4] = b0;
  words[lane][5] = b1;
  host_gpu::waitForWarp();
  for (uint32_t slot = 0; slot < 4; ++slot) {
    const uint32_t row = lane / 4 * 4, column = (lane % 4 * 2 + slot % 2) * 4;
    double total = sum[slot];
    for (uint32_t k = 0; k < 8; ++k) {
      float left[2], right[2];
      Element::unpack(words[row + k % 4][slot / 2 + k / 4 * 2], left[0], left[1]);
      Element::unpack(words[column + k % 4][4 + k / 4], right[0], right[1]);
      total += double(left[0]) * right[0] + double(left[1]) * right[1];
    }
    sum[slot] = float(total);
  }
  host_gpu::waitForWarp();
}

// Towards 0.
inline float cutToFloat(double value) {
  const float nearest = float(value);
  return std::abs(double(nearest)) > std::abs(value) ? std::nextafterf(nearest, 0.0f) : nearest;
}

inline void mmaTf32(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  auto &words = host_gpu::warp().words;
  const uint32_t lane = host_gpu::lane();
  for (uint32_t i = 0; i < 4; ++i)
    words[lane][i] = a[i];
  words[lane][4] = b0;
  words[lane][5] = b1;
  host_gpu::waitForWarp();
  for (uint32_t slot = 0; slot < 4; ++slot) {
    const uint32_t row = lane / 4 * 4, column = (lane % 4 * 2 + slot % 2) * 4;
    double total = sum[slot];
    for (uint32_t k = 0; k < 8; ++k)
      total += double(asTf32(words[row + k % 4][slot / 2 + k / 4 * 2])) * asTf32(words[column + k % 4][4 + k / 4]);
    sum[slot] = cutToFloat(total);
  }
  host_gpu::waitForWarp();
}

} // namespace ptx
} // namespace heddle
