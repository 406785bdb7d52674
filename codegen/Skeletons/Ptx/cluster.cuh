// Blocks of one cluster: they run at the same time, see each other's shared memory and meet at a barrier (compute_90).
#pragma once

namespace heddle {
namespace ptx {

// Number of this block in its cluster.
DEV int32_t blockOfCluster() {
  int32_t block;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(block));
  return block;
}

// The same place in the shared memory of another block of the cluster, or of this one.
DEV uint32_t addressInBlock(uint32_t shared, int32_t block) {
  uint32_t address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared), "r"(block));
  return address;
}

// Arrives at a barrier anywhere in the cluster, whose owner must not have left. Orders memory for this block only: what
// other blocks may overwrite afterwards must have been read, not only be on its way to registers. (To release to the
// cluster takes a fence of the whole GPU.)
DEV void arriveInCluster(uint32_t address) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(address) : "memory");
}

// The barrier of all threads of the cluster that have not left: all lanes of a warp arrive together, then wait together.
DEV void arriveAtCluster() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
DEV void waitForCluster() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

} // namespace ptx
} // namespace heddle
