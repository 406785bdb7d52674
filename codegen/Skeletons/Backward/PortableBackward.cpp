// Owns what the portable backward skeleton serves, its search space, constraints, shared memory and its launches: lse
// and delta of all rows, sums for delta of detached branches, the walk over key tiles, and d_q from its sums. Change it
// together with portable_backward.cuh and portable_backward_params.cuh.
#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Config/TraitsPrinter.h"
#include "codegen/Skeletons/Backward/BackwardLaunch.h"
#include "codegen/Skeletons/Shared/BlockLimits.h"
#include "codegen/Skeletons/Shared/Family.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Skeletons/Shared/ScheduleFacts.h"
#include "codegen/Skeletons/Shared/TensorMapLaunch.h"
#include "runtime/Core/TileReach.h"

#include <algorithm>
#include <optional>

namespace heddle {
namespace {

constexpr int64_t kMmaRows = 16, kDimStep = 8, kMaxDim = 256, kPieceBytes = 16;
constexpr int64_t kMaxFloatDim = 128;
constexpr int64_t kMaxSliceDim = 128; // of d_k and d_v that one warp holds
constexpr int64_t kSumsOfBranch = 2;  // branch_sums.cuh

struct PortableBackwardConfig {
  int64_t blockM = 64;        ///< queries of a step
  int64_t blockN = 64;        ///< keys of a block
  int64_t warps = 4;          ///< warps of a block; those of a pair, in wide heads, have the same keys
  int64_t stages = 2;         ///< tiles of q and of d_out in shared memory
  int64_t minBlocks = 1;      ///< blocks of an SM that registers must allow
  int64_t walkInMemory = 0;   ///< 1: where the walk stands is kept in memory, not in registers
  int64_t queryWalk = 0;      ///< 1: d_q has a walk of its own, nothing is added to its sums
  int64_t rasterReversed = 0; ///< 1: last key tile first
  int64_t rasterMib = 32;     ///< what the heads that run side by side read and add, in MiB

  PortableBackwardConfig() = default;
  PortableBackwardConfig(const KernelConfig &config) { readFields(config, *this); }
  operator KernelConfig() const { return writeFields(*this); }

  int64_t threads() const { return kWarpLanes * warps; }

  static const FieldsOf<PortableBackwardConfig> &fields() {
    using C = PortableBackwardConfig;
    static const FieldsOf<C> list = {"portable_backward",
                                     {{"block_m", &C::blockM, kMmaRows, 64}, // one swizzle is a row of dS
                                      {"block_n", &C::blockN, kMmaRows, kMostKeysOfTile},
                                      {"warps", &C::warps, 1, 32},
                                      {"stages", &C::stages, 2, 4},
                                      {"min_blocks", &C::minBlocks, 1, 8},
                                      {"walk_in_memory", &C::walkInMemory, 0, 1, noOrYes()},
                                      {"query_walk", &C::queryWalk, 0, 1, noOrYes()},
                                      {"raster_reversed", &C::rasterReversed, 0, 1, noOrYes()},
                                      {"raster_mib", &C::rasterMib, 1, kLargestField}}};
    return list;
  }
};

int64_t sumColumns(const KernelRequest &request) { return roundUp(request.headDim, kSumGroupColumns); }

/// Warps that share keys, each with columns of its own of d_k and d_v.
int64_t slicesOf(const KernelRequest &request) {
  return std::max(request.headDim, request.valueDim) > kMaxSliceDim ? 2 : 1;
}

/// Columns of d_k or d_v that a warp holds: whole steps of a product, where there are several slices.
int64_t sliceColumns(const KernelRequest &request, int64_t dim) {
  return slicesOf(request) == 1 ? dim : roundUp((dim + 1) / 2, kMmaRows);
}

/// dS on its way to the query gradient: keys in rows, or of floats, which nothing transposes on the way, queries.
struct ScoreTile {
  int64_t rows, columns;
};
ScoreTile scoreTile(const KernelRequest &request, const PortableBackwardConfig &config) {
  if (request.element().isPacked())
    return {config.blockN, config.blockM};
  return {config.blockM, config.blockN};
}

SmemLayout smemOf(const KernelRequest &request, const PortableBackwardConfig &config) {
  const ScoreTile scores = scoreTile(request, config);
  SmemLayout layout;
  layout.append("k", config.blockN * rowBytes(request, request.headDim));
  layout.append("v", config.blockN * rowBytes(request, request.valueDim));
  layout.append("q", config.blockM * rowBytes(request, request.headDim), config.stages);
  layout.append("out", config.blockM * rowBytes(request, request.valueDim), config.stages);
  layout.append("scores", scores.rows * rowBytes(request, scores.columns));
  layout.append("statistics", 2 * config.blockM * kFloatBytes, config.stages);
  return layout;
}

Reason checkTiles(const KernelRequest &request, const PortableBackwardConfig &config) {
  const int64_t slices = slicesOf(request);
  if (config.warps % slices != 0 || config.blockN * slices % (kMmaRows * config.warps) != 0)
    return "block_n is " + number(config.blockN) + ", expected a multiple of " + number(kMmaRows) + " keys for each " +
           (slices == 1 ? "of " : "pair of ") + number(config.warps) + " warps";
  if (config.blockM % kMmaRows != 0 || config.warps % (config.blockM / kMmaRows) != 0)
    return "block_m is " + number(config.blockM) + ", expected a multiple of " + number(kMmaRows) +
           " queries, so many times as divide " + number(config.warps) + " warps";
  return std::nullopt;
}

Reason checkLoads(const KernelRequest &request, const PortableBackwardConfig &config) {
  const int64_t ofPiece = kPieceBytes / request.element().bytes;
  const int64_t need = std::max(config.blockM, roundUp(std::max(request.headDim, request.valueDim), ofPiece) / ofPiece);
  if (need <= config.threads())
    return std::nullopt;
  return number(config.threads()) + " threads, " + number(need) + " load rows";
}

/// What must live at once in a thread, within about 40 of what ptxas takes: spares hopeless compilations.
int64_t leastRegisters(const KernelRequest &request, const PortableBackwardConfig &config) {
  constexpr int64_t kAddresses = 32;
  const int64_t scores = config.blockM / 2;
  const int64_t sums = (sliceColumns(request, request.headDim) + sliceColumns(request, request.valueDim)) / 2;
  const int64_t perTile = sums + scores + scores / 2 + (request.hasScores ? scores / 2 : 0);
  const int64_t rowTiles = config.blockN * slicesOf(request) / (kMmaRows * config.warps);
  return rowTiles * perTile + kAddresses;
}

Reason checkQueryWalk(const KernelRequest &request, const PortableBackwardConfig &config) {
  if (!request.kind.isDeterministic || config.queryWalk)
    return std::nullopt;
  return "sums of the query gradient are added in any order, expected query_walk=1";
}

class PortableBackward final : public Family<PortableBackwardConfig, KindBase::backward, AsyncCopies, smemOf> {
public:
  std::vector<Knob> knobs(const KernelRequest &request) const override;
  const std::vector<Constraint> &constraints() const override;
  KernelConfig defaultConfig(const KernelRequest &request) const override;
  std::vector<KernelConfig> fallbackConfigs(const KernelRequest &request) const override;
  ScheduleFacts schedule(const KernelConfig &config) const override;
  LaunchPlan planLaunch(const KernelRequest &request, const KernelConfig &config) const override;
  std::string traits(const KernelRequest &request, const KernelConfig &config) const override;

protected:
  std::vector<KernelEntry> entries(const KernelRequest &, const KernelConfig &) const override {
    return backwardEntries();
  }
  Status checkRequest(const KernelRequest &request) const override;
};

std::vector<Knob> PortableBackward::knobs(const KernelRequest &request) const {
  const bool isWide = slicesOf(request) > 1 || !request.element().isPacked();
  const auto choices = [isWide](int64_t small) {
    return isWide ? std::vector<int64_t>{small / 2, small} : std::vector<int64_t>{small, 2 * small};
  };
  return {
      {"block_m", "queries of a step: fewer barriers, more registers", choices(32)},
      {"block_n", "keys of a block: fewer additions to the query gradient", choices(64)},
      {"warps", "warps of a block: they share its keys, in pairs above head dims of 128",
       request.element().isPacked() ? std::vector<int64_t>{4, 8} : std::vector<int64_t>{2, 4}},
      {"stages", "tiles of q and d_out in shared memory: deeper prefetch", {2, 3}},
      {"min_blocks", "blocks per SM that the registers must allow", {1, 2}},
      {"walk_in_memory", "hold where the walk stands in memory: for ranges of many pieces", {0, 1}},
      {"query_walk", "how the query gradient comes about: added to sums in any order, or by a walk of its own", {0, 1}},
      {"raster_reversed", "key tiles in descending order", {0, 1}},
      {"raster_mib", "what heads that run side by side read and add, in MiB: what should stay in L2", {8, 32, 64}}};
}

const std::vector<Constraint> &PortableBackward::constraints() const {
  using C = PortableBackwardConfig;
  static const std::vector<Constraint> list = {
      {"ranges", "every field lies in its range", checkRanges},
      {"tiles", "every warp owns a multiple of 16 keys, and as much of the query gradient as the others",
       ruleOf<C, checkTiles>},
      {"loads", "a thread loads statistics of one row and a part of one", ruleOf<C, checkLoads>},
      {"registers", "least registers of one thread", ruleOf<C, registersFit<C, leastRegisters>>},
      {"portable_smem", "shared memory that every GPU gives, so that the PTX runs anywhere",
       ruleOf<C, smemIsPortable<C, smemOf>>},
      {"smem_blocks", "shared memory of min_blocks blocks", ruleOf<C, smemOfBlocksFits<C, smemOf>>},
      {"deterministic", "bits do not depend on the run where that is asked for", ruleOf<C, checkQueryWalk>},
  };
  return list;
}

// Narrow heads leave registers and shared memory for twice the keys and warps.
KernelConfig PortableBackward::defaultConfig(const KernelRequest &request) const {
  const bool isWide = std::max(request.headDim, request.valueDim) > 64;
  PortableBackwardConfig config;
  config.queryWalk = request.kind.isDeterministic;
  if (!request.element().isPacked()) {
    config.blockM = isWide || request.elements.precision == Precision::exact ? kMmaRows : 32;
    config.blockN = isWide ? 32 : 64;
    config.warps = isWide ? 2 : 4;
    return config;
  }
  if (slicesOf(request) > 1) {
    config.blockM = config.blockN = 32;
    if (whyInfeasible(request, config))
      config.blockM = kMmaRows;
    return config;
  }
  config.blockM = isWide ? 32 : 64;
  config.blockN = isWide ? 64 : 128;
  config.warps = isWide ? 4 : 8;
  return config;
}

// Registers for the products, where ranges of many pieces leave too few; then fewer scores at a time.
std::vector<KernelConfig> PortableBackward::fallbackConfigs(const KernelRequest &request) const {
  std::vector<KernelConfig> fallbacks;
  PortableBackwardConfig fallback = defaultConfig(request);
  fallback.walkInMemory = 1;
  fallbacks.push_back(fallback);
  while (fallback.blockM > kMmaRows) {
    fallback.blockM /= 2;
    fallbacks.push_back(fallback);
  }
  return fallbacks;
}

ScheduleFacts PortableBackward::schedule(const KernelConfig &given) const {
  const PortableBackwardConfig config(given);
  ScheduleFacts facts;
  facts.blockM = config.blockM;
  facts.blockN = config.blockN;
  facts.minBlocks = config.minBlocks;
  facts.isReversed = config.rasterReversed != 0;
  facts.rasterMib = config.rasterMib;
  if (!config.queryWalk)
    facts.addedInAnyOrder = {Role::dQ};
  return facts;
}

/// A launch of a walk: what differs between those of keys and of queries, and what it reads and adds to.
struct Walk {
  const char *entry;
  Role rowGradient;
  LaunchExpr items, raster;
  Statistics statistics;
  PointerSource branchSums, querySums;
};

KernelLaunch &appendWalk(BackwardPlan &to, const PortableBackwardConfig &config, const Walk &walk) {
  const KernelRequest &request = to.request;
  KernelLaunch &launch = to.append(walk.entry, walk.items, config.threads());
  launch.sharedBytes = smemOf(request, config).totalBytes();
  appendOperands(launch, request);
  appendGradients(launch, request);
  for (const PointerSource &source :
       {PointerSource(Role::q), PointerSource(Role::k), PointerSource(Role::v), PointerSource(Role::dOut),
        PointerSource(walk.rowGradient), PointerSource(Role::dV), walk.statistics.lse, walk.statistics.delta,
        walk.branchSums, walk.querySums})
    launch.appendPointer(source);
  for (Role role : {Role::q, Role::k, Role::v, Role::dOut, walk.rowGradient, Role::dV})
    appendStrides(launch, role);
  appendCallSizes(launch, request.qOrigin);
  launch.appendI32(walk.raster);
  appendRuntimeSizes(launch, request);
  return launch;
}

LaunchPlan PortableBackward::planLaunch(const KernelRequest &request, const KernelConfig &given) const {
  const PortableBackwardConfig config(given);
  BackwardPlan to(request, config.blockM, config.blockN, MapRates::of(request.transposed).key);
  const int64_t walk = request.isDetached ? 2 : 1, last = walk + config.queryWalk; // numbers of launches
  const Statistics statistics{to.appendRows("lse", to.rateSets, 0, last), to.appendRows("delta", to.rateSets, 0, last)};
  const std::optional<ClearedRegion> sums =
      config.queryWalk ? std::nullopt : std::optional(dqAccumulation(to, sumColumns(request), 1, walk + 1));
  const PointerSource place = sums ? sums->place : statistics.delta; // every walk is given it
  Walk ofKeys{"heddle_kernel",
              Role::dK,
              keyItems(request, config.blockN),
              keyRaster(request, sumColumns(request), config.rasterMib),
              statistics,
              place,
              place};
  Walk ofQueries{"heddle_query_walk",
                 Role::dQ,
                 queryItems(request, config.blockN),
                 queryRaster(request, config.rasterMib),
                 statistics,
                 place,
                 place};
  appendPreprocess(to, statistics);
  if (request.isDetached) {
    const int64_t sets = kSumsOfBranch * to.branches();
    ofKeys.branchSums = ofQueries.branchSums = to.appendRows("branch_sums", sets, 1, last);
    Walk ofDeltas = ofQueries;
    ofDeltas.entry = "heddle_branch_deltas";
    appendWalk(to, config, ofDeltas)
        .clears.push_back({ofDeltas.branchSums, 0, to.rowsOf(sets), 0}); // of rows that do not exist
  }
  KernelLaunch &launch = appendWalk(to, config, ofKeys);
  if (sums) {
    sums->clearBefore(launch);
    appendConvertDq(to, sums->place);
  } else {
    appendWalk(to, config, ofQueries);
  }
  return std::move(to.plan);
}

std::string PortableBackward::traits(const KernelRequest &request, const KernelConfig &config) const {
  TraitsPrinter printer(request, config);
  printer.constant("kColumnSlices", slicesOf(request));
  printer.constant("kVectorAdds", request.arch->features.hasVectorAdds);
  TileGrain(request, PortableBackwardConfig(config).blockM, PortableBackwardConfig(config).blockN).print(printer);
  printer.constant("kSumColumns", sumColumns(request));
  printer.constant("kSumSplits", 1);
  printRowTraits(printer, request, MapRates::of(request.transposed).key);
  printer.constant("kOrderRate", 0);
  printer.smem(smemOf(request, config));
  printRowBytes(printer, request);
  printer.constant("kSmemRowBytesScores",
                   rowBytes(request, scoreTile(request, PortableBackwardConfig(config)).columns));
  return printer.str();
}

Status PortableBackward::checkRequest(const KernelRequest &request) const {
  HEDDLE_TRY(request.checkTypes(&ElementTraits::isOfWarps));
  HEDDLE_TRY(checkOrderOfGradients(request));
  if (request.elements.out != request.elements.q)
    return Status::unsupported("serves out and d_out of the type of q only");
  const bool isPacked = request.element().isPacked();
  const int64_t most = isPacked ? kMaxDim : kMaxFloatDim;
  for (int64_t dim : {request.headDim, request.valueDim})
    if (dim % kDimStep != 0 || dim > most)
      return Status::unsupported("serves head dims that are multiples of " + number(kDimStep) + " up to " +
                                 number(most) + ", not " + number(dim) +
                                 (isPacked ? "" : " of " + std::string(dtypeName(request.elements.q))));
  return {};
}

} // namespace

const Skeleton &portableBackwardSkeleton() { return theOnly<PortableBackward>(); }

} // namespace heddle
