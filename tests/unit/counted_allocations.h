// Replaces operator new of the program, so include it in one file: counts what a thread allocates, and lets an
// allocation fail.
#ifndef HEDDLE_TESTS_UNIT_COUNTED_ALLOCATIONS_H
#define HEDDLE_TESTS_UNIT_COUNTED_ALLOCATIONS_H

#include <cstddef>
#include <cstdlib>
#include <new>

namespace heddle::test {

/// Of this thread, since it began.
inline thread_local long allocationCount = 0;
/// Of this thread until the next one fails; negative: none fails.
inline thread_local long allocationsLeft = -1;

} // namespace heddle::test

[[gnu::noinline]] void *operator new(size_t bytes) {
  ++heddle::test::allocationCount;
  if (heddle::test::allocationsLeft >= 0 && heddle::test::allocationsLeft-- == 0)
    throw std::bad_alloc();
  if (void *memory = std::malloc(bytes ? bytes : 1))
    return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void *memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void *memory, size_t) noexcept { std::free(memory); }

#endif
