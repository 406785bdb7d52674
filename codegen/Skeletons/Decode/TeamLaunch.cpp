//===- TeamLaunch.cpp - host half of team_decode.cuh -------------------------------------------===//
//
// Owns which batch-invariant calls clusters compute, and the launch and the shared-memory plan of their kernel. Change it
// together with team_layout.cuh.
//
//===----------------------------------------------------------------------===//
#include "codegen/Skeletons/Decode/TeamLaunch.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Config/SmemLayout.h"
#include "codegen/Config/TraitsPrinter.h"
#include "codegen/Skeletons/Decode/ClusterLaunch.h"
#include "codegen/Skeletons/Decode/team_layout.cuh"
#include "codegen/Skeletons/Shared/BlockLimits.h"
#include "codegen/Target/GpuArch.h"
#include "runtime/Core/LaunchPlan.h"

#include <algorithm>

namespace heddle {
namespace {

using Symbol = LaunchSymbol;

constexpr int64_t kLeastStages = 2, kMostStages = 4;
constexpr int64_t kBarrierBytes = 8;

/// Clusters that run at once: blocks of one lie on SMs that lie together, so some SMs are left over, which ones differs. Of
/// the 132 of an H200 they were 12; a cluster more than fit waits for all others.
constexpr int64_t kUsedOfAll = 7, kAll = 8 * decode::kTeamBlocks;
/// Keys that there is room for, of each kv head: with more what takes time is memory, and other blocks use all SMs.
constexpr int64_t kMostKeys = 1 << 17;

/// Keys of a warp in a tile: as many bytes whatever the elements.
int64_t chunkN(const KernelRequest &request) {
  constexpr int64_t kChunk = 16, kWideBytes = 2;
  return kChunk * kWideBytes / traitsOf(request.elements.k).bytes;
}
int64_t blockN(const KernelRequest &request) { return chunkN(request) * decode::kTeamWarps; }

SmemLayout layoutWith(const KernelRequest &request, int64_t stages) {
  SmemLayout layout;
  layout.append("q", decode::kRows * rowBytes(request, request.headDim));
  layout.append("k", blockN(request) * keyRowBytes(request, request.headDim), stages);
  layout.append("v", blockN(request) * keyRowBytes(request, request.valueDim), stages);
  layout.append("slices", decode::kTeamBuffers * decode::kTeamBlocks * decode::kTeamSliceBytes);
  layout.append("words", decode::wordBytes<int64_t>(decode::kTeamWarps, chunkN(request)));
  layout.append("barrier", decode::kTeamBuffers * kBarrierBytes);
  return layout;
}

bool fits(const KernelRequest &request, int64_t stages) {
  return !whyNoSmemOfBlocks(*request.arch, layoutWith(request, stages).totalBytes(), decode::kTeamBlocksOfSm);
}

/// As many bytes under way as there is room for.
int64_t stagesOf(const KernelRequest &request) {
  int64_t stages = kMostStages;
  while (stages > kLeastStages && !fits(request, stages))
    --stages;
  return stages;
}

/// Keys of the first parts.
int64_t partKeys(int64_t blockN) { return std::max<int64_t>(decode::kPartKeys, blockN); }

} // namespace

bool hasTeamKernel(const KernelRequest &request) {
  return request.kind.base == KindBase::decodeInvariant && request.arch->features.hasClusters && packsHeads(request) &&
         request.variants.front().queryRate == 1 && request.variants.front().keyRates == std::vector<int64_t>{1} &&
         fits(request, kLeastStages);
}

KernelEntry teamEntry() {
  return {"heddle_team_kernel", "heddle::TeamDecode<TeamTraits, Pattern>", decode::kTeamBlocks};
}

std::string teamTraits(const KernelRequest &request, const DecodeConfig &config) {
  const int64_t stages = stagesOf(request);
  TraitsPrinter printer;
  printer.constant("kWarps", decode::kTeamWarps);
  printer.constant("kChunkN", chunkN(request));
  printer.constant("kBlockN", blockN(request));
  printer.constant("kStages", stages);
  printer.constant("kMinBlocks", decode::kTeamBlocksOfSm);
  printer.constant("kEvictTiles", config.evictTiles * config.blockN() / blockN(request));
  printer.smem(layoutWith(request, stages));
  return printer.str("TeamTraits : KernelTraits");
}

void appendTeamLaunch(LaunchPlan &plan, const KernelRequest &request, const DecodeConfig &config) {
  if (config.chunkN != chunkN(request) || partKeys(config.blockN()) != partKeys(blockN(request)))
    return;
  for (WorkspaceRegion &region : plan.regions)
    region.last = 1;
  KernelLaunch launch = plan.launches.front();
  const LaunchExpr kvHeads = max(LaunchExpr(Symbol::kvHeads), 1);
  const LaunchExpr rows = LaunchExpr(Symbol::seqlenQ) * floorDiv(Symbol::heads, kvHeads);
  const LaunchExpr units = max(LaunchExpr(Symbol::sequences) * Symbol::kvHeads, 1);
  const LaunchExpr keys = units * Symbol::pageSize * Symbol::maxPages;
  const LaunchExpr clusters = floorDiv(LaunchExpr(Symbol::smCount) * kUsedOfAll, kAll) * decode::kTeamBlocksOfSm;
  const LaunchExpr ofUnit = floorDiv(clusters, units);
  const LaunchExpr isServed =
      min(floorDiv(decode::kTeamRows, max(rows, 1)), 1) * min(floorDiv(kMostKeys, max(keys, 1)), 1);
  launch.entry = teamEntry().name;
  launch.grid = {min(ofUnit, decode::kMostTeamClusters) * isServed * decode::kTeamBlocks,
                 min(Symbol::kvHeads, clusters), min(Symbol::sequences, clusters)};
  launch.block = 32 * decode::kTeamWarps;
  launch.sharedBytes = layoutWith(request, stagesOf(request)).totalBytes();
  plan.launches.front().grid[0] = plan.launches.front().grid[0] * (LaunchExpr(1) - min(ofUnit, 1) * isServed);
  plan.launches.push_back(std::move(launch));
}

} // namespace heddle
