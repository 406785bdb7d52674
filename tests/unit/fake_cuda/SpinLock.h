//===- SpinLock.h - the lock of stand-ins -----------------------------------===//
#ifndef HEDDLE_TESTS_UNIT_FAKE_CUDA_SPINLOCK_H
#define HEDDLE_TESTS_UNIT_FAKE_CUDA_SPINLOCK_H

#include <atomic>
#include <sched.h>

namespace heddle::fake {

// ThreadSanitizer does not see it, in a library that is built without it: a race in the runtime is not hidden by the
// order that calls of the driver happen to take.
class SpinLock {
public:
  void lock() {
    while (taken.test_and_set(std::memory_order_acquire))
      sched_yield();
  }
  void unlock() { taken.clear(std::memory_order_release); }

private:
  std::atomic_flag taken = ATOMIC_FLAG_INIT;
};

} // namespace heddle::fake

#endif
