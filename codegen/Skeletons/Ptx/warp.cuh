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

} // namespace ptx

// What generated functions call.
DEV int32_t largest_of_warp(int32_t value) { return ptx::largestOfWarp(value); }

} // namespace heddle
