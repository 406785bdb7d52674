// q, k and v as e4m3, each head with a scale of its own, in one launch: a scale needs the whole head before the first of
// its elements can be rounded. Needs, before it in the source: prelude.cuh, struct KernelTraits.
//
// Blocks take numbers from a counter, each of which is a piece of a head. Elements wait for their head in shared memory
// (quantize_held.cuh), or are read a second time out of the second-level cache (quantize_twice.cuh). The largest magnitude
// of a head does not depend on the order; so bits do not.
//
// KernelTraits, all `static constexpr int`:
//   kWarps, kMinBlocks   warps of one block, blocks of one SM
//   kHeads               heads whose pieces are numbered in turn
//   kUnits               units of eight elements of a piece that a thread holds
//   kSlots, kAhead       pieces of a block in shared memory, 0: none; of these, those under way
//   kEvictFirst          1: what is read the second time and what is written need not stay in the cache
//   kConvertsE4m3        1: there is an instruction that rounds to e4m3
//   kHeadDim, kValueDim  multiples of 16
//   Element              of q, k and v
//   kSmemControl         where the words lie that the threads of a block exchange
//   kSmemColumns         where columns of a step's rows lie, if k is smoothed
//   kSmemHeld            where pieces lie
// Launch: grid.x = any number of blocks; block = 32 * warpsOfBlock; counters and words of pieces are zero.
#pragma once

#include "Quantize/quantize_held.cuh"
#include "Quantize/quantize_twice.cuh"

extern "C" __global__ void
__launch_bounds__(32 * heddle::quantize::warpsOfBlock(KernelTraits::kWarps, KernelTraits::kSlots),
                  KernelTraits::kMinBlocks) heddle_kernel(const __grid_constant__ heddle::KernelParams p) {
  extern __shared__ __align__(128) unsigned char sharedMemory[];
  unsigned char *const control = sharedMemory + KernelTraits::kSmemControl;
  float *const columnRows = reinterpret_cast<float *>(sharedMemory + KernelTraits::kSmemColumns);
  if constexpr (KernelTraits::kSlots > 0)
    heddle::walkHeld<KernelTraits::kSlots, KernelTraits::kAhead>(
        p, control, heddle::ptx::sharedAddress(sharedMemory + KernelTraits::kSmemHeld), columnRows);
  else
    heddle::walkTwice(p, control, columnRows);
}
