//===- PointIndex.h - where a point stands in a long list ----------------------===//
// Finds points in a list of hundreds of thousands without a tree of copies.
#pragma once

#include "tuner/Space/SearchSpace.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace heddle::tuner {

// The list must outlive the index and stay as it is; it holds no point twice.
class PointIndex {
public:
  explicit PointIndex(const std::vector<Point> &points) : points(points) {
    size_t slots = 16;
    while (slots < 2 * points.size())
      slots *= 2;
    table.assign(slots, kNone);
    for (uint32_t i = 0; i < points.size(); ++i) {
      size_t slot = hash(points[i]);
      while (table[slot] != kNone)
        slot = (slot + 1) % slots;
      table[slot] = i;
    }
  }

  std::optional<uint32_t> find(const Point &point) const {
    for (size_t slot = hash(point); table[slot] != kNone; slot = (slot + 1) % table.size())
      if (points[table[slot]] == point)
        return table[slot];
    return std::nullopt;
  }

private:
  static constexpr uint32_t kNone = UINT32_MAX;

  size_t hash(const Point &point) const {
    uint64_t value = 0x9e3779b97f4a7c15u;
    for (uint32_t index : point.index)
      value = (value ^ index) * 0x100000001b3u;
    return size_t((value ^ (value >> 29)) % table.size());
  }

  const std::vector<Point> &points;
  std::vector<uint32_t> table;
};

} // namespace heddle::tuner
