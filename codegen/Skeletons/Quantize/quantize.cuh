// q, k and v as e4m3, each head with a scale of its own, or blocks of its rows of q and k, in one launch: a scale needs the whole head before the first of
// its elements can be rounded. Needs prelude.cuh before it in the source.
//
// Blocks take numbers from a counter, each of which is a piece of a head. Elements wait for their head in shared memory
// (quantize_held.cuh), or are read a second time out of the second-level cache (quantize_twice.cuh). The largest magnitude
// of a head does not depend on the order; so bits do not. Where kernels rotate rows of q and k (quantize_rotated.cuh), they do
// where these become floats, when they are measured and when they are converted (quantize_rotation.cuh).
//
// Traits, all `static constexpr int`:
//   kWarps, kMinBlocks   warps of one block, blocks of one SM
//   kHeads               heads whose pieces are numbered in turn
//   kUnits               units of eight elements of a piece that a thread holds
//   kSlots, kAhead       pieces of a block in shared memory, 0: none; of these, those under way
//   kEvictFirst          1: what is read the second time and what is written need not stay in the cache
//   kConvertsE4m3        1: there is an instruction that rounds to e4m3
//   kRotates             1: rows of q and k are rotated
//   kScaleRows           so many rows of a head of q and k have a scale of their own; 0: all of a head have one
//   kKeyMajorValues      1: values become rows of keys, one for each of their dimensions
//   kHeadDim, kValueDim  multiples of 16
//   Element              of q, k and v
//   kSmemControl         where the words lie that the threads of a block exchange
//   kSmemColumns         where columns of a step's rows lie, if k is smoothed, and pieces that are turned over
//   kSmemHeld            where pieces lie
// Launch: grid.x = any number of blocks; block = 32 * warpsOfBlock; counters and words of pieces are zero.
#pragma once

#include "Quantize/quantize_held.cuh"
#include "Quantize/quantize_twice.cuh"

namespace heddle {

template <class Traits, class> struct Quantize : QuantizePieces<QuantizeUnits<Traits>> {
  using Params = QuantizeParams<Quantize>;
  static constexpr int kThreads = 32 * quantize::warpsOfBlock(Traits::kWarps, Traits::kSlots);
  static constexpr int kMinBlocks = Traits::kMinBlocks;

  DEV static void run(const Params &p) {
    unsigned char *const sharedMemory = ptx::launchedMemory();
    unsigned char *const control = sharedMemory + Traits::kSmemControl;
    float *const columnRows = reinterpret_cast<float *>(sharedMemory + Traits::kSmemColumns);
    if constexpr (Traits::kSlots > 0)
      walkHeld<Quantize, Traits::kSlots, Traits::kAhead>(
          p, control, ptx::sharedAddress(sharedMemory + Traits::kSmemHeld), columnRows);
    else
      walkTwice<Quantize>(p, control, columnRows);
  }
};

} // namespace heddle
