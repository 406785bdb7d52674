//===- StandingClock.cpp - clock and sleeps in the place of the C library's ---===//
#include "StandingClock.h"

#include <atomic>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace {

constexpr int64_t kSecond = 1'000'000'000;
std::atomic<int64_t> now{1000 * kSecond};

} // namespace

void heddle::test::moveClock(std::chrono::nanoseconds by) { now += by.count(); }

extern "C" {

int clock_gettime(clockid_t clock, timespec *time) noexcept {
  if (clock != CLOCK_MONOTONIC)
    return int(syscall(SYS_clock_gettime, clock, time));
  *time = {time_t(now / kSecond), long(now % kSecond)};
  return 0;
}

int nanosleep(const timespec *time, timespec *) {
  now += time->tv_sec * kSecond + time->tv_nsec;
  return 0;
}

int clock_nanosleep(clockid_t, int flags, const timespec *time, timespec *) {
  const int64_t told = time->tv_sec * kSecond + time->tv_nsec;
  if (!(flags & TIMER_ABSTIME))
    now += told;
  else if (told > now)
    now = told;
  return 0;
}

int usleep(useconds_t microseconds) {
  now += int64_t(microseconds) * 1000;
  return 0;
}

unsigned sleep(unsigned seconds) {
  now += int64_t(seconds) * kSecond;
  return 0;
}
}
