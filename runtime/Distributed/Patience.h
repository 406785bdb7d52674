// Owns the rhythm of asking whether something has happened: without a pause while an answer of microseconds may come,
// then often enough that a step of milliseconds does not notice.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace heddle {

class Patience {
public:
  explicit Patience(std::chrono::milliseconds limit) : limit(limit) {}

  // Something has happened: the limit counts from now.
  void restart() {
    begin = Clock::now();
    asked = 0;
  }
  // The limit counts from now, though nothing has happened: what is waited for is not the others'.
  void extend() { begin = Clock::now(); }
  bool isOver() const { return Clock::now() - begin >= limit; }
  void pause() {
    using std::chrono::microseconds;
    constexpr int kAtOnce = 400, kSoon = 700; // a machine that is busy takes milliseconds for each of the first
    if (asked < kAtOnce)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(microseconds(asked < kSoon ? 10 : 100));
    asked = std::min(asked + 1, kSoon);
  }

private:
  using Clock = std::chrono::steady_clock;
  std::chrono::milliseconds limit;
  Clock::time_point begin = Clock::now();
  int asked = 0;
};

} // namespace heddle
