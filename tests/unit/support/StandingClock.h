//===- StandingClock.h - a clock that stands --------------------------------===//
// A test that is linked with StandingClock.cpp decides what time passes: the steady clock of
// its process stands, but for what it is moved by and for sleeps, which take no time and move it. Waits of condition
// variables stay what they are.
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_STANDINGCLOCK_H
#define HEDDLE_TESTS_UNIT_SUPPORT_STANDINGCLOCK_H

#include <chrono>

namespace heddle::test {

void moveClock(std::chrono::nanoseconds by);

} // namespace heddle::test

#endif
