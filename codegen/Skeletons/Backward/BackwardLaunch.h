// Owns the launches around the walks (heddle_backward_preprocess and heddle_convert_dq), the workspace that they pass
// to each other and the numbered key tiles. Change it together with backward_rows.cuh, row_statistics.cuh,
// dq_accumulation.cuh and walk_items.cuh.
#pragma once

#include "codegen/Config/PatternRates.h"
#include "codegen/Skeletons/Backward/dq_layout.cuh"
#include "codegen/Skeletons/Shared/Skeleton.h"
#include "runtime/Core/LaunchPlan.h"

namespace heddle {

struct KernelRequest;
class TraitsPrinter;

constexpr int64_t kWarpLanes = 32, kFloatBytes = 4;

/// The walks over tiles and the launches around them.
std::vector<KernelEntry> backwardEntries();

/// The plan in the making, and what its launches have in common.
struct BackwardPlan {
  /// Steps of `blockM` queries, blocks of `blockN` keys; `queryRates`: KernelTraits::kQueryRates.
  BackwardPlan(const KernelRequest &request, int64_t blockM, int64_t blockN, const std::vector<int64_t> &queryRates);

  KernelLaunch &append(const char *entry, LaunchExpr grid, int64_t threads);
  /// Floats for `sets` of the rows that tiles of all heads have; they live through the launches from `first` to `last`.
  PointerSource appendRows(const char *name, int64_t sets, int64_t first, int64_t last);
  LaunchExpr rowsOf(int64_t sets) const;
  int64_t branches() const;

  const KernelRequest &request;
  int64_t blockM;
  int64_t rateSets; ///< distinct rates of queries
  LaunchPlan plan;
  LaunchExpr heads;          ///< of all batches
  LaunchExpr statisticsRows; ///< of a head, by the rate that has most
};

/// What row_statistics.cuh says of every row.
struct Statistics {
  PointerSource lse, delta;
};

/// Appends the pointers to the gradients of what scores read, behind those of operands.
void appendGradients(KernelLaunch &launch, const KernelRequest &request);

/// Appends heddle_backward_preprocess, which also adds up the gradient of a sink; all gradients of arguments are
/// cleared before it.
void appendPreprocess(BackwardPlan &to, const Statistics &statistics);

/// Words that are zero when a launch begins, in a region that lives through the launches from `first` to `last`.
struct ClearedRegion {
  ClearedRegion(BackwardPlan &to, const char *name, LaunchExpr words, int64_t first, int64_t last);
  void clearBefore(KernelLaunch &launch) const { launch.clears.push_back({place, 0, words, 0}); }

  LaunchExpr words;
  PointerSource place;
};

/// The fp32 sums of d_q: `columns` of each row.
ClearedRegion dqAccumulation(BackwardPlan &to, int64_t columns, int64_t first, int64_t last);

/// The turns of those who add to sums in order, and the counter of the blocks that began (dq_accumulation.cuh).
ClearedRegion dqOrder(BackwardPlan &to, int64_t first, int64_t last);

/// Appends heddle_convert_dq, which turns sums into d_q; `order` where there is one.
void appendConvertDq(BackwardPlan &to, const PointerSource &sums, const PointerSource *order = nullptr);

/// Rates of the keys that a block may have, ascending: those of heads, and the common ones of heads that share keys.
std::vector<int64_t> keyItemRates(const KernelRequest &request);

/// Blocks of a walk over key tiles: those of all kv heads, at most.
LaunchExpr keyItems(const KernelRequest &request, int64_t blockN);

/// (batch, kv head) pairs whose key tiles run side by side: as many as share `mib` of what they read and add.
LaunchExpr keyRaster(const KernelRequest &request, int64_t sumColumns, int64_t mib);

/// The same of a walk over query tiles: its raster is the (batch, head) pairs that share `mib` of K and V.
LaunchExpr queryItems(const KernelRequest &request, int64_t blockN);
LaunchExpr queryRaster(const KernelRequest &request, int64_t mib);

/// unsupported: gradients whose bits depend on the run, where they must not.
Status checkOrderOfGradients(const KernelRequest &request);

/// KernelTraits::kTilesAreWhole, kSquare and kSquaresHaveBand: squares in which 16 rows of a warp and the columns of a
/// step lie as a whole; 1: there are none.
struct TileGrain {
  TileGrain(const KernelRequest &request, int64_t blockM, int64_t blockN);
  void print(TraitsPrinter &printer) const;

  int64_t tilesAreWhole, square;
  bool hasBand; ///< which cuts the squares
};

/// Constants of backward_rows.cuh, gradient_rows.cuh, walk_items.cuh, row_statistics.cuh and argument_gradients.cuh.
void printRowTraits(TraitsPrinter &printer, const KernelRequest &request, const std::vector<int64_t> &queryRates);

} // namespace heddle
