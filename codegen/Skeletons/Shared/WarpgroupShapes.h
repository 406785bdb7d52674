// Owns the text that gives Ptx/warpgroup_mma.cuh the shapes of a kernel.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace heddle {

/// The macro HEDDLE_WARPGROUP_SHAPES: for each number of columns, a multiple of 8 up to 256, the accumulators of an
/// instruction by their numbers, the six operands behind them, and the accumulators as what they hold.
std::string warpgroupShapes(const std::set<int64_t> &columns);

} // namespace heddle
