// On the host: additions to memory, and matrices on their way into shared memory.
#pragma once

namespace heddle {
namespace ptx {

inline void addGlobal16(float *to, bool isPresent, float a, float b, float c, float d) {
  const float values[] = {a, b, c, d};
  for (int i = 0; i < 4 && isPresent; ++i)
    to[i] += values[i];
}

inline void fenceShared() {}
inline void fenceGlobalCopies() {}

inline void storeMatrix4(uint32_t address, const uint32_t (&fragment)[4]) {
  host_gpu::Group &warp = host_gpu::warp();
  const uint32_t lane = host_gpu::lane();
  warp.words[lane][0] = address;
  host_gpu::waitForWarp();
  for (uint32_t matrix = 0; matrix < 4; ++matrix)
    std::memcpy(::sharedMemory + warp.words[matrix * 8 + lane / 4][0] + lane % 4 * 4, &fragment[matrix], 4);
  host_gpu::waitForWarp();
}

inline void storeShared16(uint32_t address, float a, float b, float c, float d) {
  const float values[] = {a, b, c, d};
  std::memcpy(::sharedMemory + address, values, 16);
}

} // namespace ptx
} // namespace heddle
