//===- HostTensorMap.h - what a tensor map says, on the host ----------------===//
// In the place of the driver's 128 bytes, for whoever fills parameter blocks and for the copies of host_gpu.
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace host_gpu {

struct HostTensorMap {
  static constexpr int kRank = 5;
  const unsigned char *base;
  int64_t strideBytes[kRank]; // of dimensions; those that are missing have one element
  int32_t dims[kRank], box[kRank];
  int32_t elementBytes, swizzleBytes;
  int32_t isTf32; // floats are rounded to 11 bits, ties away from 0
};
static_assert(sizeof(HostTensorMap) <= 128, "fits the place of a tensor map");

} // namespace host_gpu
