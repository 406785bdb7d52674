// The cells of one residue class, the same for every query cell; dialect/Geometry/StridedCells is the host's text of
// the same. The name is that of generated functions (dialect/IR/ListCalls.h).
#pragma once

namespace heddle {

// The least cell c >= from with first <= c < end and c = residue mod modulus.
DEV int32_t strided_cells_next(int32_t modulus, int32_t residue, int32_t first, int32_t end, int32_t, int32_t from) {
  constexpr int32_t kNoCell = 0x7fffffff;
  const int32_t least = max(first, from), rest = (residue - least) % modulus;
  const int32_t cell = least + (rest < 0 ? rest + modulus : rest);
  return cell < end ? cell : kNoCell;
}

} // namespace heddle
