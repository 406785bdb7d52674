//===- HostDevice.h - emitted device text for the host compiler -------------===//
// What comes before emitted CUDA C++ text when the host compiles it: the device keywords are defined away, and what
// CUDA C++ and the instruction wrappers offer is spelled out.
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_HOSTDEVICE_H
#define HEDDLE_TESTS_UNIT_SUPPORT_HOSTDEVICE_H

namespace heddle::test {

inline constexpr const char *kHostDevice = R"(
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stddef.h>
#define __device__
#define __forceinline__ inline
static inline float __int_as_float(int32_t bits) { float value; std::memcpy(&value, &bits, 4); return value; }
static inline int32_t __float_as_int(float value) { int32_t bits; std::memcpy(&bits, &value, 4); return bits; }
static inline int __clz(int value) { return value == 0 ? 32 : __builtin_clz(value); }
struct KernelTraits;
static inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
namespace heddle { namespace ptx {
static inline float exp2Approx(float x) { return std::exp2(x); }
static inline float reciprocalApprox(float x) { return 1.0f / x; }
} }
)";

// Instead of Ptx/scalar.cuh, with what stands above.
inline constexpr const char *kHostScalar = R"(#pragma once
namespace heddle {
namespace ptx {
inline uint32_t lowestBits(uint32_t count) { return count < 32 ? (1u << count) - 1 : 0xffffffffu; }
}
}
)";

// Instead of Ptx/warp.cuh: a warp of one lane.
inline constexpr const char *kHostWarp = R"(#pragma once
#include <algorithm>
#ifndef DEV
#define DEV inline
#endif
using std::max;
using std::min;
namespace heddle {
namespace ptx {
constexpr int32_t kWarpLanes = 1;
inline int32_t laneOfWarp() { return 0; }
inline int32_t smallestOfWarp(int32_t value) { return value; }
inline int32_t valueOfLane(int32_t value, int32_t) { return value; }
inline uint32_t lanesWhere(bool condition) { return condition; }
inline int32_t lowestBitOf(uint32_t word) { return __builtin_ffs(word) - 1; }
inline void syncWarp() {}
template <class> struct CellMemory {
  static constexpr bool kExists = true;
};
inline int32_t *cellMemory() { static int32_t words[4 * (kWarpLanes + 8)]; return words; }
template <class> int32_t loadCellWord(int32_t number) { return cellMemory()[number]; }
template <class> void storeCellWord(int32_t number, int32_t word) { cellMemory()[number] = word; }
template <class> void orCellWord(int32_t number, uint32_t bits) { cellMemory()[number] |= bits; }
} // namespace ptx
inline int32_t largest_of_warp(int32_t value) { return value; }
inline int32_t lane_of_warp() { return 0; }
inline int32_t lanes_of_warp() { return 1; }
} // namespace heddle
)";

} // namespace heddle::test

#endif
