// How shared memory of a block is laid out as structs: barriers of rings, and regions that must not overlap. Read alike
// by NVRTC and by the host's compiler.
#pragma once

#include "Shared/integers.cuh"

namespace heddle {

// The offset of a member in bytes: NVRTC has neither offsetof nor the builtin of other compilers.
#ifdef __CUDACC_RTC__
#define HEDDLE_OFFSET(Record, member) static_cast<uint32_t>(__INTADDR__(&static_cast<Record *>(nullptr)->member))
#else
#define HEDDLE_OFFSET(Record, member) static_cast<uint32_t>(__builtin_offsetof(Record, member))
#endif

using Barrier = uint64_t;

// A slot is full once its data has arrived and empty once nobody reads it any more.
template <int Slots> struct RingBarriers {
  Barrier full[Slots], empty[Slots];
};

// Bytes [first, first + bytes) of shared memory.
struct SharedRegion {
  int first, bytes;
};

// No two regions share a byte, and none reaches beyond the end.
template <int Count> constexpr bool areApart(const SharedRegion (&regions)[Count], int end) {
  for (int a = 0; a < Count; ++a) {
    if (regions[a].first < 0 || regions[a].first + regions[a].bytes > end)
      return false;
    for (int b = 0; b < a; ++b)
      if (regions[a].first < regions[b].first + regions[b].bytes &&
          regions[b].first < regions[a].first + regions[a].bytes)
        return false;
  }
  return true;
}

} // namespace heddle
