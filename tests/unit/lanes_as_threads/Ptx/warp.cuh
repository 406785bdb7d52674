// Instead of the device's file, for random_cells_test.cpp: lanes are threads, which exchange what they say by its Warp.
#pragma once

namespace heddle::ptx {
constexpr int32_t kWarpLanes = Warp::kLanes;
static int32_t laneOfWarp() { return ownLane; }
static int32_t smallestOfWarp(int32_t value) {
  std::vector<int32_t> all = warp.exchange(ownLane, value);
  return *std::min_element(all.begin(), all.end());
}
static int32_t valueOfLane(int32_t value, int32_t lane) { return warp.exchange(ownLane, value)[lane]; }
static uint32_t lanesWhere(bool condition) {
  std::vector<int32_t> all = warp.exchange(ownLane, condition);
  uint32_t word = 0;
  for (int lane = 0; lane < kWarpLanes; ++lane)
    word |= static_cast<uint32_t>(all[lane]) << lane;
  return word;
}
static int32_t lowestBitOf(uint32_t word) { return __builtin_ffs(static_cast<int>(word)) - 1; }
static void syncWarp() { warp.exchange(ownLane, 0); }
template <class> struct CellMemory {
  static constexpr bool kExists = true;
};
static std::atomic<int32_t> cellMemory[4 * (kWarpLanes + 8)];
template <class> static int32_t loadCellWord(int32_t number) { return cellMemory[number]; }
template <class> static void storeCellWord(int32_t number, int32_t word) { cellMemory[number] = word; }
template <class> static void orCellWord(int32_t number, uint32_t bits) {
  cellMemory[number] |= static_cast<int32_t>(bits);
}
} // namespace heddle::ptx
