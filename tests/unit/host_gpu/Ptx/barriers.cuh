// On the host: barriers in shared memory, whose copies arrive when they are waited for, and named barriers.
#pragma once

namespace heddle {
namespace ptx {

inline void initBarrier(uint32_t barrier, uint32_t arrivals) {
  host_gpu::Barrier &made = host_gpu::barriers[barrier];
  made.expected = made.pending = arrivals;
}
inline void fenceBarrierInit() {}

inline void arriveExpecting(uint32_t barrier, uint32_t bytes) {
  host_gpu::Barrier &at = host_gpu::barriers.at(barrier);
  if (at.pending == 0) {
    std::fprintf(stderr, "more arrivals at barrier %u than it expects\n", barrier);
    std::abort();
  }
  at.bytes += bytes;
  --at.pending;
  at.complete();
}
inline void arrive(uint32_t barrier) { arriveExpecting(barrier, 0); }

inline void waitParity(uint32_t barrier, uint32_t parity) {
  constexpr int kPatience = 50000; // turns of all threads
  for (int turn = 0; turn < kPatience; ++turn) {
    host_gpu::Barrier &at = host_gpu::barriers.at(barrier);
    if ((at.phase & 1) != parity)
      return;
    if (at.pending == 0 && !at.copies.empty()) {
      const host_gpu::Copies copies = std::move(at.copies);
      at.copies.clear();
      for (const auto &copy : copies)
        copy();
    } else {
      host_gpu::letOthersRun();
    }
  }
  std::fprintf(stderr, "block %u thread %u waits for barrier %u for ever\n", host_gpu::blockIndex().x,
               host_gpu::current, barrier);
  std::abort();
}

inline void syncNamed(int32_t barrier, int32_t members) { host_gpu::wait(host_gpu::named[barrier], members); }
inline void arriveNamed(int32_t barrier, int32_t members) { host_gpu::arrive(host_gpu::named[barrier], members); }

} // namespace ptx
} // namespace heddle
