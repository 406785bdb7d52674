//===- Sm90Backward.cpp - host half of sm90_backward.cuh ---------------------------------------===//
//
// Owns what the Hopper backward skeleton serves, its search space, constraints, shared memory and its launches:
// delta of all rows, the walk over key tiles, and d_q from its sums or by a walk over query tiles. Change it together with sm90_backward.cuh and
// backward_rows.cuh.
//
//===----------------------------------------------------------------------===//
#include "codegen/Config/ConfigView.h"
#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Config/SmemLayout.h"
#include "codegen/Config/TraitsPrinter.h"
#include "codegen/Skeletons/Backward/BackwardLaunch.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Skeletons/Shared/ScheduleFacts.h"
#include "codegen/Skeletons/Shared/TensorMapLaunch.h"
#include "codegen/Skeletons/Shared/sm90_layout.cuh"
#include "codegen/Target/GpuArch.h"

#include <algorithm>

namespace heddle {
namespace {

using namespace sm90;
using Reason = std::optional<std::string>;
using Symbol = LaunchSymbol;

constexpr int64_t kMaxGradientDim = 128;
constexpr int64_t kScoreStages = 2;
constexpr int64_t kLeastRegisters = 24, kMostRegisters = 240, kRegisterStep = 8;
constexpr int64_t kPoolRegisters = 3 * 168; // of three warpgroups at their launch, for each thread of one

struct Sm90BackwardConfig {
  int64_t blockM = 64;            ///< queries of a step
  int64_t blockN = 128;           ///< keys of a block
  int64_t stages = 2;             ///< tiles of q and of d_out in shared memory
  int64_t reduce = kReduceCopies; ///< how the query gradient comes about (sm90_layout.cuh)
  int64_t producerRegisters = 24; ///< of a thread of the producing warpgroup, after launch; the others get the rest
  int64_t rasterReversed = 0;     ///< 1: last key tile first
  int64_t rasterMib = 32;         ///< what the heads that run side by side read and add, in MiB

  Sm90BackwardConfig() = default;
  Sm90BackwardConfig(const KernelConfig &config) { readFields(config, *this); }
  operator KernelConfig() const { return writeFields(*this); }

  int64_t consumers() const { return blockN / kConsumerRows; }
  int64_t consumerRegisters() const {
    const int64_t left = (kPoolRegisters - producerRegisters) / 2 / kRegisterStep * kRegisterStep;
    return consumers() == 1 ? kMostRegisters : std::min(left, kMostRegisters);
  }
  bool splitsColumns() const { return blockM == kConsumerRows; }
  bool walksQueries() const { return reduce == kReduceNone; }

  static const FieldsOf<Sm90BackwardConfig> &fields() {
    using C = Sm90BackwardConfig;
    static const FieldsOf<C> list = {"sm90_backward",
                                     {{"block_m", &C::blockM, kConsumerRows, kMaxKeys},
                                      {"block_n", &C::blockN, kConsumerRows, kMaxKeys},
                                      {"stages", &C::stages, 2, 4},
                                      {"reduce", &C::reduce, kReduceRegisters, kReduceNone},
                                      {"producer_registers", &C::producerRegisters, kLeastRegisters, kMostRegisters},
                                      {"raster_reversed", &C::rasterReversed, 0, 1},
                                      {"raster_mib", &C::rasterMib, 1, kLargestField}}};
    return list;
  }
};

int64_t roundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

/// Columns that a consumer computes of the query gradient: all, or a part that begins and ends in one column of 64
/// elements of the tile of keys, or at its borders.
int64_t sumColumns(const KernelRequest &request, const Sm90BackwardConfig &config) {
  if (!config.splitsColumns() || config.consumers() == 1)
    return roundUp(request.headDim, kSumGroupColumns);
  int64_t columns = kSumGroupColumns;
  while (columns * config.consumers() < request.headDim)
    columns *= 2;
  return columns;
}

int64_t sumSplits(const Sm90BackwardConfig &config) { return config.splitsColumns() ? config.consumers() : 1; }

/// Of both walks: `query` are those of keys, as in KernelRequest::transposed.
MapRates ratesOf(const KernelRequest &request) {
  std::vector<VariantRates> both = request.transposed;
  for (const VariantRates &variant : request.variants)
    for (int64_t keyRate : variant.keyRates)
      both.push_back({keyRate, {variant.queryRate}});
  return MapRates::of(both);
}

bool hasRates(const std::vector<int64_t> &rates) { return rates != std::vector<int64_t>{1}; }

SmemLayout smemOf(const KernelRequest &request, const Sm90BackwardConfig &config) {
  const int64_t bytes = request.element().bytes;
  SmemLayout layout(kTileAlignment);
  layout.append("barriers", kBarrierBytes);
  layout.append("k", tileBytes(config.blockN, request.headDim, bytes));
  layout.append("v", tileBytes(config.blockN, request.valueDim, bytes));
  layout.append("q", tileBytes(config.blockM, request.headDim, bytes), config.stages);
  layout.append("out", tileBytes(config.blockM, request.valueDim, bytes), config.stages);
  layout.append("scores", config.walksQueries() ? 0 : tileBytes(config.blockN, config.blockM, bytes), kScoreStages);
  layout.append("gradient",
                config.reduce == kReduceCopies ? kConsumerRows * sumColumns(request, config) * kFloatBytes : 0,
                config.consumers());
  layout.append("statistics", 2 * config.blockM * kFloatBytes * config.stages);
  return layout;
}

Reason checkTiles(const KernelRequest &request, const Sm90BackwardConfig &config) {
  if (config.blockN != kConsumerRows && config.blockN != 2 * kConsumerRows)
    return "block_n is " + std::to_string(config.blockN) + ", expected 64 or 128";
  if (config.blockM != kConsumerRows && config.blockM != config.blockN)
    return "block_m is " + std::to_string(config.blockM) + ", expected 64 or block_n";
  return std::nullopt;
}

Reason checkRegisters(const KernelRequest &request, const Sm90BackwardConfig &config) {
  // Of each lane: what stays, and what lives while the query gradient leaves.
  const int64_t kept = (request.headDim + request.valueDim) / 2, scores = config.blockM / 2;
  const int64_t queryGradient = config.walksQueries() ? scores / 2 : sumColumns(request, config) / 2;
  const int64_t need = kept + scores + scores / 2 + (request.hasScores ? scores / 2 : 0) + queryGradient;
  if (config.producerRegisters % kRegisterStep != 0)
    return "producer_registers is " + std::to_string(config.producerRegisters) + ", expected a multiple of " +
           std::to_string(kRegisterStep);
  const int64_t most = config.consumerRegisters() - 16; // for addresses and cursors
  if (need <= most)
    return std::nullopt;
  return "sums and scores take " + std::to_string(need) + " registers of a thread, " + std::to_string(most) +
         " are left";
}

Reason checkSmem(const KernelRequest &request, const Sm90BackwardConfig &config) {
  const int64_t need = smemOf(request, config).totalBytes(), most = int64_t(request.arch->smemPerBlockBytes);
  if (need <= most)
    return std::nullopt;
  return "need " + std::to_string(need) + " B of shared memory, " + std::string(request.arch->name) + " allows " +
         std::to_string(most) + " B";
}

Reason checkReduce(const KernelRequest &request, const Sm90BackwardConfig &config) {
  if (config.reduce != kReduceCopies || !hasRates(MapRates::of(request.transposed).key))
    return std::nullopt;
  return "tiles of rows at a stride are no copies in a row, expected reduce=0";
}

/// With the configuration that it is made by.
struct Sm90Plan : BackwardPlan {
  const Sm90BackwardConfig &config;
};

/// Maps of both operands of the rows of an item, then of those of the columns of a step.
void appendMaps(Sm90Plan &to, KernelLaunch &launch, bool ofQueries) {
  const KernelRequest &request = to.request;
  const MapRates rates = ratesOf(request);
  const int64_t items = to.config.blockN, steps = to.config.blockM;
  const int64_t m = ofQueries ? items : steps, n = ofQueries ? steps : items;
  const MapOperand k = {Role::k, request.kType, Symbol::seqlenK, Symbol::kvHeads, request.headDim, n};
  const MapOperand v = {Role::v, request.vType, Symbol::seqlenK, Symbol::kvHeads, request.valueDim, n};
  const MapOperand q = {Role::q, request.qType, Symbol::seqlenQ, Symbol::heads, request.headDim, m};
  const MapOperand out = {Role::dOut, request.outType, Symbol::seqlenQ, Symbol::heads, request.valueDim, m};
  for (int part = 0; part < 2; ++part) {
    const bool queries = (part == 0) == ofQueries;
    appendTensorMaps(launch, queries ? q : k, queries ? rates.key : rates.query, rates.mapsPerRate());
    appendTensorMaps(launch, queries ? out : v, queries ? rates.key : rates.query, rates.mapsPerRate());
  }
}

/// Grid, order and operands of a walk.
struct Walk {
  const char *entry;
  bool ofQueries;
  LaunchExpr items, raster;
  PointerSource sums; ///< what it adds to
};

KernelLaunch &appendWalk(Sm90Plan &to, const Statistics &statistics, const Walk &walk) {
  const KernelRequest &request = to.request;
  KernelLaunch &launch = to.append(walk.entry, walk.items, (to.config.consumers() + 1) * kProducerWarps * kWarpLanes);
  launch.sharedBytes = smemOf(request, to.config).totalBytes();
  appendOperands(launch, request);
  appendMaps(to, launch, walk.ofQueries);
  for (const PointerSource &source : {PointerSource(Role::dK), PointerSource(Role::dV), statistics.lse,
                                      statistics.delta, walk.sums, PointerSource(Role::dQ)})
    launch.appendPointer(source);
  for (Role role : {Role::dK, Role::dV, Role::dQ})
    appendStrides(launch, role);
  appendCallSizes(launch, request.qOrigin);
  launch.appendI32(walk.raster);
  appendRuntimeSizes(launch, request);
  return launch;
}

Walk walkOfKeys(const Sm90Plan &to, const char *entry, const PointerSource &sums) {
  return {entry, false, keyItems(to.request, to.config.blockN),
          keyRaster(to.request, sumColumns(to.request, to.config), to.config.rasterMib), sums};
}

/// Heads whose K and V fit `raster_mib` run side by side.
Walk walkOfQueries(const Sm90Plan &to, const char *entry, const PointerSource &sums) {
  const KernelRequest &request = to.request;
  LaunchExpr items = 0;
  for (const VariantRates &variant : request.variants)
    items = max(items,
                LaunchExpr(variant.queryRate) * ceilDiv(ceilDiv(Symbol::seqlenQ, variant.queryRate), to.config.blockN));
  const LaunchExpr bytesOfHead =
      max(Symbol::seqlenK, 1) * ((request.headDim + request.valueDim) * request.element().bytes);
  const LaunchExpr group = floorDiv(Symbol::heads, Symbol::kvHeads);
  const LaunchExpr raster =
      max(min(floorDiv(to.config.rasterMib * (int64_t(1) << 20), bytesOfHead) * group, to.heads), 1);
  return {entry, true, to.heads * items, raster, sums};
}

class Sm90Backward final : public Skeleton {
public:
  const ConfigFields &fields() const override { return configFields<Sm90BackwardConfig>(); }
  std::string_view kind() const override { return "backward"; }
  bool servesArch(const GpuArch &arch) const override { return arch.features.hasWgmma && arch.features.hasTma; }

  std::vector<Knob> knobs(const KernelRequest &) const override {
    return {
        {"block_m", "queries of a step: fewer barriers, more registers", {64, 128}},
        {"block_n", "keys of a block, 64 for each warpgroup: fewer additions to the query gradient", {64, 128}},
        {"stages", "tiles of q and d_out in shared memory: deeper prefetch", {2, 3}},
        {"reduce",
         "how the query gradient comes about: added to sums from registers or by copies, in no order, or by a walk of "
         "its own",
         {kReduceRegisters, kReduceCopies, kReduceNone},
         {"registers", "copies", "walk"}},
        {"raster_reversed", "key tiles in descending order", {0, 1}, {"no", "yes"}},
        {"raster_mib", "what heads that run side by side read and add, in MiB: what should stay in L2", {8, 32, 64}}};
  }

  const std::vector<Constraint> &constraints() const override {
    using C = Sm90BackwardConfig;
    static const std::vector<Constraint> list = {
        {"ranges", "every field lies in its range", checkRanges},
        {"tiles", "consumers have 64 keys each, and 64 rows or some columns of the query gradient",
         ruleOf<C, checkTiles>},
        {"registers", "sums and scores of a step fit the registers", ruleOf<C, checkRegisters>},
        {"smem", "tiles fit the shared memory of a block", ruleOf<C, checkSmem>},
        {"reduce", "copies add rows that follow each other", ruleOf<C, checkReduce>},
    };
    return list;
  }

  // Steps of 128 queries where registers allow them.
  KernelConfig defaultConfig(const KernelRequest &request) const override {
    Sm90BackwardConfig config;
    config.reduce = hasRates(MapRates::of(request.transposed).key) ? kReduceRegisters : kReduceCopies;
    Sm90BackwardConfig wide = config;
    wide.blockM = 2 * kConsumerRows;
    return !request.hasScores && !whyInfeasible(request, wide) ? wide : config;
  }

  // Fewer queries a step, then a walk of its own for d_q, which leaves the producing threads more registers: ranges of
  // many pieces want them.
  std::vector<KernelConfig> spareConfigs(const KernelRequest &request) const override {
    std::vector<KernelConfig> spares;
    const auto offer = [&](Sm90BackwardConfig config) {
      for (int64_t blockM : {2 * kConsumerRows, kConsumerRows}) {
        config.blockM = blockM;
        if (!whyInfeasible(request, config))
          spares.push_back(config);
      }
    };
    Sm90BackwardConfig config;
    config.reduce = hasRates(MapRates::of(request.transposed).key) ? kReduceRegisters : kReduceCopies;
    offer(config);
    config.reduce = kReduceNone;
    for (int64_t producerRegisters : {24, 56, 88}) {
      config.producerRegisters = producerRegisters;
      offer(config);
    }
    config.blockN = kConsumerRows;
    config.producerRegisters = 120;
    offer(config);
    return spares;
  }

  ScheduleFacts schedule(const KernelConfig &config) const override {
    ScheduleFacts facts;
    facts.blockM = Sm90BackwardConfig(config).blockM;
    facts.blockN = Sm90BackwardConfig(config).blockN;
    return facts;
  }

  SmemLayout planSmem(const KernelRequest &request, const KernelConfig &config) const override {
    return smemOf(request, config);
  }

  LaunchPlan planLaunch(const KernelRequest &request, const KernelConfig &given) const override {
    const Sm90BackwardConfig config(given);
    Sm90Plan to{BackwardPlan(request, config.blockM, ratesOf(request).key), config};
    const int64_t walk = request.isDetached ? 2 : 1, last = walk + config.walksQueries(); // numbers of launches
    Statistics statistics{to.appendRows("lse", to.rateSets, 0, last),
                          to.appendRows("delta", to.rateSets, 0, request.isDetached ? 1 : last)};
    appendPrepare(to, statistics);
    if (request.isDetached) {
      const PointerSource deltas = to.appendRows("branch_delta", to.branches(), 1, last);
      appendWalk(to, statistics, walkOfQueries(to, "heddle_branch_deltas", deltas))
          .clears.push_back({deltas, 0, to.rowsOf(to.branches()), 0}); // of rows that do not exist
      statistics.delta = deltas;
    }
    if (config.walksQueries()) {
      appendWalk(to, statistics, walkOfKeys(to, "heddle_kernel", statistics.delta)); // adds to nothing
      appendWalk(to, statistics, walkOfQueries(to, "heddle_query_walk", statistics.delta));
      return std::move(to.plan);
    }
    const QuerySums sums(to, sumColumns(request, config) * sumSplits(config), walk, walk + 1);
    sums.clearBefore(appendWalk(to, statistics, walkOfKeys(to, "heddle_kernel", sums.place)));
    appendFinish(to, sums.place);
    return std::move(to.plan);
  }

  std::string traits(const KernelRequest &request, const KernelConfig &given) const override {
    const Sm90BackwardConfig config(given);
    const MapRates rates = ratesOf(request);
    const int64_t columns = sumColumns(request, config);
    TraitsPrinter printer;
    printer.request(request);
    printer.config(given);
    printer.constant("kConsumerRegisters", config.consumerRegisters());
    printer.constant("kSumColumns", columns);
    printer.constant("kSumSplits", sumSplits(config));
    printRowTraits(printer, rates.key);
    printer.smem(smemOf(request, config));
    printer.constant("kMapsPerRate", rates.mapsPerRate());
    printer.constant("kKeyRateCount", int64_t(rates.query.size()));
    printer.array("kKeyRates", rates.query);
    const auto define = [](const char *name, int64_t value) {
      return std::string("#define ") + name + " " + std::to_string(value) + "\n";
    };
    return printer.str() + define("HEDDLE_SCORE_COLUMNS", config.blockM) +
           define("HEDDLE_OUTPUT_COLUMNS", request.valueDim) + define("HEDDLE_HEAD_COLUMNS", request.headDim) +
           define("HEDDLE_QUERY_COLUMNS", columns);
  }

protected:
  Status checkRequest(const KernelRequest &request) const override {
    if (!servesArch(*request.arch))
      return Status::unsupported("needs warpgroup products and copies through tensor maps, which " +
                                 std::string(request.arch->name) + " lacks");
    HEDDLE_TRY(request.checkTypes());
    if (request.outType != request.qType)
      return Status::unsupported("serves out and d_out of the type of q only");
    for (int64_t dim : {request.headDim, request.valueDim})
      if (dim % kHeadDimStep != 0 || dim > kMaxGradientDim)
        return Status::unsupported("serves head dims that are multiples of " + std::to_string(kHeadDimStep) +
                                   " up to " + std::to_string(kMaxGradientDim) + ", not " + std::to_string(dim));
    return {};
  }
};

} // namespace

const Skeleton &sm90BackwardSkeleton() {
  static const Sm90Backward skeleton;
  return skeleton;
}

} // namespace heddle
