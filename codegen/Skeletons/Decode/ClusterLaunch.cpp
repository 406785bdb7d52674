//===- ClusterLaunch.cpp - host half of cluster_decode.cuh -------------------------------------===//
//
// Owns which calls clusters compute, and the launch and the shared-memory plan of their kernel. Change it together with
// cluster_layout.cuh.
//
//===----------------------------------------------------------------------===//
#include "codegen/Skeletons/Decode/ClusterLaunch.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Config/SmemLayout.h"
#include "codegen/Config/TraitsPrinter.h"
#include "codegen/Skeletons/Decode/cluster_layout.cuh"
#include "codegen/Skeletons/Decode/decode_layout.cuh"
#include "codegen/Skeletons/Shared/BlockLimits.h"
#include "codegen/Target/GpuArch.h"
#include "runtime/Core/LaunchPlan.h"

namespace heddle {
namespace {

using Symbol = LaunchSymbol;

constexpr int64_t kThreads = 32 * decode::kClusterWarps;
constexpr int64_t kLeastStages = 2, kMostStages = 4;

/// Clusters that run at once: blocks of one lie on SMs that lie together, so some SMs are left over, which ones differs. Of
/// the 132 of an H200 they were 12; a cluster more than fit waits for all others.
constexpr int64_t kUsedOfAll = 7, kAll = 8 * decode::kClusterBlocks;
/// Keys that there is room for, of each kv head: with more what takes time is memory, and other blocks use all SMs.
constexpr int64_t kMostKeys = 1 << 17;

/// Keys of a tile: as many bytes whatever the elements.
int64_t blockN(const KernelRequest &request) {
  constexpr int64_t kWideBytes = 2;
  return decode::kClusterTile * kWideBytes / traitsOf(request.elements.k).bytes;
}

SmemLayout layoutWith(const KernelRequest &request, int64_t stages) {
  SmemLayout layout;
  layout.append("q", decode::kRows * rowBytes(request, request.headDim));
  layout.append("k", blockN(request) * keyRowBytes(request, request.headDim), stages);
  layout.append("v", blockN(request) * keyRowBytes(request, request.valueDim), stages);
  layout.append("slices", decode::kClusterBlocks * decode::kSliceBytes);
  layout.append("barrier", 8);
  return layout;
}

bool fits(const KernelRequest &request, int64_t stages) {
  return !whyNoSmemOfBlocks(*request.arch, layoutWith(request, stages).totalBytes(), decode::kClusterBlocksOfSm);
}

/// As many bytes under way as there is room for.
int64_t stagesOf(const KernelRequest &request) {
  int64_t stages = kMostStages;
  while (stages > kLeastStages && !fits(request, stages))
    --stages;
  return stages;
}

} // namespace

bool packsHeads(const KernelRequest &request) { return !request.keepsByHead && request.variants.size() == 1; }

bool hasClusterKernel(const KernelRequest &request) {
  return request.kind.base == KindBase::decode && request.arch->features.hasClusters && packsHeads(request) &&
         request.variants.front().queryRate == 1 && request.variants.front().keyRates == std::vector<int64_t>{1} &&
         fits(request, kLeastStages);
}

KernelEntry clusterEntry() {
  return {"heddle_cluster_kernel", "heddle::ClusterDecode<ClusterTraits, Pattern>", decode::kClusterBlocks};
}

std::string clusterTraits(const KernelRequest &request, const DecodeConfig &config) {
  const int64_t stages = stagesOf(request);
  TraitsPrinter printer;
  printer.constant("kWarps", decode::kClusterWarps);
  printer.constant("kChunkN", blockN(request) / decode::kClusterWarps);
  printer.constant("kBlockN", blockN(request));
  printer.constant("kStages", stages);
  printer.constant("kMinBlocks", decode::kClusterBlocksOfSm);
  printer.constant("kEvictTiles", config.evictTiles * config.blockN() / blockN(request));
  printer.smem(layoutWith(request, stages));
  return printer.str("ClusterTraits : KernelTraits");
}

void appendClusterLaunch(LaunchPlan &plan, const KernelRequest &request) {
  for (WorkspaceRegion &region : plan.regions)
    region.last = 1;
  KernelLaunch launch = plan.launches.front();
  const LaunchExpr kvHeads = max(LaunchExpr(Symbol::kvHeads), 1);
  const LaunchExpr rows = LaunchExpr(Symbol::seqlenQ) * floorDiv(Symbol::heads, kvHeads);
  const LaunchExpr units = max(LaunchExpr(Symbol::sequences) * Symbol::kvHeads, 1);
  const LaunchExpr keys = units * Symbol::pageSize * Symbol::maxPages;
  const LaunchExpr clusters = floorDiv(LaunchExpr(Symbol::smCount) * kUsedOfAll, kAll) * decode::kClusterBlocksOfSm;
  const LaunchExpr ofUnit = floorDiv(clusters, units);
  const LaunchExpr isServed =
      min(floorDiv(decode::kClusterRows, max(rows, 1)), 1) * min(floorDiv(kMostKeys, max(keys, 1)), 1);
  launch.entry = clusterEntry().name;
  launch.grid = {min(ofUnit, decode::kMostClusters) * isServed * decode::kClusterBlocks, min(Symbol::kvHeads, clusters),
                 min(Symbol::sequences, clusters)};
  launch.block = kThreads;
  launch.sharedBytes = layoutWith(request, stagesOf(request)).totalBytes();
  plan.launches.front().grid[0] = plan.launches.front().grid[0] * (LaunchExpr(1) - min(ofUnit, 1) * isServed);
  plan.launches.push_back(std::move(launch));
}

} // namespace heddle
