//===- HostWorkItems.h - the device's work items for the host compiler ------===//
// What surrounds a pattern's emitted functions when the host compiles the decoding of work items with them, as
//   kHostDevice  kHostItemTraits  functions  kHostItems  a check.
// The command line gives BLOCK_M, REVERSED, CLUSTER (blocks of an item) and what differs from the values below.
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_HOSTWORKITEMS_H
#define HEDDLE_TESTS_UNIT_SUPPORT_HOSTWORKITEMS_H

namespace heddle::test {

inline constexpr const char *kHostItemTraits = R"(
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>
#define DEV inline
#ifndef RASTER
#define RASTER 3
#endif
#ifndef CHAINED
#define CHAINED 0
#endif
#ifndef DOCUMENT_TILES
#define DOCUMENT_TILES 0
#endif
using std::max;
using std::min;
struct KernelTraits {
  static constexpr int kBlockM = BLOCK_M, kRasterHeads = RASTER, kRasterReversed = REVERSED, kChainedMib = CHAINED, kCluster = CLUSTER;
  static constexpr int kDocumentTiles = DOCUMENT_TILES;
  static constexpr int kQueryRateCount = 1, kKeyRateCount = 1, kMapsPerRate = 1, kQueryRates[1] = {1}, kKeyRates[1] = {1}; // of maps, not used
};
)";

inline constexpr const char *kHostItems = R"(
#if CLUSTER > 1
namespace heddle {
struct TensorMap {};
namespace ptx {
int thisBlock;
int blockOfCluster() { return thisBlock; }
} // namespace ptx
} // namespace heddle
#include "codegen/Skeletons/sm90_params.cuh"
#else
#include "codegen/Skeletons/forward_params.cuh"
#endif
#include "codegen/Skeletons/work_items.cuh"
)";

} // namespace heddle::test

#endif
