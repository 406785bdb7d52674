// Owns the threads that prepare points while another thread measures. At most `workers` preparations
// run at a time, but one that passes its time limit is given up: it is told to stop, its thread is left
// to itself, and a fresh thread takes its place, so that a compiler that hangs costs one thread and not
// the session. The evaluator and the clock are shared because such a thread may outlive the pool; no other does.
#pragma once

#include "tuner/Measure/Clock.h"
#include "tuner/Measure/Evaluator.h"

#include <functional>
#include <memory>
#include <optional>

namespace heddle::tuner {

struct PreparedPoint {
  Point point;
  Preparation preparation; // failure timedOut if it was given up
  double seconds = 0;
};

// Used by one thread.
class PreparePool {
public:
  // With 0 workers, next() prepares on the calling thread; the limit then only marks what took too long.
  PreparePool(std::shared_ptr<Evaluator> evaluator, std::shared_ptr<const Clock> clock, int workers,
              double limitSeconds);
  // Drops what has not begun, tells the rest to stop, and waits for each until it ends or has passed its time limit.
  ~PreparePool();
  PreparePool(const PreparePool &) = delete;
  PreparePool &operator=(const PreparePool &) = delete;

  void submit(const Point &point);
  // Submitted points that next() has not returned.
  size_t pending() const;
  // The finished point that was submitted first. Waits for one; nothing if nothing is pending, or as
  // soon as `isInterrupted` says so (asked every few milliseconds).
  std::optional<PreparedPoint> next(const std::function<bool()> &isInterrupted);
  // Preparations given up so far.
  int abandoned() const;

private:
  struct Shared;
  std::shared_ptr<Shared> shared;
};

} // namespace heddle::tuner
