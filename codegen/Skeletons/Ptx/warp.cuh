// What the lanes of a warp find out together. All lanes call each of these together.
#pragma once

namespace heddle {
namespace ptx {

constexpr int32_t kWarpLanes = 32;

DEV int32_t laneOfWarp() {
  int32_t lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

DEV int32_t smallestOfWarp(int32_t value) { return __reduce_min_sync(0xffffffff, value); }
DEV int32_t largestOfWarp(int32_t value) { return __reduce_max_sync(0xffffffff, value); }
DEV int32_t valueOfLane(int32_t value, int32_t lane) { return __shfl_sync(0xffffffff, value, lane); }
// A bit for each lane.
DEV uint32_t lanesWhere(bool condition) { return __ballot_sync(0xffffffff, condition); }
DEV int32_t lowestBitOf(uint32_t word) { return __ffs(word) - 1; }
DEV void syncWarp() { __syncwarp(); }

// Shared memory for what one warp of a block notes of lists (cell_bits.cuh): where traits have kSmemCells, an offset
// behind what the driver reserves of every block.
template <class Traits, class = void> struct CellMemory {
  static constexpr bool kExists = false;
  static constexpr uint32_t kAddress = 0;
};
template <class Traits> struct CellMemory<Traits, decltype(void(Traits::kSmemCells))> {
  static constexpr bool kExists = true;
  static constexpr uint32_t kAddress = 1024 + Traits::kSmemCells;
};

template <class Traits> DEV int32_t loadCellWord(int32_t number) {
  int32_t word;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(CellMemory<Traits>::kAddress + 4 * number) : "memory");
  return word;
}
template <class Traits> DEV void storeCellWord(int32_t number, int32_t word) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(CellMemory<Traits>::kAddress + 4 * number), "r"(word) : "memory");
}
template <class Traits> DEV void orCellWord(int32_t number, uint32_t bits) {
  asm volatile("red.shared.or.b32 [%0], %1;" ::"r"(CellMemory<Traits>::kAddress + 4 * number), "r"(bits) : "memory");
}

} // namespace ptx

// What generated functions call.
DEV int32_t largest_of_warp(int32_t value) { return ptx::largestOfWarp(value); }
DEV int32_t lane_of_warp() { return ptx::laneOfWarp(); }
DEV int32_t lanes_of_warp() { return ptx::kWarpLanes; }

} // namespace heddle
