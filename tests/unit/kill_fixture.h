// Children that are killed at a call that changes a file (support/CountedCalls.h). How many there are is counted
// in a run that nobody disturbs, so that a kill at one of them hits a process at work, however busy the machine is.
#ifndef HEDDLE_TESTS_UNIT_KILL_FIXTURE_H
#define HEDDLE_TESTS_UNIT_KILL_FIXTURE_H

#include "process_fixture.h"
#include "support/CountedCalls.h"

#include <doctest/doctest.h>

#include <new>
#include <random>

namespace heddle::test {

/// The exit code of `work` in a child, as waitFor has it, which dies at call `last`; 0: it is only counted.
inline int runCounted(const std::function<int()> &work, int64_t last, int64_t &made) {
  static_assert(sizeof(CallCount) % sizeof(int) == 0, "it lies in a SharedNumbers");
  SharedNumbers memory(sizeof(CallCount) / sizeof(int));
  CallCount *count = new (const_cast<int *>(&memory[0])) CallCount;
  count->last = last;
  const int code = waitFor(startChild([&] {
    countCallsIn(count);
    return work();
  }));
  made = count->made;
  return code;
}

/// How many calls `work` makes in a child that nobody kills.
inline int64_t callsOf(const std::function<int()> &work) {
  int64_t made = 0;
  CHECK(runCounted(work, 0, made) == 0);
  REQUIRE(made > 0);
  return made;
}

/// Kills `work` in a child at one of its first `calls` calls, which it makes at least.
inline void killAtCall(std::mt19937 &random, int64_t calls, const std::function<int()> &work) {
  const int64_t last = 1 + int64_t(random() % uint64_t(calls));
  CAPTURE(last);
  int64_t made = 0;
  CHECK(runCounted(work, last, made) == 200 + SIGKILL);
}

} // namespace heddle::test

#endif
