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
/// Where units may have unlike lengths, keys of all that there is room for: one with most of them has its own clusters alone.
/// Of 40k, 2k and 300 keys, 4 kv heads, these take 47.8 us, 40.5 the blocks of other calls (H200).
constexpr int64_t kMostUnlike = 1 << 17;
/// More tiles of a block than others have leave the L2 first: 64k keys of 4 kv heads take 46.9 us, 49.6 us without (H200).
constexpr int64_t kEvictMore = 4;

} // namespace

bool packsHeads(const KernelRequest &request) { return !request.keepsByHead && request.variants.size() == 1; }

bool FewUnits::fits(int64_t stages) const {
  return !whyNoSmemOfBlocks(*request.arch, layout(stages).totalBytes(), shape.blocksOfSm);
}

int64_t FewUnits::stages() const {
  int64_t stages = kMostStages;
  while (stages > kLeastStages && (!fits(stages) || stages * bytesOfTile() > shape.mostBytes))
    --stages;
  return stages;
}

int64_t FewUnits::bytesOfTile() const {
  return layout(kLeastStages + 1).totalBytes() - layout(kLeastStages).totalBytes();
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
  printer.constant("kEvictTiles", kEvictMore * config.evictTiles * config.blockN() / blockN);
  printer.smem(layout(stages()));
  return printer.str(name + "Traits : KernelTraits");
}

LaunchExpr FewUnits::clusters() const {
  return floorDiv(LaunchExpr(Symbol::smCount) * kUsedShare, kOfAll * shape.blocks) * shape.blocksOfSm;
}

LaunchExpr FewUnits::clustersOfUnit() const {
  return floorDiv(clusters(), max(LaunchExpr(Symbol::sequences) * Symbol::kvHeads, 1));
}

LaunchExpr FewUnits::isServed() const {
  const LaunchExpr rows = LaunchExpr(Symbol::seqlenQ) * floorDiv(Symbol::heads, max(LaunchExpr(Symbol::kvHeads), 1));
  const LaunchExpr lists = LaunchExpr(Symbol::sequences) * Symbol::tables;
  const LaunchExpr keys = LaunchExpr(Symbol::sequences) * Symbol::kvHeads * Symbol::pageSize * Symbol::maxPages;
  const LaunchExpr areAlike = min(floorDiv(1, max(lists, 1)), 1);
  const LaunchExpr most = areAlike * shape.mostKeys + (LaunchExpr(1) - areAlike) * kMostUnlike;
  return min(floorDiv(shape.rows, max(rows, 1)), 1) * min(clustersOfUnit(), 1) * min(floorDiv(most, max(keys, 1)), 1);
}

void FewUnits::appendLaunch(LaunchPlan &plan, const std::string &entry) const {
  for (WorkspaceRegion &region : plan.regions)
    region.last = 1;
  KernelLaunch launch = plan.launches.front();
  launch.entry = entry;
  launch.grid = {min(Symbol::kvHeads, clusters()) * shape.blocks, min(Symbol::sequences, clusters()),
                 min(clustersOfUnit(), shape.mostClusters) * isServed()};
  launch.block = 32 * shape.warps;
  launch.sharedBytes = layout(stages()).totalBytes();
  KernelLaunch &other = plan.launches.front();
  other.grid[0] = other.grid[0] * (LaunchExpr(1) - isServed());
  plan.launches.push_back(std::move(launch));
}

} // namespace heddle
