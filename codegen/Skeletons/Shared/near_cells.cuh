// The cells a multiple of a step from a query cell; dialect/Geometry/NearCells is the host's text of the same. The name
// is that of generated functions (dialect/IR/ListCalls.h).
#pragma once

namespace heddle {

// The least cell c >= from with c = row + m * step and first <= m <= last.
DEV int32_t near_cells_next(int32_t step, int32_t first, int32_t last, int32_t row, int32_t from) {
  constexpr int32_t kNoCell = 0x7fffffff;
  const int32_t ahead = from - row, steps = ahead / step;
  const int32_t m = max(first, steps + (steps * step < ahead ? 1 : 0));
  return m <= last ? row + m * step : kNoCell;
}

} // namespace heddle
