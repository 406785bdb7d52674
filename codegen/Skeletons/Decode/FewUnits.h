// What kernels by clusters of blocks have in common: which calls have so few units that clusters share each, and how such a
// kernel stands beside the one for other calls. Each skeleton of decode has one (ClusterLaunch.h, TeamLaunch.h).
#pragma once

#include "codegen/Config/SmemLayout.h"
#include "codegen/Skeletons/Decode/DecodeConfig.h"
#include "codegen/Skeletons/Shared/Skeleton.h"
#include "runtime/Core/LaunchExpr.h"

#include <functional>

namespace heddle {

struct KernelRequest;
struct LaunchPlan;

/// The heads that share keys keep the same pairs.
bool packsHeads(const KernelRequest &request);

/// A kernel by clusters, of one request.
class FewUnits {
public:
  struct Shape {
    int64_t warps, blocks, blocksOfSm; ///< of a block, of a cluster, of a processor
    int64_t rows;                      ///< most packed rows of a unit
    int64_t mostClusters;              ///< of a unit
    int64_t mostKeys;                  ///< of all units that there is room for, where all have one length
    int64_t mostBytes;                 ///< of keys and values under way in a block, where two tiles have no more
  };
  using Layout = std::function<SmemLayout(int64_t stages)>;

  FewUnits(const KernelRequest &request, const Shape &shape, Layout layout)
      : request(request), shape(shape), layout(std::move(layout)) {}

  /// The pattern has one lattice, and the architecture clusters with room for two tiles.
  bool areServed() const;

  /// A struct `name`Traits that differs from KernelTraits, which precedes it, in its numbers.
  std::string traits(const std::string &name, const DecodeConfig &config, int64_t chunkN) const;
  /// Behind the only launch of a plan; each has blocks, and something to clear, where the other one has none.
  void appendLaunch(LaunchPlan &plan, const std::string &entry) const;
  /// That run at once.
  LaunchExpr clusters() const;
  /// 1 where a call has few units, else 0.
  LaunchExpr isServed() const;

private:
  LaunchExpr clustersOfUnit() const;
  bool fits(int64_t stages) const;
  int64_t bytesOfTile() const;
  /// As many bytes under way as there is room for.
  int64_t stages() const;

  const KernelRequest &request;
  const Shape shape;
  const Layout layout;
};

} // namespace heddle
