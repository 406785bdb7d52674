//===- HostWorkItems.h - the device's work items for the host compiler ------===//
// What surrounds a pattern's emitted functions when the host compiles the decoding of work items with them, as
//   kHostDevice  kHostItemTraits  functions  kHostItems  a check.
// The command line gives BLOCK_M, REVERSED and what differs from the values below.
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
  static constexpr int kBlockM = BLOCK_M, kRasterHeads = RASTER, kRasterReversed = REVERSED, kChainedMib = CHAINED;
  static constexpr int kDocumentTiles = DOCUMENT_TILES;
};
)";

inline constexpr const char *kHostItems = R"(
#include "codegen/Skeletons/Forward/forward_params.cuh"
#include "codegen/Skeletons/Forward/work_items.cuh"
struct HostKernel : KernelTraits {
  using Pattern = ::Pattern;
  using Params = heddle::PortableForwardParams<HostKernel>;
};
)";

} // namespace heddle::test

#endif
