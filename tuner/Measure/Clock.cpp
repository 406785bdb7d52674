#include "tuner/Measure/Clock.h"

#include <chrono>
#include <thread>

namespace heddle::tuner {

double SteadyClock::now() const {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

void SteadyClock::wait(double seconds) const {
  if (seconds > 0)
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

} // namespace heddle::tuner
