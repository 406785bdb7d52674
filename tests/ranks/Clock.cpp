//===- Clock.cpp - in the place of the C library's functions --------------------===//
#include "Clock.h"
#include "Board.h"

#include <cerrno>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace {

constexpr int64_t kSecond = 1'000'000'000;
bool isStanding = false;
thread_local heddle::ranks::RankNumbers *asking = nullptr;

// Who waits for another process lets it run: a yield on a busy machine takes as long as everybody's turn.
int restBriefly() {
  constexpr timespec kBriefly = {0, 20'000};
  (void)syscall(SYS_nanosleep, &kBriefly, nullptr);
  return 0;
}

} // namespace

void heddle::ranks::standStill() { isStanding = true; }

void heddle::ranks::countQuestions(RankNumbers *of) { asking = of; }

extern "C" {

int clock_gettime(clockid_t clock, timespec *time) noexcept {
  if (!isStanding || clock != CLOCK_MONOTONIC)
    return int(syscall(SYS_clock_gettime, clock, time));
  if (asking)
    ++asking->polls;
  const int64_t now = heddle::ranks::board().now;
  *time = {time_t(now / kSecond), long(now % kSecond)};
  return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const timespec *time, timespec *left) {
  return isStanding ? restBriefly() : int(syscall(SYS_clock_nanosleep, clock, flags, time, left));
}

// Nobody is woken: who waits looks again.
int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock, const timespec *end) {
  using Wait = int (*)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const timespec *);
  static const auto real = reinterpret_cast<Wait>(dlsym(RTLD_NEXT, "pthread_cond_clockwait"));
  if (!isStanding)
    return real(condition, mutex, clock, end);
  pthread_mutex_unlock(mutex);
  restBriefly();
  pthread_mutex_lock(mutex);
  return ETIMEDOUT;
}

int sched_yield() noexcept { return isStanding ? restBriefly() : int(syscall(SYS_sched_yield)); }

int nanosleep(const timespec *time, timespec *left) {
  return isStanding ? restBriefly() : int(syscall(SYS_nanosleep, time, left));
}
}
