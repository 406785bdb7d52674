// The time in which budgets and limits are counted.
#pragma once

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

} // namespace heddle::tuner
