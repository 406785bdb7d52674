// Barriers in shared memory that count arrivals and bytes (compute_90), and the named barriers of a block. A phase
// completes when the expected arrivals and bytes are in; waits name the parity of the phase they wait for.
#pragma once

namespace heddle {
namespace ptx {

DEV void initBarrier(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to the asynchronous proxy; a block barrier must follow.
DEV void fenceBarrierInit() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

DEV void arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// One arrival that also expects `bytes` of asynchronous copies in this phase.
DEV void arriveExpecting(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

DEV void waitParity(uint32_t barrier, uint32_t parity) {
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again_%=:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@done bra after_%=;\n"
               "bra again_%=;\n"
               "after_%=:\n"
               "}\n" ::"r"(barrier),
               "r"(parity)
               : "memory");
}

DEV void syncNamed(int32_t barrier, int32_t threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

DEV void arriveNamed(int32_t barrier, int32_t threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

} // namespace ptx
} // namespace heddle
