// Asynchronous copies from global to shared memory (compute_80). Groups complete in the order of their
// commits; a thread only waits for its own copies, so a block barrier must follow a wait.
#pragma once

namespace heddle {
namespace ptx {

// Copies 16 bytes; both addresses must be multiples of 16.
DEV void copyAsync16(uint32_t shared, const void *global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}

// Copies 16 bytes, or writes 16 zero bytes without reading global memory.
DEV void copyAsync16OrZero(uint32_t shared, const void *global, bool isPresent) {
  int sourceBytes = isPresent ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(sourceBytes) : "memory");
}

// Likewise, `Offset` bytes behind `global`, of a part of a row whose other parts follow: the L2 takes the whole line of
// 128 bytes at once.
template <int Offset> DEV void copyAsync16OfLineOrZero(uint32_t shared, const void *global, bool isPresent) {
  int sourceBytes = isPresent ? 16 : 0;
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1 + %3], 16, %2;" ::"r"(shared), "l"(global),
               "r"(sourceBytes), "n"(Offset)
               : "memory");
}

// The same, of a line that leaves the L2 before others. A policy that a copy is given at run time, for lines like others,
// makes it slow: 32 sequences of 4k keys take 158 us, 131 us without (H200).
template <int Offset> DEV void copyAsync16OfPassingLineOrZero(uint32_t shared, const void *global, bool isPresent) {
  int sourceBytes = isPresent ? 16 : 0;
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  asm volatile("cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1 + %3], 16, %2, %4;" ::"r"(shared),
               "l"(global), "r"(sourceBytes), "n"(Offset), "l"(policy)
               : "memory");
}

DEV void commitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Returns when at most Pending of this thread's newest groups are incomplete.
template <int Pending> DEV void waitCopies() { asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory"); }

} // namespace ptx
} // namespace heddle
