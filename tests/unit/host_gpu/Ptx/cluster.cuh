// On the host: what blocks of a cluster send each other arrives when its barrier is waited for.
#pragma once

namespace heddle {
namespace ptx {

inline int32_t rankInCluster() { return int32_t(host_gpu::rank()); }

inline void arriveInCluster() {
  host_gpu::self().clusterRound = host_gpu::cluster.round;
  host_gpu::arrive(host_gpu::cluster, host_gpu::threads.size());
}
inline void waitForCluster() {
  while (host_gpu::cluster.round == host_gpu::self().clusterRound)
    host_gpu::letOthersRun();
}

inline uint32_t addressInBlock(uint32_t shared, int32_t rank) {
  if (uint32_t(rank) * host_gpu::threadsOfBlock >= host_gpu::threads.size()) {
    std::fprintf(stderr, "block %d is none of the cluster\n", rank);
    std::abort();
  }
  return shared % kSharedBytes + uint32_t(rank) * kSharedBytes;
}

template <int N> void sendInCluster(uint32_t address, uint32_t barrier, const float (&values)[N]) {
  std::array<float, N> sent;
  std::memcpy(sent.data(), values, sizeof values);
  host_gpu::barriers.at(barrier).copies.push_back([=] {
    std::memcpy(::sharedMemory + address, sent.data(), sizeof sent);
    host_gpu::Barrier &at = host_gpu::barriers.at(barrier);
    at.bytes -= int64_t(sizeof sent);
    at.complete();
  });
}
inline void sendInCluster16(uint32_t address, uint32_t barrier, float a, float b, float c, float d) {
  sendInCluster(address, barrier, {a, b, c, d});
}
inline void sendInCluster8(uint32_t address, uint32_t barrier, bool isPresent, float a, float b) {
  if (isPresent)
    sendInCluster(address, barrier, {a, b});
}

} // namespace ptx
} // namespace heddle
