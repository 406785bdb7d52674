// On the host: what the lanes of a warp find out together.
#pragma once

namespace heddle {
namespace ptx {

constexpr int32_t kWarpLanes = kLanes;
template <class Traits, class = void> struct CellMemory {
  static constexpr bool kExists = false; // portable kernels have none on a GPU either
  static constexpr uint32_t kAddress = 0;
};
template <class Traits> struct CellMemory<Traits, decltype(void(Traits::kSmemCells))> {
  static constexpr bool kExists = true;
  static constexpr uint32_t kAddress = 1024 + Traits::kSmemCells;
};

inline int32_t laneOfWarp() { return int32_t(host_gpu::lane()); }
inline int32_t valueOfLane(int32_t value, int32_t lane) { return host_gpu::exchange(value, uint32_t(lane)); }
inline int32_t largestOfWarp(int32_t value) { return __reduce_max_sync(~0u, value); }
inline int32_t smallestOfWarp(int32_t value) { return __reduce_min_sync(~0u, value); }
inline uint32_t lanesWhere(bool condition) { return __ballot_sync(~0u, condition); }
inline int32_t lowestBitOf(uint32_t word) { return __builtin_ffs(int(word)) - 1; }
inline void syncWarp() { host_gpu::waitForWarp(); }
template <class Traits> unsigned char *cellWord(int32_t number) {
  return ::sharedMemory + CellMemory<Traits>::kAddress + 4 * number;
}
template <class Traits> int32_t loadCellWord(int32_t number) {
  int32_t word;
  std::memcpy(&word, cellWord<Traits>(number), 4);
  return word;
}
template <class Traits> void storeCellWord(int32_t number, int32_t word) {
  std::memcpy(cellWord<Traits>(number), &word, 4);
}
template <class Traits> void orCellWord(int32_t number, uint32_t bits) {
  storeCellWord<Traits>(number, loadCellWord<Traits>(number) | int32_t(bits));
}

} // namespace ptx

inline int32_t largest_of_warp(int32_t value) { return ptx::largestOfWarp(value); }
inline int32_t lane_of_warp() { return ptx::laneOfWarp(); }
inline int32_t lanes_of_warp() { return ptx::kWarpLanes; }

} // namespace heddle
