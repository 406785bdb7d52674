//===- BackwardLaunch.h - what launches of backward kernels share ------------------------------===//
//
// Owns the launches around the walks (heddle_prepare and heddle_finish), the workspace that they pass to each other and
// the numbered key tiles. Change it together with backward_rows.cuh, row_statistics.cuh, query_sums.cuh and
// walk_items.cuh.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "codegen/Config/PatternRates.h"
#include "runtime/Core/LaunchPlan.h"

namespace heddle {

struct KernelRequest;
class TraitsPrinter;

constexpr int64_t kWarpLanes = 32, kFloatBytes = 4;
constexpr int64_t kSumGroupColumns = 16; ///< columns of the sums of d_q are a multiple of it

/// The plan in the making, and what its launches have in common.
struct BackwardPlan {
  /// Steps of `blockM` queries, blocks of `blockN` keys; `queryRates`: KernelTraits::kQueryRates.
  BackwardPlan(const KernelRequest &request, int64_t blockM, int64_t blockN, const std::vector<int64_t> &queryRates);

  KernelLaunch &append(const char *entry, LaunchExpr grid, int64_t threads);
  /// Of floats, `sets` of the rows that tiles of all heads have; it lives through the launches from `first` to `last`.
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

/// Appends heddle_prepare, which also adds up the gradient of a sink; all gradients of arguments are cleared before it.
void appendPrepare(BackwardPlan &to, const Statistics &statistics);

/// The fp32 sums of d_q: `columns` of each row, in a region that lives through the launches from `first` to `last`.
struct QuerySums {
  QuerySums(BackwardPlan &to, int64_t columns, int64_t first, int64_t last);
  void clearBefore(KernelLaunch &launch) const;

  LaunchExpr words;
  PointerSource place;
};

/// The turns of those who add to sums in order, and the counter of the blocks that began (query_sums.cuh), likewise.
struct SumOrder {
  SumOrder(BackwardPlan &to, int64_t first, int64_t last);
  void clearBefore(KernelLaunch &launch) const;

  LaunchExpr words;
  PointerSource place;
};

/// Appends heddle_finish, which turns sums into d_q; `order` where there is one.
void appendFinish(BackwardPlan &to, const PointerSource &sums, const PointerSource *order = nullptr);

/// Of this kind or another that has gradients.
bool isBackward(std::string_view kind);

/// Rates of the keys that a block may have, ascending: those of heads, and the common ones of heads that share keys.
std::vector<int64_t> keyItemRates(const KernelRequest &request);

/// Blocks of a walk over key tiles: those of all kv heads, at most.
LaunchExpr keyItems(const KernelRequest &request, int64_t blockN);

/// (batch, kv head) pairs whose key tiles run side by side: as many as share `mib` of what they read and add.
LaunchExpr keyRaster(const KernelRequest &request, int64_t sumColumns, int64_t mib);

/// Likewise of a walk over query tiles, and (batch, head) pairs that share `mib` of K and V.
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
