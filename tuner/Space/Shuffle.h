// std::shuffle and the standard distributions differ between libraries; trials must not.
#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace heddle::tuner {

// Permutes values[first..] uniformly, up to the bias of 2^64 modulo the length.
template <class T> void shuffleFrom(std::vector<T> &values, size_t first, std::mt19937_64 &random) {
  for (size_t i = values.size(); i > first + 1; --i)
    std::swap(values[i - 1], values[first + size_t(random() % uint64_t(i - first))]);
}

} // namespace heddle::tuner
