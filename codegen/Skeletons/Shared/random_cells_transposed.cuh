// The lists of attn.random the other way: cell k is named by pi_t^-1(k), t < min(count, extent). The host's text of the
// same is dialect/Geometry/RandomCells; the permutations are those of random_cells.cuh. Needs the warp's wrappers
// (Ptx/warp.cuh) before it.
#pragma once

#include "Shared/random_cells.cuh"

namespace heddle {

class InversePermutations : public KeyedPermutations {
public:
  using KeyedPermutations::KeyedPermutations;

  // The cell in [0, extent) whose image under permutation number `index` is `cell`.
  DEV int32_t preimage(int32_t cell, int32_t index) const {
    const uint32_t permutation = mixed(key + kStep * static_cast<uint32_t>(index));
    do
      cell = decrypted(cell, permutation);
    while (cell >= extent);
    return cell;
  }

private:
  DEV int32_t decrypted(int32_t cell, uint32_t permutation) const {
    asm volatile("" : "+r"(permutation)); // as in encrypted()
    const int32_t lowBits = (bits + 1) / 2;
    const uint32_t lowMask = (1u << lowBits) - 1, highMask = (1u << bits / 2) - 1;
    uint32_t low = static_cast<uint32_t>(cell) & lowMask, high = static_cast<uint32_t>(cell) >> lowBits;
#pragma unroll
    for (int number = kRounds; number > 0; number -= 2) {
      high ^= round(low, permutation + (number - 1) * kStep) & highMask;
      low ^= round(high, permutation + (number - 2) * kStep) & lowMask;
    }
    return static_cast<int32_t>(high << lowBits | low);
  }
};

struct InverseRandomList : RandomList {
  DEV ListKey key() const { return ListKey{row, {extent, count, seed, head, 1}}; }
  DEV int32_t cell(int32_t index) const { return InversePermutations(seed, head, extent).preimage(row, index); }
  DEV InverseRandomList ofLane(int32_t lane) const { return InverseRandomList{RandomList::ofLane(lane)}; }
};

DEV int32_t random_cells_transposed_next(int32_t count, int32_t seed, int32_t head, int32_t extent, int32_t row,
                                         int32_t from) {
  return nextRandomCell(InverseRandomList{{count, seed, head, extent, row}}, from);
}

} // namespace heddle
