//===- FixedOrder.h - points in an order that trials do not change ----------===//
#pragma once

#include "tuner/Strategies/Strategy.h"

namespace heddle::tuner {

// Proposes each point once, from the first to the last.
class FixedOrder : public Strategy {
public:
  explicit FixedOrder(std::vector<Point> points) : points(std::move(points)) {}

  std::optional<Point> propose() override {
    if (next == points.size())
      return std::nullopt;
    return points[next++];
  }

  void observe(const PointTrial &) override {}

private:
  const std::vector<Point> points;
  size_t next = 0;
};

} // namespace heddle::tuner
