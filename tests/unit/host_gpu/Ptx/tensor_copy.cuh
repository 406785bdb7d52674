// On the host: copies of boxes, which happen when their barrier is waited for.
#pragma once

#include "HostTensorMap.h"

namespace heddle {

// What the driver reserves lies before it (memory.cuh).
inline unsigned char sharedMemory[1];

struct alignas(64) TensorMap {
  uint64_t opaque[16];
};

namespace ptx {

inline void copyNow(uint32_t shared, const host_gpu::HostTensorMap &map, const int32_t (&first)[5]) {
  constexpr int kRank = host_gpu::HostTensorMap::kRank;
  int32_t at[kRank] = {};
  const uint32_t bytes = map.elementBytes;
  for (uint32_t to = shared; at[kRank - 1] < map.box[kRank - 1]; to += bytes) {
    bool exists = true;
    const unsigned char *from = map.base;
    for (int d = 0; d < kRank; ++d) {
      const int64_t index = int64_t(first[d]) + at[d];
      exists = exists && index >= 0 && index < map.dims[d];
      from += index * map.strideBytes[d];
    }
    const uint32_t place = map.swizzleBytes == 128 ? to ^ (to >> 7 & 7) << 4 : to;
    if (exists)
      std::memcpy(::sharedMemory + place, from, bytes);
    else
      std::memset(::sharedMemory + place, 0, bytes);
    if (map.isTf32) {
      float value;
      std::memcpy(&value, ::sharedMemory + place, bytes);
      const uint32_t rounded = roundTf32(value);
      std::memcpy(::sharedMemory + place, &rounded, bytes);
    }
    for (int d = 0; d < kRank && (++at[d] == map.box[d]) && d + 1 < kRank; ++d)
      at[d] = 0;
  }
}

inline void copyBox(uint32_t shared, const TensorMap *opaque, uint32_t barrier, int32_t x0, int32_t x1, int32_t x2,
                    int32_t x3, int32_t x4) {
  host_gpu::HostTensorMap map;
  std::memcpy(&map, opaque, sizeof map);
  host_gpu::barriers.at(barrier).copies.push_back([=] {
    copyNow(shared, map, {x0, x1, x2, x3, x4});
    host_gpu::Barrier &at = host_gpu::barriers.at(barrier);
    int64_t bytes = map.elementBytes;
    for (int32_t extent : map.box)
      bytes *= extent;
    at.bytes -= bytes;
    at.complete();
  });
}

inline void copyRow(uint32_t shared, const TensorMap *map, uint32_t barrier, int32_t row) {
  copyBox(shared, map, barrier, 0, row, 0, 0, 0);
}

} // namespace ptx
} // namespace heddle
