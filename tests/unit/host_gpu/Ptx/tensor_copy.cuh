// On the host: copies of boxes.
#pragma once

#include "HostTensorMap.h"

namespace heddle {

// What the driver reserves lies before it (memory.cuh).
inline unsigned char sharedMemory[1];

struct alignas(64) TensorMap {
  uint64_t opaque[16];
};

namespace ptx {

// The elements of a box, one behind the other, 0 for those that there are not.
inline std::vector<unsigned char> elementsOf(const host_gpu::HostTensorMap &map, const int32_t (&first)[5]) {
  constexpr int kRank = host_gpu::HostTensorMap::kRank;
  int32_t at[kRank] = {};
  const uint32_t bytes = map.elementBytes;
  size_t count = bytes;
  for (int32_t extent : map.box)
    count *= size_t(extent);
  std::vector<unsigned char> elements(count);
  for (unsigned char *element = elements.data(); at[kRank - 1] < map.box[kRank - 1]; element += bytes) {
    bool exists = true;
    const unsigned char *from = map.base;
    for (int d = 0; d < kRank; ++d) {
      const int64_t index = int64_t(first[d]) + at[d];
      exists = exists && index >= 0 && index < map.dims[d];
      from += index * map.strideBytes[d];
    }
    if (exists)
      std::memcpy(element, from, bytes);
    if (map.isTf32) {
      float value;
      std::memcpy(&value, element, bytes);
      const uint32_t rounded = roundTf32(value);
      std::memcpy(element, &rounded, bytes);
    }
    for (int d = 0; d < kRank && (++at[d] == map.box[d]) && d + 1 < kRank; ++d)
      at[d] = 0;
  }
  return elements;
}

// Read at once, as a GPU may, and there when their barrier is waited for, as it may be, too.
inline void copyBox(uint32_t shared, const TensorMap *opaque, uint32_t barrier, int32_t x0, int32_t x1, int32_t x2,
                    int32_t x3, int32_t x4) {
  host_gpu::HostTensorMap map;
  std::memcpy(&map, opaque, sizeof map);
  host_gpu::barriers.at(barrier).copies.push_back([=, elements = elementsOf(map, {x0, x1, x2, x3, x4})] {
    for (uint32_t i = 0; i < elements.size(); i += map.elementBytes) {
      const uint32_t to = shared + i, place = map.swizzleBytes == 128 ? to ^ (to >> 7 & 7) << 4 : to;
      std::memcpy(::sharedMemory + place, &elements[i], map.elementBytes);
    }
    host_gpu::Barrier &at = host_gpu::barriers.at(barrier);
    at.bytes -= int64_t(elements.size());
    at.complete();
  });
}

inline void copyRow(uint32_t shared, const TensorMap *map, uint32_t barrier, int32_t row) {
  copyBox(shared, map, barrier, 0, row, 0, 0, 0);
}

} // namespace ptx
} // namespace heddle
