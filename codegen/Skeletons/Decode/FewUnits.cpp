#include "codegen/Skeletons/Decode/FewUnits.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Config/TraitsPrinter.h"
#include "codegen/Skeletons/Shared/BlockLimits.h"
#include "codegen/Target/GpuArch.h"
#include "runtime/Core/LaunchPlan.h"

namespace heddle {
namespace {

using Symbol = LaunchSymbol;

constexpr int64_t kLeastStages = 2, kMostStages = 4;

/// Clusters that run at once: blocks of one lie on SMs that lie together, so some SMs are left over, which ones differs. Of
/// the 132 of an H200 they were 12 of 8 blocks; a cluster more than fit waits for all others.
constexpr int64_t kUsedShare = 7, kOfAll = 8;
/// Keys that there is room for, of each kv head: with more what takes time is memory, and other blocks use all SMs.
constexpr int64_t kMostKeys = 1 << 17;

} // namespace

bool packsHeads(const KernelRequest &request) { return !request.keepsByHead && request.variants.size() == 1; }

bool FewUnits::fits(int64_t stages) const {
  return !whyNoSmemOfBlocks(*request.arch, layout(stages).totalBytes(), shape.blocksOfSm);
}

int64_t FewUnits::stages() const {
  int64_t stages = kMostStages;
  while (stages > kLeastStages && !fits(stages))
    --stages;
  return stages;
}

bool FewUnits::areServed() const {
  return request.arch->features.hasClusters && packsHeads(request) && request.variants.front().queryRate == 1 &&
         request.variants.front().keyRates == std::vector<int64_t>{1} && fits(kLeastStages);
}

std::string FewUnits::traits(const std::string &name, const DecodeConfig &config, int64_t chunkN) const {
  const int64_t blockN = chunkN * shape.warps;
  TraitsPrinter printer;
  printer.constant("kWarps", shape.warps);
  printer.constant("kChunkN", chunkN);
  printer.constant("kBlockN", blockN);
  printer.constant("kStages", stages());
  printer.constant("kMinBlocks", shape.blocksOfSm);
  printer.constant("kEvictTiles", config.evictTiles * config.blockN() / blockN);
  printer.smem(layout(stages()));
  return printer.str(name + "Traits : KernelTraits");
}

void FewUnits::appendLaunch(LaunchPlan &plan, const std::string &entry) const {
  for (WorkspaceRegion &region : plan.regions)
    region.last = 1;
  KernelLaunch launch = plan.launches.front();
  const LaunchExpr kvHeads = max(LaunchExpr(Symbol::kvHeads), 1);
  const LaunchExpr rows = LaunchExpr(Symbol::seqlenQ) * floorDiv(Symbol::heads, kvHeads);
  const LaunchExpr units = max(LaunchExpr(Symbol::sequences) * Symbol::kvHeads, 1);
  const LaunchExpr keys = units * Symbol::pageSize * Symbol::maxPages;
  const LaunchExpr clusters =
      floorDiv(LaunchExpr(Symbol::smCount) * kUsedShare, kOfAll * shape.blocks) * shape.blocksOfSm;
  const LaunchExpr ofUnit = floorDiv(clusters, units);
  const LaunchExpr isServed = min(floorDiv(shape.rows, max(rows, 1)), 1) * min(floorDiv(kMostKeys, max(keys, 1)), 1);
  launch.entry = entry;
  launch.grid = {min(ofUnit, shape.mostClusters) * isServed * shape.blocks, min(Symbol::kvHeads, clusters),
                 min(Symbol::sequences, clusters)};
  launch.block = 32 * shape.warps;
  launch.sharedBytes = layout(stages()).totalBytes();
  plan.launches.front().grid[0] = plan.launches.front().grid[0] * (LaunchExpr(1) - min(ofUnit, 1) * isServed);
  plan.launches.push_back(std::move(launch));
}

} // namespace heddle
