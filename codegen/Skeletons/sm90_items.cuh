// Which work items a block computes, one after the other. kGrid says how they are dealt out:
//   0 tile     one block per item
//   1 stride   block c takes items c, c + blocks, ...
//   2 snake    the same with every second round in reverse, so that long and short items pair
//   3 dynamic  a counter in the workspace, zero at the start, gives the next one
#pragma once

namespace heddle {

enum class Grid { tile, stride, snake, dynamic };
constexpr Grid kGrid = static_cast<Grid>(KernelTraits::kGrid);

class ItemSequence {
public:
  DEV explicit ItemSequence(const KernelParams &p) : p(p), round(0) {}

  // The next item number, or a negative number at the end. One thread's answer is everybody's: lane 0 asks the
  // counter and the warp shares it.
  DEV int32_t next() {
    int32_t blocks = gridDim.x, block = blockIdx.x;
    int32_t number = block + round * blocks;
    if constexpr (kGrid == Grid::snake)
      number = round * blocks + (round & 1 ? blocks - 1 - block : block);
    if constexpr (kGrid == Grid::dynamic)
      if (round > 0)
        number = __shfl_sync(kWholeWarp, ptx::rereadThreadIndex() % 32 == 0 ? blocks + ptx::addGlobal(p.workspace, 1) : 0, 0);
    if (number >= p.items || (kGrid == Grid::tile && round > 0))
      return -1;
    ++round;
    return number;
  }

private:
  const KernelParams &p;
  int32_t round;
};

} // namespace heddle
