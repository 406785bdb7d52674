//===- CountedCalls.h - SIGKILL at a call that was counted ------------------===//
// Who shows what a kill leaves kills at a call, not at a moment: the calls that change a file (write, pwrite, ftruncate,
// fsync, fdatasync, rename, unlink, remove) go through here, so that a process can be counted once undisturbed and
// killed at any of its calls later, at work whatever the machine is busy with. Part of a test (kill_fixture.h), or
// preloaded into a program: HEDDLE_COUNTED_CALLS then names a file that holds a CallCount (tests/kills/counted.py), and
// with HEDDLE_WAITS_AT_CALL a process does not die there, but waits until somebody kills it.
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_COUNTEDCALLS_H
#define HEDDLE_TESTS_UNIT_SUPPORT_COUNTEDCALLS_H

#include <atomic>
#include <cstdint>

namespace heddle::test {

/// In memory that a process shares with those that it starts, which count together.
struct CallCount {
  std::atomic<int64_t> made{0}; ///< calls that were begun
  std::atomic<int64_t> last{0}; ///< the call at which a process dies, which it does not make; an odd one, of bytes, it
                                ///< makes with half of them. 0: none
};

/// This process counts there from now on; null: nowhere.
void countCallsIn(CallCount *count);

} // namespace heddle::test

#endif
