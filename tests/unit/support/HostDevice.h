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
static inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
namespace heddle { namespace ptx {
static inline float exp2Approx(float x) { return std::exp2(x); }
static inline float reciprocalApprox(float x) { return 1.0f / x; }
} }
)";

} // namespace heddle::test

#endif
