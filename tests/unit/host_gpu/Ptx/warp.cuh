// On the host: what the lanes of a warp find out together.
#pragma once

namespace heddle {
namespace ptx {

constexpr int32_t kWarpLanes = kLanes;
template <class> struct CellMemory {
  static constexpr bool kExists = false; // nor have portable kernels on a GPU
};

inline int32_t laneOfWarp() { return int32_t(host_gpu::lane()); }
inline int32_t valueOfLane(int32_t value, int32_t lane) { return host_gpu::exchange(value, uint32_t(lane)); }
inline int32_t largestOfWarp(int32_t value) { return __reduce_max_sync(~0u, value); }
inline int32_t smallestOfWarp(int32_t value) { return __reduce_min_sync(~0u, value); }
inline uint32_t lanesWhere(bool condition) { return __ballot_sync(~0u, condition); }
inline int32_t lowestBitOf(uint32_t word) { return __builtin_ffs(int(word)) - 1; }
inline void syncWarp() { host_gpu::waitForWarp(); }
template <class> int32_t loadCellWord(int32_t) { return 0; }
template <class> void storeCellWord(int32_t, int32_t) {}
template <class> void orCellWord(int32_t, uint32_t) {}

} // namespace ptx

inline int32_t largest_of_warp(int32_t value) { return ptx::largestOfWarp(value); }
inline int32_t lane_of_warp() { return ptx::laneOfWarp(); }
inline int32_t lanes_of_warp() { return ptx::kWarpLanes; }

} // namespace heddle
