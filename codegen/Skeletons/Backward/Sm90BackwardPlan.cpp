// Of floats their rows as fp16; statistics of all rows; of gradient(detached) the deltas of the branches; the walk over key tiles; and d_q from its
// sums or by a walk over query tiles. Change it together with sm90_backward_params.cuh and backward_rows.cuh.
#include "codegen/Skeletons/Backward/Sm90BackwardConfig.h"
#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Backward/Sm90Raised.h"

#include <optional>

namespace heddle {
namespace {

using namespace sm90;
using Symbol = LaunchSymbol;

/// A plan with the configuration that it is made by.
struct Sm90Plan : BackwardPlan {
  const Sm90BackwardConfig &config;
  std::optional<RaisedRows> raised = {}; ///< what walks read in the place of tensors of the call
};

/// Maps of both operands of the rows of an item, then of those of the columns of a step.
void appendMaps(Sm90Plan &to, KernelLaunch &launch, bool ofQueries) {
  const KernelRequest &request = to.request;
  const MapRates rates = backwardRates(request);
  const int64_t items = to.config.blockN, steps = to.config.blockM;
  const int64_t m = ofQueries ? items : steps, n = ofQueries ? steps : items;
  MapOperand k = {Role::k, request.elements.k, Symbol::seqlenK, Symbol::kvHeads, request.headDim, n};
  MapOperand v = {Role::v, request.elements.v, Symbol::seqlenK, Symbol::kvHeads, request.valueDim, n};
  MapOperand q = {Role::q, request.elements.q, Symbol::seqlenQ, Symbol::heads, request.headDim, m};
  MapOperand out = {Role::dOut, request.elements.out, Symbol::seqlenQ, Symbol::heads, request.valueDim, m};
  if (to.raised)
    for (const auto &[operand, copy] : {std::pair(&k, &to.raised->k), std::pair(&v, &to.raised->v),
                                        std::pair(&q, &to.raised->q), std::pair(&out, &to.raised->dOut)})
      *operand = raisedOperand(request, *operand, *copy);
  for (int part = 0; part < 2; ++part) {
    const bool queries = (part == 0) == ofQueries;
    appendTensorMaps(launch, queries ? q : k, queries ? rates.key : rates.query, rates.mapsPerRate());
    appendTensorMaps(launch, queries ? out : v, queries ? rates.key : rates.query, rates.mapsPerRate());
  }
}

/// The rows of a tile at a time.
TensorMapSpec statisticsMap(const Sm90Plan &to, const PointerSource &source) {
  TensorMapSpec map;
  map.source = source;
  map.dtype = kAccumulator;
  const int64_t sets = std::max(to.rateSets, to.branches());
  map.dims = {to.config.blockM, max(LaunchExpr(sets) * to.heads * floorDiv(to.statisticsRows, to.config.blockM), 1)};
  map.strideBytes = {to.config.blockM * kFloatBytes};
  map.box = {to.config.blockM, 1};
  return map;
}

void appendFactorMaps(const Sm90Plan &to, KernelLaunch &launch) {
  const MapRates rates = backwardRates(to.request);
  for (const PointerSource &factors : {to.raised->queryFactors, to.raised->outFactors})
    launch.appendTensorMap(statisticsMap(to, factors));
  appendTensorMaps(launch, keyFactorOperand(*to.raised, to.config.blockM), rates.query, rates.mapsPerRate());
}

/// Grid, order and operands of a walk.
struct Walk {
  const char *entry;
  bool ofQueries;
  LaunchExpr items, raster;
  PointerSource sums;    ///< what it adds to
  PointerSource between; ///< what blocks leave for each other
  LaunchExpr pairs;      ///< (batch, head) of whose items the first ones may be shared
  int64_t sharedPieces;  ///< groups of eight columns that a block of a team leaves; 0: there are no teams
};

/// A counter of each team, then the sums of its blocks (sm90_cta_teams.cuh).
PointerSource appendTeams(Sm90Plan &to, KernelLaunch &launch, const Walk &walk) {
  constexpr int64_t kPieceColumns = 8;
  const int64_t blockFloats = to.config.blockN * kPieceColumns * walk.sharedPieces;
  const LaunchExpr teams = walk.pairs * kTeamItems,
                   counters = ceilDiv(teams, kTeamCounters) * LaunchExpr(kTeamCounters),
                   floats = counters + teams * LaunchExpr(to.config.longSplit * blockFloats);
  const int64_t number = int64_t(to.plan.launches.size()) - 1;
  const PointerSource place = to.plan.appendRegion("team_sums", floats * LaunchExpr(kFloatBytes), number, number);
  launch.clears.push_back({place, 0, counters, 0});
  launch.grid[0] = launch.grid[0] + teams * LaunchExpr(to.config.longSplit);
  return place;
}

KernelLaunch &appendWalk(Sm90Plan &to, const Statistics &statistics, const Walk &walk) {
  const KernelRequest &request = to.request;
  KernelLaunch &launch =
      to.append(walk.entry, walk.items,
                (consumersOf(request, to.config) + 1 + to.config.hasReducer()) * kProducerWarps * kWarpLanes);
  launch.sharedBytes = backwardSmem(request, to.config).totalBytes();
  appendOperands(launch, request);
  appendGradients(launch, request);
  if (to.raised)
    for (const PointerSource &factors : {to.raised->queryFactors, to.raised->outFactors, to.raised->keyFactors})
      launch.appendPointer(factors);
  appendMaps(to, launch, walk.ofQueries);
  for (const PointerSource &source : {statistics.lse, statistics.delta})
    launch.appendTensorMap(statisticsMap(to, source));
  if (to.raised)
    appendFactorMaps(to, launch);
  for (const PointerSource &source :
       {PointerSource(Role::dK), PointerSource(Role::dV), statistics.lse, statistics.delta, walk.sums})
    launch.appendPointer(source);
  launch.appendPointer(to.config.hasTeams() && walk.sharedPieces ? appendTeams(to, launch, walk) : walk.between);
  launch.appendPointer(Role::dQ);
  for (Role role : {Role::dK, Role::dV, Role::dQ})
    appendStrides(launch, role);
  appendCallSizes(launch, request.qOrigin);
  launch.appendI32(walk.raster);
  appendRuntimeSizes(launch, request);
  return launch;
}

Walk walkOfKeys(const Sm90Plan &to, const char *entry, const PointerSource &sums, const PointerSource &between) {
  return {entry,
          false,
          keyItems(to.request, to.config.blockN),
          keyRaster(to.request, sumColumns(to.request, to.config), to.config.rasterMib),
          sums,
          between,
          LaunchExpr(Symbol::batch) * Symbol::kvHeads,
          (to.request.headDim + to.request.valueDim) / 8};
}

/// Heads whose K and V fit `raster_mib` run side by side.
Walk walkOfQueries(const Sm90Plan &to, const char *entry, const PointerSource &sums, bool ofGradient) {
  return {entry, true,     queryItems(to.request, to.config.blockN), queryRaster(to.request, to.config.rasterMib), sums,
          sums,  to.heads, ofGradient ? to.request.headDim / 8 : 0};
}

} // namespace

LaunchPlan sm90BackwardPlan(const KernelRequest &request, const Sm90BackwardConfig &config) {
  Sm90Plan to{BackwardPlan(request, config.blockM, config.blockN, backwardRates(request).key), config};
  const int64_t first = isRaised(request), walk = first + (request.isDetached ? 2 : 1),
                last = walk + config.walksQueries(); // numbers of launches
  if (isRaised(request))
    to.raised = appendRaiseRows(to, last);
  Statistics statistics{to.appendRows("lse", to.rateSets, first, last),
                        to.appendRows("delta", to.rateSets, first, request.isDetached ? first + 1 : last)};
  appendPreprocess(to, statistics);
  if (request.isDetached) {
    const PointerSource deltas = to.appendRows("branch_delta", to.branches(), first + 1, last);
    appendWalk(to, statistics, walkOfQueries(to, "heddle_branch_deltas", deltas, false))
        .clears.push_back({deltas, 0, to.rowsOf(to.branches()), 0}); // of rows that do not exist
    statistics.delta = deltas;
  }
  if (config.walksQueries()) {
    appendWalk(to, statistics, walkOfKeys(to, "heddle_kernel", statistics.delta, statistics.delta)); // adds to nothing
    appendWalk(to, statistics, walkOfQueries(to, "heddle_query_walk", statistics.delta, true));
    return std::move(to.plan);
  }
  const ClearedRegion sums =
      dqAccumulation(to, sumColumns(request, config) * sumSplits(request, config), walk, walk + 1);
  if (config.isOrdered()) {
    const ClearedRegion order = dqOrder(to, walk, walk + 1);
    order.clearBefore(appendWalk(to, statistics, walkOfKeys(to, "heddle_kernel", sums.place, order.place)));
    appendConvertDq(to, sums.place, &order.place);
  } else {
    sums.clearBefore(appendWalk(to, statistics, walkOfKeys(to, "heddle_kernel", sums.place, sums.place)));
    appendConvertDq(to, sums.place);
  }
  return std::move(to.plan);
}

} // namespace heddle
