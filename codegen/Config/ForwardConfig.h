// Members that mean the same in every family of the kind; which of them a family has, and their ranges, its own list
// says.
#pragma once

#include <cstdint>

namespace heddle {

struct ForwardConfig {
  int64_t blockM = 128;         ///< query rows of one block
  int64_t blockN = 64;          ///< keys of one tile
  int64_t stages = 2;           ///< key tiles in shared memory at a time
  int64_t warps = 4;            ///< warps of one block
  int64_t minBlocks = 1;        ///< blocks of one SM that the registers must allow
  int64_t rescaleThreshold = 8; ///< growth of a row's maximum, in log2 units, that is tolerated before a rescale
  int64_t compactMask = 0;      ///< 1: the predicate of partial tiles in a loop; 0: unrolled
  int64_t rasterReversed = 0;   ///< 1: query tiles in descending order; 0: ascending
  /// MiB of fp32 outputs that kernels hand over at a time, one for each row lattice; 0: one kernel
  int64_t chainedMib = 0;
  int64_t rasterMib = 16;    ///< K and V of the (batch, head) pairs that run side by side, in MiB
  int64_t documentTiles = 0; ///< 1: documents have query tiles of their own; 0: tiles run over their borders

  int64_t threads() const { return 32 * warps; }
};

} // namespace heddle
