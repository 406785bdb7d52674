//===- DecodeConfig.h - what kernels of portable_decode choose --------------------------------===//
#pragma once

#include "codegen/Config/ConfigView.h"

namespace heddle {

struct DecodeConfig {
  int64_t warps = 4;            ///< of a block: each with keys of its own in a tile, or with 16 rows
  int64_t chunkN = 16;          ///< keys of a warp in one key tile
  int64_t stages = 3;           ///< slices of key tiles in each warp's ring
  int64_t minBlocks = 2;        ///< blocks of one SM: that the registers must allow, and of the grid
  int64_t pieceTiles = 2;       ///< fewest key tiles of a block
  int64_t evictTiles = 8;       ///< most key tiles of a block whose keys leave the L2 before other lines
  int64_t checkPages = 0;       ///< 1: a page that is none ends the launch with an error, for tests of tables
  int64_t rescaleThreshold = 8; ///< growth of a row's maximum, in log2 units, that is tolerated before a rescale

  int64_t threads() const { return 32 * warps; }
  int64_t blockN() const { return chunkN * warps; }

  DecodeConfig() = default;
  DecodeConfig(const KernelConfig &config) { readFields(config, *this); }
  operator KernelConfig() const { return writeFields(*this); }

  static const FieldsOf<DecodeConfig> &fields() {
    using C = DecodeConfig;
    constexpr int64_t kMostThreshold = 15; // weights up to 2^threshold stay finite in half
    static const FieldsOf<C> list = {"portable_decode",
                                     {{"warps", &C::warps, 4, 8},
                                      {"chunk_n", &C::chunkN, 16, 32},
                                      {"stages", &C::stages, 2, 4},
                                      {"min_blocks", &C::minBlocks, 1, kLargestField},
                                      {"piece_tiles", &C::pieceTiles, 1, kLargestField},
                                      {"evict_tiles", &C::evictTiles, 0, kLargestField},
                                      {"rescale_threshold", &C::rescaleThreshold, 0, kMostThreshold},
                                      {"check_pages", &C::checkPages, 0, 1, noOrYes()}}};
    return list;
  }
};

} // namespace heddle
