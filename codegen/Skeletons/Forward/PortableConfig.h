#pragma once

#include "codegen/Config/ConfigView.h"
#include "codegen/Config/ForwardConfig.h"
#include "runtime/Core/TileReach.h"

namespace heddle {

struct PortableConfig : ForwardConfig {
  int64_t chunkN = 64;          ///< keys whose scores are in registers at a time
  int64_t overlapScores = 0;    ///< 1: scores of the next tile are computed beside the exponentials of this one
  int64_t queryInRegisters = 0; ///< 1: query fragments are loaded once and held; 0: read for every tile
  int64_t rasterHeads = 8;      ///< (batch, head) pairs whose query tiles of one number run side by side

  PortableConfig() = default;
  PortableConfig(const KernelConfig &config) { readFields(config, *this); }
  operator KernelConfig() const { return writeFields(*this); }

  static const FieldsOf<PortableConfig> &fields() {
    using C = PortableConfig;
    constexpr int64_t kMostThreshold = 15; // weights up to 2^threshold stay finite in half
    static const FieldsOf<C> list = {"portable_forward",
                                     {{"block_m", &C::blockM, 1, kLargestField},
                                      {"block_n", &C::blockN, 1, kMostKeysOfTile},
                                      {"chunk_n", &C::chunkN, 1, 128}, // kept columns of one row fit one word
                                      {"stages", &C::stages, 1, 4},
                                      {"warps", &C::warps, 1, kLargestField},
                                      {"min_blocks", &C::minBlocks, 1, kLargestField},
                                      {"overlap_scores", &C::overlapScores, 0, 1, noOrYes()},
                                      {"query_in_registers", &C::queryInRegisters, 0, 1, noOrYes()},
                                      {"rescale_threshold", &C::rescaleThreshold, 0, kMostThreshold},
                                      {"compact_mask", &C::compactMask, 0, 1, noOrYes()},
                                      {"raster_heads", &C::rasterHeads, 1, kLargestField},
                                      {"raster_reversed", &C::rasterReversed, 0, 1, noOrYes()},
                                      {"chained_mib", &C::chainedMib, 0, kLargestField},
                                      {"document_tiles", &C::documentTiles, 0, 1, {"packed", "own"}}}};
    return list;
  }
};

} // namespace heddle
