//===- HostGpu.h - blocks of threads on the host ----------------------------===//
// What comes before the text of a whole kernel when the host compiles it: the keywords and functions of CUDA C++, and
// threads that take turns. A thread runs until it waits for its warp or its block, so what the instructions of a warp
// exchange is there when they ask. Blocks of a cluster run together, each with shared memory of its own. Ptx/ beside it has these instructions, in place of those of the skeletons. Shared
// memory begins as NaN, and copies arrive as late as they may: what is not waited for is not there.
//===----------------------------------------------------------------------===//
#pragma once

#include <array>
#include <boost/context/detail/fcontext.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <stddef.h>
#include <type_traits>
#include <vector>

#define __device__
#define __forceinline__ inline
#define __global__
#define __shared__
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

constexpr int kSharedBytes = 1 << 18, kStackBytes = 1 << 18, kLanes = 32, kMostClusterBlocks = 8;
extern "C" {
alignas(1024) inline unsigned char sharedMemory[kSharedBytes * kMostClusterBlocks]; // of one block behind the other
}

struct HostIndex {
  unsigned x, y, z;
};

namespace host_gpu {

using Copies = std::vector<std::function<void()>>;

// Boost's lowest layer: a switch of ucontext calls the kernel twice, and took more time than what threads compute.
using Place = boost::context::detail::fcontext_t;
using Arrival = boost::context::detail::transfer_t;

// Runs from `place` on until somebody returns here; then `place` is where that one was.
inline void switchTo(Place &place) { place = boost::context::detail::jump_fcontext(place, nullptr).fctx; }

struct Thread {
  Place place = nullptr;
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  bool isDone = false;
  unsigned clusterRound = 0; // in which it arrived
  Copies open, openMma;
  std::deque<Copies> committed, committedMma;
};

// Threads that wait for each other, and what they exchange.
struct Group {
  unsigned arrived = 0, round = 0, resumed = 0;
  uint32_t words[kLanes][8];
};

inline std::vector<Thread> threads; // of all blocks of a cluster, which is one block where there are none
inline std::vector<Group> warps, blocks;
inline Group cluster;
inline std::map<int32_t, Group> named;

// Of shared memory: arrivals and bytes that a phase still lacks, and the copies that bring the bytes.
struct Barrier {
  uint32_t expected = 0, pending = 0, phase = 0;
  int64_t bytes = 0;
  Copies copies;

  void complete() {
    if (pending == 0 && bytes == 0) {
      ++phase;
      pending = expected;
    }
  }
};
inline std::map<uint32_t, Barrier> barriers;
inline Place scheduler;
inline unsigned current = 0, threadsOfBlock = 0;
inline HostIndex firstOfCluster, gridSize;
inline std::function<void()> body;

inline Thread &self() { return threads[current]; }
inline Group &warp() { return warps[current / kLanes]; }
inline unsigned lane() { return current % kLanes; }
inline unsigned rank() { return current / threadsOfBlock; } // of the block in its cluster
inline HostIndex threadIndex() { return {current % threadsOfBlock, 0, 0}; }
inline HostIndex blockIndex() { return {firstOfCluster.x + rank(), firstOfCluster.y, firstOfCluster.z}; }

inline void letOthersRun() { switchTo(scheduler); }
inline void arrive(Group &group, unsigned members) {
  if (++group.arrived == members) {
    group.arrived = 0;
    ++group.round;
  }
}
inline void wait(Group &group, unsigned members) {
  const unsigned round = group.round;
  arrive(group, members);
  while (group.round == round)
    letOthersRun();
}
// The last lane goes on behind the others: what it releases no lane reads any more.
inline void waitForWarp() {
  Group &lanes = warp();
  const unsigned round = lanes.round;
  arrive(lanes, kLanes);
  do
    letOthersRun();
  while (lanes.round == round);
  ++lanes.resumed;
  if (lane() < kLanes - 1)
    return;
  while (lanes.resumed < kLanes)
    letOthersRun();
  lanes.resumed = 0;
}

inline void enter(Arrival from) {
  scheduler = from.fctx;
  body();
  self().isDone = true;
  letOthersRun();
}

inline void start(Thread &thread) {
  thread.isDone = false;
  for (Copies *copies : {&thread.open, &thread.openMma})
    copies->clear();
  thread.committed.clear();
  thread.committedMma.clear();
  thread.place = boost::context::detail::make_fcontext(thread.stack.get() + kStackBytes, kStackBytes, enter);
}

// In which order the blocks of a launch start, and how often their warps run: CUDA promises nothing of either. With lateWarps
// blocks ascend, and the last two warps of each, which have the least to do, run once while others run kRoundsOfLate times.
enum class BlockOrder : unsigned { ascending, descending, lateWarps };
constexpr unsigned kRoundsOfLate = 64, kLateThreads = 2 * kLanes;

inline void runCluster(const HostIndex &first, BlockOrder order) {
  std::memset(sharedMemory, 0xff, size_t(kSharedBytes) * (threads.size() / threadsOfBlock));
  firstOfCluster = first;
  barriers.clear();
  named.clear();
  cluster = Group();
  for (Thread &thread : threads)
    start(thread);
  unsigned round = 0;
  for (bool isBusy = true; isBusy; ++round) {
    const bool waits = order == BlockOrder::lateWarps && round % kRoundsOfLate != 0;
    isBusy = false;
    for (current = 0; current < threads.size(); ++current)
      if (!self().isDone) {
        isBusy = true;
        if (!waits || current % threadsOfBlock + kLateThreads < threadsOfBlock)
          switchTo(self().place);
      }
  }
}

// `ofCluster`: blocks of a cluster, side by side.
template <class Params>
void launch(void (*kernel)(Params), const void *params, const unsigned (&grid)[3], unsigned count, unsigned ofCluster,
            BlockOrder order) {
  const Params &given = *static_cast<const Params *>(params);
  body = [&] { kernel(given); };
  if (ofCluster > kMostClusterBlocks || grid[0] % ofCluster != 0 || (ofCluster > 1 && count % kLanes != 0)) {
    std::fprintf(stderr, "%u blocks in clusters of %u\n", grid[0], ofCluster);
    std::abort();
  }
  threadsOfBlock = count;
  threads.resize(count * ofCluster);
  warps.assign((threads.size() + kLanes - 1) / kLanes, Group());
  blocks.assign(ofCluster, Group());
  gridSize = {grid[0], grid[1], grid[2]};
  const unsigned inRow = grid[0] / ofCluster, all = inRow * grid[1] * grid[2];
  for (unsigned started = 0; started < all; ++started) {
    const unsigned number = order == BlockOrder::descending ? all - 1 - started : started;
    runCluster({number % inRow * ofCluster, number / inRow % grid[1], number / inRow / grid[1]}, order);
  }
}

// What lane `from` of the warp has.
template <class T> T exchange(T value, unsigned from) {
  std::memcpy(warp().words[lane()], &value, sizeof value);
  waitForWarp();
  T other;
  std::memcpy(&other, warp().words[from % kLanes], sizeof other);
  waitForWarp();
  return other;
}

template <class To, class From> To bitsAs(From value) {
  To other;
  static_assert(sizeof other == sizeof value, "as many bits");
  std::memcpy(&other, &value, sizeof other);
  return other;
}

} // namespace host_gpu

#define threadIdx (host_gpu::threadIndex())
#define blockIdx (host_gpu::blockIndex())
#define gridDim (host_gpu::gridSize)

inline float __int_as_float(int32_t bits) { return host_gpu::bitsAs<float>(bits); }
inline float __uint_as_float(uint32_t bits) { return host_gpu::bitsAs<float>(bits); }
inline int32_t __float_as_int(float value) { return host_gpu::bitsAs<int32_t>(value); }
inline uint32_t __float_as_uint(float value) { return host_gpu::bitsAs<uint32_t>(value); }
inline int __clz(int value) { return value == 0 ? 32 : __builtin_clz(value); }
inline int __popc(uint32_t value) { return __builtin_popcount(value); }
inline int __ffs(uint32_t value) { return __builtin_ffs(int(value)); }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline void __trap() { std::abort(); }
inline void __syncthreads() { host_gpu::wait(host_gpu::blocks[host_gpu::rank()], host_gpu::threadsOfBlock); }
inline void __syncwarp() { host_gpu::waitForWarp(); }
namespace host_gpu {
// What all lanes of the warp have, as one; of two equal values that value.
template <class Combine> int32_t reduce(int32_t value, const Combine &combine) {
  for (unsigned distance = 1; distance < kLanes; distance *= 2)
    value = combine(value, exchange(value, lane() ^ distance));
  return value;
}
} // namespace host_gpu
inline int __reduce_or_sync(uint32_t, int32_t word) {
  return host_gpu::reduce(word, [](int32_t a, int32_t b) { return a | b; });
}
inline int __reduce_add_sync(uint32_t, int32_t value) {
  return host_gpu::reduce(value, [](int32_t a, int32_t b) { return a + b; });
}
inline int __reduce_max_sync(uint32_t, int32_t value) {
  return host_gpu::reduce(value, [](int32_t a, int32_t b) { return a > b ? a : b; });
}
inline int __reduce_min_sync(uint32_t, int32_t value) {
  return host_gpu::reduce(value, [](int32_t a, int32_t b) { return a < b ? a : b; });
}
template <class T> T __shfl_xor_sync(uint32_t, T value, int distance) {
  return host_gpu::exchange(value, host_gpu::lane() ^ distance);
}
template <class T> T __shfl_sync(uint32_t, T value, int lane) { return host_gpu::exchange(value, lane); }
inline bool __all_sync(uint32_t, bool condition) {
  for (unsigned distance = 1; distance < kLanes; distance *= 2)
    condition &= host_gpu::exchange(condition, host_gpu::lane() ^ distance);
  return condition;
}
inline bool __any_sync(uint32_t lanes, bool condition) { return !__all_sync(lanes, !condition); }
inline uint32_t __ballot_sync(uint32_t lanes, bool condition) {
  return uint32_t(__reduce_or_sync(lanes, condition ? int32_t(1u << host_gpu::lane()) : 0));
}
template <class A, class B> typename std::common_type<A, B>::type max(A a, B b) {
  const typename std::common_type<A, B>::type x = a, y = b;
  return x > y ? x : y;
}
template <class A, class B> typename std::common_type<A, B>::type min(A a, B b) {
  const typename std::common_type<A, B>::type x = a, y = b;
  return x < y ? x : y;
}
