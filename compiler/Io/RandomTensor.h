// Owns the random numbers of demos, tests and verification. They are a pure function of (seed,
// tensor name, element number), made with integer arithmetic only, so that every platform and every
// number of threads gives the same bytes. Changing the function changes published numbers: don't.
//
//   mix(x)          = SplitMix64's finaliser: x ^= x>>30; x *= 0xbf58476d1ce4e5b9; x ^= x>>27;
//                     x *= 0x94d049bb133111eb; x ^= x>>31           (all modulo 2^64)
//   base            = mix(seed + 0x9e3779b97f4a7c15 * (fnv1a64(name) | 1))
//   word(i)         = mix(base + 0x9e3779b97f4a7c15 * (i + 1))
//   normal(element) = (sum of the twelve 16-bit fields of word(3e), word(3e+1), word(3e+2)
//                      - 6 * 65535) / 65536
//
// The sum of twelve uniforms has mean 0, variance 1 - 2^-32 and lies in (-6, 6); its distribution
// function is within 0.0025 of the normal one. The value is exact in fp32 and is then rounded once.
#pragma once

#include "compiler/Io/HostTensor.h"
#include <functional>
#include <string_view>

namespace heddle {

// One random stream: the elements of the tensor `name` under `seed`. Immutable, thread-safe.
class RandomStream {
public:
  RandomStream(uint64_t seed, std::string_view name);
  // `base`, for those who make the numbers elsewhere.
  uint64_t start() const { return base; }
  // 64 uniform bits for counter i.
  uint64_t word(uint64_t i) const;
  // Standard normal value of element `element`; uses words 3 * element to 3 * element + 2.
  float normal(uint64_t element) const;
  // values[i] = normal(first + i) for i < count.
  void normals(uint64_t first, int count, float *values) const;

private:
  uint64_t base;
};

// Every element standard normal, rounded to `dtype`. Growing the first dimension keeps the
// elements that were there. `progress` is told how far it is, from 0 to 1, by the caller's thread.
HostTensor randomNormalTensor(DType dtype, std::vector<int64_t> shape, uint64_t seed, std::string_view name,
                              const std::function<void(double share)> &progress = {});

// In fp32, -1 where the highest bit of word(element) is set, else 1.
HostTensor randomSigns(std::vector<int64_t> shape, uint64_t seed, std::string_view name);

} // namespace heddle
