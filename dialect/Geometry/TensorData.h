// Owns the host's view of the integer tensors that masks read: counts are exact where they are given.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace heddle::attn {

/// By argument of the pattern, row-major; null, or no place at all: not given.
using TensorData = std::vector<std::shared_ptr<const std::vector<int64_t>>>;

inline bool holds(const TensorData *tensors, unsigned argument) {
  return tensors && argument < tensors->size() && (*tensors)[argument];
}

/// 0 of a tensor that is not given, and beyond its ends.
inline int64_t entryOf(const TensorData *tensors, unsigned argument, int64_t index) {
  if (!holds(tensors, argument) || index < 0 || index >= static_cast<int64_t>((*tensors)[argument]->size()))
    return 0;
  return (*(*tensors)[argument])[index];
}

/// The last of the first `count` entries that is not above `value`; 0 if there is none, or no tensor.
inline int64_t searchIn(const TensorData *tensors, unsigned argument, int64_t value, int64_t count) {
  if (!holds(tensors, argument))
    return 0;
  const std::vector<int64_t> &entries = *(*tensors)[argument];
  const auto end = entries.begin() + std::clamp<int64_t>(count, 0, static_cast<int64_t>(entries.size()));
  return std::max<int64_t>(0, std::upper_bound(entries.begin(), end, value) - entries.begin() - 1);
}

} // namespace heddle::attn
