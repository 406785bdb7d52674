// Softmax attention with a producing warpgroup that copies through tensor maps and one to four consuming
// warpgroups of 64 rows that multiply from shared memory. The device half is sm90_forward.cuh; the
// constants that it reads and what it demands of them are listed at its top; change both together.
#include "codegen/Config/ChainedLaunch.h"
#include "codegen/Config/DocumentTiles.h"
#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Skeletons/Shared/TensorMapLaunch.h"
#include "codegen/Config/TraitsPrinter.h"
#include "codegen/Skeletons/Shared/BlockLimits.h"
#include "codegen/Skeletons/Shared/Family.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Skeletons/Shared/ScheduleFacts.h"
#include "codegen/Skeletons/Shared/WarpgroupShapes.h"
#include "codegen/Skeletons/Forward/Sm90Constraints.h"
#include "codegen/Skeletons/Forward/Sm90Pairs.h"
#include "codegen/Skeletons/Forward/Sm90TurnedValues.h"

#include <algorithm>

namespace heddle {
namespace {

using namespace sm90;

// Every consumer judges its own rows.
int64_t tilesAreWhole(const KernelRequest &request, const Sm90Config &config) {
  return config.documentTiles ? 0 : request.tilesAreWhole(kConsumerRows, config.blockN); // documents begin anywhere
}

// Blocks that the whole GPU holds at a time.
LaunchExpr residentBlocks(const Sm90Config &config) {
  return config.minBlocks == 1 ? LaunchExpr(LaunchSymbol::smCount)
                               : LaunchSymbol::smCount * LaunchExpr(config.minBlocks);
}

LaunchExpr gridBlocks(const KernelRequest &request, const Sm90Config &config) {
  const LaunchExpr items = workItems(request, config);
  const LaunchExpr units = config.splitLast ? items * LaunchExpr(kMaxSplits) : items;
  return config.grid == kGridTile ? items : min(units, residentBlocks(config));
}

/// For the last launch.
PointerSource planWorkspace(LaunchPlan &plan, const KernelRequest &request, const Sm90Config &config) {
  constexpr int64_t kWordBytes = 4;
  const int64_t number = int64_t(plan.launches.size()) - 1;
  const bool hasSplits = config.splitLast || config.splitTiles, isDynamic = config.grid == kGridDynamic;
  if (!hasSplits && !isDynamic)
    return plan.appendRegion("schedule", 0, number, number);
  const bool keepsChain = isDynamic && config.softmax == kSoftmaxAnchored;
  const int64_t cleared = hasSplits ? workspace::kStates : workspace::kNextItem + 1;
  LaunchExpr bytes = (keepsChain && !hasSplits ? workspace::kChain : cleared) * kWordBytes;
  if (hasSplits) {
    const LaunchExpr ownSlots = config.splitTiles ? residentBlocks(config) * LaunchExpr(kOwnSlots) : LaunchExpr(0);
    bytes = bytes + (ownSlots + LaunchExpr(kSplitSlots)) *
                        LaunchExpr(config.blockM / kWarpRows * stateBytes(sm90OutputDim(request)));
  }
  if (keepsChain)
    bytes = bytes + workItems(request, config) * LaunchExpr(kWordBytes);
  const PointerSource region = plan.appendRegion("schedule", std::move(bytes), number, number);
  plan.launches.back().clears.push_back({region, 0, cleared, 0});
  return region;
}

/// For the last launch; nothing where they lie in shared memory.
std::optional<PointerSource> planTotals(LaunchPlan &plan, const KernelRequest &request, const Sm90Config &config) {
  if (!config.totals)
    return std::nullopt;
  const int64_t number = int64_t(plan.launches.size()) - 1;
  return plan.appendRegion(
      "totals", gridBlocks(request, config) * LaunchExpr(totalBytes(config.blockM, request.valueDim)), number, number);
}

class Sm90Forward final : public Family<Sm90Config, KindBase::forward, WarpgroupProducts, sm90Smem> {
public:
  Status checkRequest(const KernelRequest &request) const override;
  std::vector<Knob> knobs(const KernelRequest &request) const override;
  const std::vector<Constraint> &constraints() const override { return sm90Constraints(); }
  KernelConfig defaultConfig(const KernelRequest &request) const override;
  std::vector<KernelConfig> fallbackConfigs(const KernelRequest &request) const override;
  KernelConfig derived(const KernelRequest &request, KernelConfig config) const override;
  KernelConfig takenBack(KernelConfig config) const override;
  ScheduleFacts schedule(const KernelConfig &config) const override { return sm90Schedule(config); }
  LaunchPlan planLaunch(const KernelRequest &request, const KernelConfig &config) const override;
  std::string traits(const KernelRequest &request, const KernelConfig &config) const override;
  std::vector<KernelEntry> entries(const KernelRequest &request, const KernelConfig &config) const override;
};

std::vector<KernelEntry> Sm90Forward::entries(const KernelRequest &request, const KernelConfig &config) const {
  std::vector<KernelEntry> entries = Skeleton::entries(request, config);
  if (sm90MakesPairs(request))
    entries.insert(entries.begin(), pairRowsEntry());
  return entries;
}

Status Sm90Forward::checkRequest(const KernelRequest &request) const {
  HEDDLE_TRY(request.checkTypes(&ElementTraits::isComputed));
  const bool areFloats = request.elements.q == DType::fp32, makesPairs = sm90MakesPairs(request);
  if (makesPairs && request.balance.queries > 0 && request.balance.queries <= kConsumerRows)
    return Status::unsupported("makes pairs of all keys for exact products, which so few queries do not pay for");
  if (request.kind.hasKeyMajorValues && MapRates::of(request.variants).key != std::vector<int64_t>{1})
    return Status::unsupported(
        "serves v that lies key-major where keys have no stride, which this pattern's have; make v "
        "contiguous in dim");
  // Strides of tensor maps are multiples of 16 bytes, and a product has at most 256 columns, a multiple of 8.
  constexpr int64_t kStrideBytes = 16, kMostFloats = 128; // of which two tiles of keys and of values fit
  const int64_t step = std::max<int64_t>(kStrideBytes / request.element().bytes, kHeadDimStep);
  const int64_t columns = kMaxHeadDim - (sm90OutputDim(request) - request.valueDim);
  const int64_t most = areFloats ? kMostFloats : columns / step * step;
  for (int64_t dim : {request.headDim, request.valueDim})
    if (dim % step != 0 || dim > most)
      return Status::unsupported(
          "serves head dims that are multiples of " + number(step) + " up to " + number(most) + ", not " + number(dim) +
          (request.element().isPacked() ? "" : " of " + std::string(dtypeName(request.elements.q))));
  OperandCopies copies;
  if (makesPairs)
    copies.pairs = PairedOperands();
  if (const int64_t bytes = tensorMapParamBytes(request, copies); bytes > kMaxParamBytes)
    return Status::unsupported("the pattern's rates need " + number(MapRates::of(request.variants).mapCount()) +
                               " tensor maps, with " + number(request.paramCount) + " run-time sizes " + number(bytes) +
                               " B of parameters, a launch takes " + number(kMaxParamBytes) + " B");
  return {};
}

std::vector<Knob> Sm90Forward::knobs(const KernelRequest &request) const {
  // What constraints read together: tiles; who computes what; the rest.
  constexpr size_t kTiles = 0, kDealing = 1, kRest = 2;
  // Knobs of bytes make a space so much larger that putting it in order would take seconds.
  constexpr int64_t kLeastKeysOfBytes = 64;
  std::vector<Knob> knobs = {
      {"block_m", "query rows of one block, 64 for each warpgroup: more reuse of K and V", {64, 128, 192, 256}, kTiles},
      {"block_n", "keys of one tile: fewer barriers, more registers", {32, 48, 64, 80, 96, 112, 128}, kTiles},
      {"stages", "key tiles in shared memory: deeper prefetch", {2, 3, 4, 6}, kTiles},
      {"min_blocks",
       "blocks of one SM: more of them hide each other's ends, with fewer registers each",
       {1, 2, 3},
       kTiles},
      {"rescale_threshold", "growth of a row maximum, in log2 units, before accumulators are rescaled", {0, 8}, kRest},
      {"compact_mask",
       "the predicate of masked tiles in a loop, where a pattern has no column words: less code and fewer registers",
       {0, 1},
       kRest},
      {"raster_reversed", "query tiles in descending order, longest first under causal masks", {0, 1}, kRest},
      {"query_stages", "query tiles in shared memory: with two, the next item arrives beside this one", {1, 2}, kTiles},
      {"turn_taking", "warpgroups issue their products in turn", {0, 1}, kTiles},
      {"grid",
       "a block for every item, or one per SM that takes items at a stride or from a counter",
       {kGridTile, kGridStride, kGridDynamic},
       kDealing},
      {"softmax", "look for maxima in every tile, or in masked tiles only", {0, 1}, kDealing},
      {"split_last", "items of the last, incomplete round in parts, so that no block stays idle", {0, 1}, kDealing},
      {"split_tiles",
       "items with a range of at least twice this many key tiles in parts, which blocks share",
       {0, 64, kDefaultSplitTiles, 128},
       kDealing},
      {"producer_registers", "registers of a producing thread: the others get what these leave", {32, 40, 56}, kTiles},
      {"raster_mib",
       "K and V of the heads that run side by side, in MiB: what should stay in L2",
       {4, 16, kAllHeadsMib},
       kRest},
  };
  const bool areBytes = request.element().isScaled();
  std::vector<int64_t> &keys = knobs[1].values;
  const int64_t step = sm90KeyStep(request), least = areBytes ? kLeastKeysOfBytes : step;
  keys.erase(std::remove_if(keys.begin(), keys.end(), [&](int64_t n) { return n % step != 0 || n < least; }),
             keys.end());
  if (areBytes) {
    // With 8 weights below 2^-9 of the largest are lost, for 1% of the time at most.
    knobs[4].values = {0, 4};
    if (request.elements.precision == Precision::fast) // weights end earlier below
      knobs[4].values = {0, 2};
    knobs.push_back({"totals",
                     "totals of long rows in shared memory, or in the workspace, where there is room for more tiles",
                     {0, 1},
                     kTiles});
    knobs.push_back(
        {"flush_tiles",
         "key tiles after which the output of e4m3 is added to totals in fp32: fewer lose less of long rows",
         {8, 18, 24, 36},
         kTiles});
  }
  if (sm90CanTurn(request))
    knobs.push_back({"turn_values",
                     "values are turned over tile by tile, or once for all blocks, which long rows pay for",
                     {0, 1},
                     kTiles});
  appendChainedKnob(knobs, request, kRest);
  appendDocumentKnob(knobs, request, kRest);
  return knobs;
}

KernelConfig Sm90Forward::defaultConfig(const KernelRequest &request) const {
  return derived(request, sm90Default(request));
}

// Predicates in a loop first, which long ones want; then more registers for the producing threads, which lists of cells
// want; then fewer consuming warpgroups, then key tiles that blocks of keys are no multiples of, and last no parts of items.
std::vector<KernelConfig> Sm90Forward::fallbackConfigs(const KernelRequest &request) const {
  constexpr int64_t kAmpleProducer = 56, kBlockStep = 64; // blocks of patterns have 64 or 128 tokens
  const Sm90Config base = defaultConfig(request);
  std::vector<KernelConfig> fallbacks;
  auto add = [&](int64_t blockM, int64_t blockN, int64_t producerRegisters, bool isWhole = false) {
    Sm90Config fallback = base;
    if (isWhole)
      fallback.splitLast = fallback.splitTiles = 0, fallback.grid = kGridDynamic;
    fallback.compactMask = 1;
    fallback.blockM = blockM;
    fallback.blockN = blockN;
    fallback.producerRegisters = producerRegisters;
    const KernelConfig config = derived(request, fallback);
    const bool isKnown =
        config == KernelConfig(base) || std::find(fallbacks.begin(), fallbacks.end(), config) != fallbacks.end();
    if (!isKnown && !whyInfeasible(request, config))
      fallbacks.push_back(config);
  };
  const int64_t aligned = std::max(base.blockN / kBlockStep * kBlockStep, std::min(base.blockN, kBlockStep));
  add(base.blockM, base.blockN, base.producerRegisters);
  add(base.blockM, base.blockN, kAmpleProducer);
  add(base.blockM, aligned, kAmpleProducer);
  if (base.blockM > kConsumerRows)
    add(base.blockM - kConsumerRows, aligned, kAmpleProducer);
  // every score of a tile may wait for an element of a tensor
  const int64_t mostSteps = request.operands.empty() ? 2 : 4;
  for (int64_t step = 1; step <= mostSteps; ++step)
    add(base.blockM, base.blockN - step * sm90KeyStep(request), kAmpleProducer);
  add(base.blockM, base.blockN, kAmpleProducer, /*isWhole=*/true);
  return fallbacks;
}

// For any numbers: the constraints judge afterwards.
KernelConfig Sm90Forward::derived(const KernelRequest &request, KernelConfig given) const {
  Sm90Config config(given);
  if (config.blockM < kConsumerRows || config.blockM > kLargestField || config.minBlocks < 1 ||
      config.minBlocks > kLargestField)
    return given;
  config.warps = sm90Warps(config.blockM);
  config.consumerRegisters = sm90ConsumerRegisters(*request.arch, config);
  return config;
}

KernelConfig Sm90Forward::takenBack(KernelConfig given) const {
  Sm90Config config(given);
  sm90TakeBack(config);
  return config;
}

LaunchPlan Sm90Forward::planLaunch(const KernelRequest &request, const KernelConfig &given) const {
  const Sm90Config config(given);
  LaunchPlan plan = planFor(request, tilesAreWhole(request, config) ? keyOriginStep(request, config.blockN) : 1);
  OperandCopies copies;
  if (sm90MakesPairs(request))
    copies.pairs = appendPairRows(plan, request);
  KernelLaunch &launch = plan.launches.emplace_back();
  if (config.turnValues)
    planTurnedValues(plan, request, copies);
  launch.grid[0] = gridBlocks(request, config);
  launch.block = config.threads();
  launch.sharedBytes = sm90Smem(request, config).totalBytes();
  appendTensorMapParams(launch, request, config, planWorkspace(plan, request, config), copies,
                        planTotals(plan, request, config));
  return plan;
}

std::string Sm90Forward::traits(const KernelRequest &request, const KernelConfig &config) const {
  const MapRates rates = MapRates::of(request.variants);
  const Sm90Tiles tiles = sm90Tiles(request);
  TraitsPrinter printer(request, config, tiles.product);
  printer.constant("kTilesAreWhole", tilesAreWhole(request, config));
  const SmemLayout smem = sm90Smem(request, config);
  printer.smem(smem);
  for (const char *region :
       {"raw", "turning", "totals", "ones", "factors"}) // of values that are turned over, and of pairs
    if (!smem.find(region))
      printer.noSmem(region);
  if (sm90MakesPairs(request))
    printPairRows(printer, request);
  printer.constant("kTotalsInWorkspace", Sm90Config(config).totals);
  printer.constant("kScaleRows", request.elements.scaleRows);
  printer.constant("kKeyMajorValues", sm90AreKeyMajor(request, config));
  printer.constant("kMapsPerRate", rates.mapsPerRate());
  printer.constant("kQueryRateCount", static_cast<int64_t>(rates.query.size()));
  printer.constant("kKeyRateCount", static_cast<int64_t>(rates.key.size()));
  printer.array("kQueryRates", rates.query);
  printer.array("kKeyRates", rates.key);
  const int64_t output = sm90OutputDim(request);
  if (sharesOnes(tiles.bytes)) // sums are products of their own
    return printer.str() + warpgroupShapes({config.valueOf("block_n"), request.valueDim, output - request.valueDim});
  return printer.str() + warpgroupShapes({config.valueOf("block_n"), output});
}

} // namespace

const Skeleton &sm90ForwardSkeleton() { return theOnly<Sm90Forward>(); }

} // namespace heddle
