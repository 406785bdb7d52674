// Blocks of a cluster (compute_90): their ranks, their barrier, and what they send to the shared memory of each other. A block
// is there once all have arrived, and until it ends.
#pragma once

namespace heddle {
namespace ptx {

DEV int32_t rankInCluster() {
  int32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// Of what a thread wrote before it arrives, others see behind their wait what it has fenced. All threads call.
DEV void arriveInCluster() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
DEV void waitForCluster() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

// Where another block has what this one has at `shared`.
DEV uint32_t addressInBlock(uint32_t shared, int32_t rank) {
  uint32_t address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared), "r"(rank));
  return address;
}

// Bytes that arrive count at a barrier of the block in whose shared memory both addresses lie.
DEV void sendInCluster16(uint32_t address, uint32_t barrier, float a, float b, float c, float d) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%2, %3, %4, %5}, [%1];" ::"r"(address),
      "r"(barrier), "f"(a), "f"(b), "f"(c), "f"(d)
      : "memory");
}

// Only where `isPresent`; without a branch, so that lanes stay together.
DEV void sendInCluster8(uint32_t address, uint32_t barrier, bool isPresent, float a, float b) {
  asm volatile(
      "{\n.reg .pred present;\nsetp.ne.b32 present, %4, 0;\n"
      "@present st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%2, %3}, [%1];\n}" ::"r"(
          address),
      "r"(barrier), "f"(a), "f"(b), "r"(static_cast<uint32_t>(isPresent))
      : "memory");
}

} // namespace ptx
} // namespace heddle
