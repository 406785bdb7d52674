//===- ManualClock.h - simulated time ------------------------------------------===//
#pragma once

#include "tuner/Measure/Clock.h"

#include <atomic>
#include <cmath>
#include <cstdint>

namespace heddle::tuner {

// A clock that only moves when told to: simulated time of recorded tables. Thread-safe.
class ManualClock : public Clock {
public:
  double now() const override { return double(microseconds.load()) * 1e-6; }
  // Moves forward by whole microseconds, rounded to nearest; negative times do not move it.
  void advance(double seconds) { wait(seconds); }
  void wait(double seconds) const override {
    if (seconds > 0)
      microseconds += int64_t(std::llround(seconds * 1e6));
  }

private:
  mutable std::atomic<int64_t> microseconds{0};
};

} // namespace heddle::tuner
