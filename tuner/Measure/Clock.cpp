//===- Clock.cpp ------------------------------------------------------------===//
#include "tuner/Measure/Clock.h"

#include <chrono>
#include <cmath>

namespace heddle::tuner {

double SteadyClock::now() const {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

void ManualClock::advance(double seconds) {
  if (seconds > 0)
    microseconds += int64_t(std::llround(seconds * 1e6));
}

} // namespace heddle::tuner
