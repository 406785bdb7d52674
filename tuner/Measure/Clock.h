//===- Clock.h - the time that budgets and limits are counted in ------------===//
#pragma once

#include <atomic>
#include <cstdint>

namespace heddle::tuner {

// Seconds since some fixed moment, never going back. now() may be called from any thread.
class Clock {
public:
  virtual ~Clock() = default;
  virtual double now() const = 0;
  // Returns when so much time has passed. Any thread; 0 and less: at once.
  virtual void wait(double seconds) const = 0;
};

// The steady clock of the machine.
class SteadyClock : public Clock {
public:
  double now() const override;
  void wait(double seconds) const override;
};

// A clock that only moves when told to: simulated time of recorded tables. Thread-safe.
class ManualClock : public Clock {
public:
  double now() const override { return double(microseconds.load()) * 1e-6; }
  // Moves forward by whole microseconds, rounded to nearest; negative times do not move it.
  void advance(double seconds) { wait(seconds); }
  void wait(double seconds) const override;

private:
  mutable std::atomic<int64_t> microseconds{0};
};

} // namespace heddle::tuner
