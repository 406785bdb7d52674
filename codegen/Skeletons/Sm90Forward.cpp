//===- Sm90Forward.cpp - host half of the Hopper forward skeleton -----------------------------===//
//
// Softmax attention with a producing warpgroup that copies through tensor maps and one to four consuming
// warpgroups of 64 rows that multiply from shared memory. The device half is sm90_forward.cuh; the
// constants that it reads and what it demands of them are listed at its top; change both together.
//
//===----------------------------------------------------------------------===//
#include "codegen/Config/ChainedLaunch.h"
#include "codegen/Config/DocumentTiles.h"
#include "codegen/Config/FieldRange.h"
#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Config/SmemLayout.h"
#include "codegen/Config/TensorMapLaunch.h"
#include "codegen/Config/TraitsPrinter.h"
#include "codegen/Skeletons/Registry.h"
#include "codegen/Skeletons/Sm90Constraints.h"
#include "codegen/Target/GpuArch.h"

#include <algorithm>

namespace heddle {
namespace {

using namespace sm90;

constexpr int64_t kAllHeadsMib = 4096;     // long rows of all heads first: what they leave to others is shared early
constexpr int64_t kDefaultSplitTiles = 96; // of 48, 64, 96 and 128 the fastest on global rows of 32k keys

std::string number(int64_t value) { return std::to_string(value); }

// The default for head dims up to mostDim.
struct DefaultRow {
  int64_t mostDim;
  int64_t blockM, blockN, stages, queryStages, turnTaking, producerRegisters, minBlocks = 1;
};

// Patterns of one head group whose rows and keys are neither strided nor in blocks.
constexpr DefaultRow kPlainRows[] = {
    {64, 256, 64, 4, 2, 1, 32},
    {128, 192, 80, 2, 2, 1, 32},
    {192, 128, 96, 2, 1, 1, 32},
    {256, 128, 48, 2, 1, 1, 32},
};

// The range functions of head groups and strides take more registers of the producing warpgroup; beside four consumers
// they do with 32.
constexpr DefaultRow kLatticeRows[] = {
    {64, 256, 64, 4, 2, 1, 32},
    {128, 192, 64, 3, 2, 1, 56},
    {192, 128, 80, 2, 1, 1, 56},
    {256, 128, 32, 3, 1, 1, 56},
};

// Query tiles of few key tiles, all alike, heads of 128: consumers that take no turns drift apart, so that one stores its
// rows while another multiplies (77% of the product instead of 69% on a window of 1024 keys).
constexpr DefaultRow kShortRow = {128, 192, 64, 3, 2, 0, 56};

bool hasShortRows(const KernelRequest &request) {
  const int64_t dim = std::max(request.headDim, request.valueDim);
  return request.balance.hasEqualTiles && request.balance.hasFewTiles && dim > 64 && dim <= kShortRow.mostDim;
}

// Many tiles of small heads are bound by the softmax, and few of them are masked (77.7% of the product instead of 72% on
// full d=64, 67% instead of 63% on dilated segments).
bool wantsAnchoredSoftmax(const KernelRequest &request) {
  constexpr int64_t kMostDim = 64;
  return request.element().largestExponent >= kFloatExponent && !request.hasScores &&
         std::max(request.headDim, request.valueDim) <= kMostDim && !request.balance.hasFewTiles && !request.balance.hasLongRows;
}

// Full rows of small heads without a search for maxima: wide tiles (78.9% of the product, 76.5% with 256x64). Not for rows in
// blocks, of which 192 are no multiple (532 TFLOP/s with 256x64 on every fourth block, 492 with 192x128).
constexpr DefaultRow kAnchoredRow = {64, 192, 128, 2, 2, 1, 32};

// Blocks that rows do not share with their neighbours: of no more rows than want the same keys. Small heads have two blocks
// per SM, so that one begins while another ends (391 TFLOP/s on random blocks of 128 at 32k, 288 of one block with 128 keys a
// tile, 199 of 192x64); with heads of 128 wide tiles are the best of five (512 TFLOP/s at 8k, 387 of 192x64).
constexpr DefaultRow kOwnKeysRows[] = {
    {64, 128, 32, 4, 1, 1, 56, 2},
    {128, 128, 128, 2, 1, 1, 56, 1},
};

// At most 64 queries: one warpgroup, and wide key tiles, of which there are few to wait for. Parts of two blocks on an SM cost
// more to join than they gain (64 queries, 8k and 32k keys, 12 heads: 28 and 53 us, 25 and 48 us with one).
constexpr int64_t kFewQueries = kConsumerRows;
constexpr DefaultRow kFewQueriesRows[] = {
    {64, 64, 128, 3, 1, 0, 56},
    {128, 64, 128, 3, 1, 0, 56},
    {192, 64, 64, 3, 1, 0, 56},
    {256, 64, 64, 2, 1, 0, 56},
};

// Calls of so few queries may have fewer query tiles than there are SMs: their keys are cut in parts.
constexpr int64_t kMayBeCut = 256;

bool isOf(const KernelRequest &request, int64_t mostQueries) {
  return request.balance.queries > 0 && request.balance.queries <= mostQueries;
}

// Blocks of 64 keys are no multiples of wider tiles.
DefaultRow fewQueriesRow(const KernelRequest &request) {
  const DefaultRow *row = kFewQueriesRows;
  while (row->mostDim < std::max(request.headDim, request.valueDim))
    ++row;
  DefaultRow fitting = *row;
  if (request.keepsTilesInBand(kConsumerRows, kConsumerRows) && !request.keepsTilesInBand(kConsumerRows, row->blockN))
    fitting.blockN = kConsumerRows;
  return fitting;
}

// Null: none of them.
const DefaultRow *ownKeysRow(const KernelRequest &request) {
  const bool hasShortItems = request.balance.hasFewTiles || request.balance.hasLongRows; // long ones fall into parts
  if (!request.balance.hasOwnKeys || !hasShortItems)
    return nullptr;
  for (const DefaultRow &row : kOwnKeysRows)
    if (std::max(request.headDim, request.valueDim) <= row.mostDim)
      return request.keepsTilesInBand(kConsumerRows, row.blockN) ? &row : nullptr;
  return nullptr;
}

DefaultRow defaultRow(const KernelRequest &request) {
  if (isOf(request, kFewQueries))
    return fewQueriesRow(request);

  if (const DefaultRow *row = ownKeysRow(request))
    return *row;

  if (hasShortRows(request))
    return kShortRow;

  const bool isInBlocks = request.keepsWholeTiles(kConsumerRows, kConsumerRows); // of which neither 192 rows nor 80 keys are a part
  if (wantsAnchoredSoftmax(request) && request.balance.hasEqualTiles && !isInBlocks)
    return kAnchoredRow;

  const bool isPlain = request.variants.size() == 1 && MapRates::of(request.variants).mapsPerRate() == 1 && !isInBlocks;
  const int64_t dim = std::max(request.headDim, request.valueDim);
  const DefaultRow *row = isPlain ? kPlainRows : kLatticeRows;
  while (row->mostDim < dim)
    ++row;
  return *row;
}

// Every consumer judges its own rows.
int64_t tilesAreWhole(const KernelRequest &request, const KernelConfig &config) {
  return config.documentTiles ? 0 : request.tilesAreWhole(kConsumerRows, config.blockN); // documents begin anywhere
}

// Of the whole GPU.
LaunchExpr residentBlocks(const KernelConfig &config) {
  return config.minBlocks == 1 ? LaunchExpr(LaunchSymbol::smCount)
                               : LaunchSymbol::smCount * LaunchExpr(config.minBlocks);
}

LaunchExpr gridBlocks(const KernelRequest &request, const KernelConfig &config) {
  const LaunchExpr items = workItems(request, config);
  const LaunchExpr units = config.splitLast ? items * LaunchExpr(kMaxSplits) : items;
  return config.grid == kGridTile ? items : min(units, residentBlocks(config));
}

PointerSource planWorkspace(LaunchPlan &plan, KernelLaunch &launch, const KernelRequest &request, const KernelConfig &config) {
  constexpr int64_t kWordBytes = 4;
  const bool hasSplits = config.splitLast || config.splitTiles, isDynamic = config.grid == kGridDynamic;
  if (!hasSplits && !isDynamic)
    return plan.appendRegion("schedule", 0);
  const bool keepsChain = isDynamic && config.softmax == kSoftmaxAnchored;
  const int64_t cleared = hasSplits ? workspace::kStates : workspace::kNextItem + 1;
  LaunchExpr bytes = (keepsChain && !hasSplits ? workspace::kChain : cleared) * kWordBytes;
  if (hasSplits) {
    const LaunchExpr ownSlots = config.splitTiles ? residentBlocks(config) * LaunchExpr(kOwnSlots) : LaunchExpr(0);
    bytes = bytes + (ownSlots + LaunchExpr(kSplitSlots)) * LaunchExpr(config.blockM / kWarpRows * stateBytes(request.valueDim));
  }
  if (keepsChain)
    bytes = bytes + workItems(request, config) * LaunchExpr(kWordBytes);
  const PointerSource region = plan.appendRegion("schedule", std::move(bytes));
  launch.clears.push_back({region, 0, cleared, 0});
  return region;
}

class Sm90Forward final : public Skeleton {
public:
  std::string_view name() const override { return "sm90_forward"; }
  bool servesArch(const GpuArch &arch) const override { return arch.features.hasWgmma && arch.features.hasTma; }
  Status appliesTo(const KernelRequest &request) const override;
  std::vector<Knob> knobs(const KernelRequest &request) const override;
  const std::vector<Constraint> &constraints() const override { return sm90Constraints(); }
  KernelConfig defaultConfig(const KernelRequest &request) const override;
  std::vector<KernelConfig> spareConfigs(const KernelRequest &request) const override;
  void deriveFields(const KernelRequest &request, KernelConfig &config) const override;
  void takeBack(KernelConfig &config) const override;
  SmemLayout planSmem(const KernelRequest &request, const KernelConfig &config) const override;
  LaunchPlan planLaunch(const KernelRequest &request, const KernelConfig &config) const override;
  std::string traits(const KernelRequest &request, const KernelConfig &config) const override;
};

Status Sm90Forward::appliesTo(const KernelRequest &request) const {
  const std::string who = std::string(name()) + ": ";
  HEDDLE_TRY(request.validate());
  if (request.kind != KernelKind::forward)
    return Status::unsupported(who + "serves the kind forward, not " + kernelKindName(request.kind));
  if (!servesArch(*request.arch))
    return Status::unsupported(who + "needs warpgroup products and copies through tensor maps, which " +
                               std::string(request.arch->name) + " lacks");
  if (const Status types = request.checkTypes(); !types.isOk())
    return Status::unsupported(who + types.message());
  for (int64_t dim : {request.headDim, request.valueDim})
    if (dim % kHeadDimStep != 0 || dim > kMaxHeadDim)
      return Status::unsupported(who + "serves head dims that are multiples of " + number(kHeadDimStep) + " up to " +
                                 number(kMaxHeadDim) + ", not " + number(dim));
  if (const int64_t bytes = tensorMapParamBytes(request); bytes > kMaxParamBytes)
    return Status::unsupported(who + "the pattern's rates need " + number(MapRates::of(request.variants).mapCount()) +
                               " tensor maps, with " + number(request.paramCount) + " run-time sizes " + number(bytes) +
                               " B of parameters, a launch takes " + number(kMaxParamBytes) + " B");
  return {};
}

std::vector<Knob> Sm90Forward::knobs(const KernelRequest &request) const {
  // What constraints read together: tiles; who computes what; the rest.
  constexpr size_t kTiles = 0, kDealing = 1, kRest = 2;
  std::vector<Knob> knobs = {
      {"block_m", "query rows of one block, 64 for each warpgroup: more reuse of K and V", {64, 128, 192, 256}, {}, kTiles},
      {"block_n", "keys of one tile: fewer barriers, more registers", {32, 48, 64, 80, 96, 112, 128}, {}, kTiles},
      {"stages", "key tiles in shared memory: deeper prefetch", {2, 3, 4, 6}, {}, kTiles},
      {"min_blocks", "blocks of one SM: more of them hide each other's ends, with fewer registers each", {1, 2, 3}, {}, kTiles},
      {"rescale_threshold", "growth of a row maximum, in log2 units, before accumulators are rescaled", {0, 8}, {}, kRest},
      {"compact_mask", "the predicate of masked tiles in a loop, where a pattern has no column words: less code and fewer registers", {0, 1}, {"no", "yes"}, kRest},
      {"raster_reversed", "query tiles in descending order, longest first under causal masks", {0, 1}, {"no", "yes"}, kRest},
      {"query_stages", "query tiles in shared memory: with two, the next item arrives beside this one", {1, 2}, {}, kTiles},
      {"turn_taking", "warpgroups issue their products in turn", {0, 1}, {"no", "yes"}, kTiles},
      {"grid",
       "a block for every item, or one per SM that takes items at a stride, to and fro, or from a counter",
       {0, 1, 2, 3},
       {"tile", "stride", "snake", "dynamic"}, kDealing},
      {"softmax", "look for maxima in every tile, or in masked tiles only", {0, 1}, {"online", "anchored"}, kDealing},
      {"split_last", "items of the last, incomplete round in parts, so that no block stays idle", {0, 1}, {"no", "yes"}, kDealing},
      {"split_tiles", "items with a range of at least twice this many key tiles in parts, which blocks share", {0, 64, kDefaultSplitTiles, 128}, {}, kDealing},
      {"producer_registers", "registers of a producing thread: the others get what these leave", {32, 40, 56}, {}, kTiles},
      {"raster_mib", "K and V of the heads that run side by side, in MiB: what should stay in L2", {4, 16, kAllHeadsMib}, {}, kRest},
  };
  appendChainedKnob(knobs, request, kRest);
  appendDocumentKnob(knobs, request, kRest);
  return knobs;
}

KernelConfig Sm90Forward::defaultConfig(const KernelRequest &request) const {
  const DefaultRow row = defaultRow(request);
  const bool mayBeCut = isOf(request, kMayBeCut) && sm90CanSplit(request);
  KernelConfig config;
  config.skeleton = name();
  config.blockM = isOf(request, row.blockM) ? (request.balance.queries + kConsumerRows - 1) / kConsumerRows * kConsumerRows : row.blockM;
  config.blockN = row.blockN;
  config.stages = row.stages;
  config.minBlocks = row.minBlocks;
  config.overlapScores = 1;
  config.rescaleThreshold = 8;
  config.compactMask = 0;
  const bool sharesParts = request.balance.hasLongRows && sm90CanSplit(request) && !mayBeCut;
  // What is long must come first, or it is all that is left at the end.
  config.rasterReversed = request.balance.hasLongRows ? request.balance.longRowsAreLast : !hasShortRows(request);
  config.queryStages = row.queryStages;
  config.turnTaking = row.turnTaking && !sharesParts && config.blockM > kConsumerRows;
  config.grid = request.balance.hasEqualTiles || mayBeCut ? kGridStride : kGridDynamic;
  config.splitLast = mayBeCut;
  config.splitTiles = sharesParts ? kDefaultSplitTiles : 0;
  config.softmax = wantsAnchoredSoftmax(request) && !mayBeCut ? kSoftmaxAnchored : kSoftmaxOnline;
  config.producerRegisters = row.producerRegisters;
  config.rasterMib = sharesParts ? kAllHeadsMib : 16;
  config.chainedMib = defaultChainedMib(request);
  if (!sm90CanChain(request, config))
    config.chainedMib = 0;
  deriveFields(request, config);
  return config;
}

// Predicates in a loop first, which long ones want; then more registers for the producing threads, which lists of cells
// want; then fewer consuming warpgroups, and only then key tiles that blocks of keys are no multiples of.
std::vector<KernelConfig> Sm90Forward::spareConfigs(const KernelRequest &request) const {
  constexpr int64_t kAmpleProducer = 56, kBlockStep = 64; // blocks of patterns have 64 or 128 tokens
  const KernelConfig base = defaultConfig(request);
  std::vector<KernelConfig> spares;
  auto add = [&](int64_t blockM, int64_t blockN, int64_t producerRegisters) {
    KernelConfig spare = base;
    spare.compactMask = 1;
    spare.blockM = blockM;
    spare.blockN = blockN;
    spare.producerRegisters = producerRegisters;
    deriveFields(request, spare);
    const bool isKnown = spare == base || std::find(spares.begin(), spares.end(), spare) != spares.end();
    if (!isKnown && !whyInfeasible(request, spare))
      spares.push_back(spare);
  };
  const int64_t aligned = std::max(base.blockN / kBlockStep * kBlockStep, std::min(base.blockN, kBlockStep));
  add(base.blockM, base.blockN, base.producerRegisters);
  add(base.blockM, base.blockN, kAmpleProducer);
  add(base.blockM, aligned, kAmpleProducer);
  if (base.blockM > kConsumerRows)
    add(base.blockM - kConsumerRows, aligned, kAmpleProducer);
  const int64_t mostSteps = request.operands.empty() ? 2 : 4; // every score of a tile may wait for an element of a tensor
  for (int64_t step = 1; step <= mostSteps; ++step)
    add(base.blockM, base.blockN - step * kKeyStep, kAmpleProducer);
  return spares;
}

// For any numbers: the constraints judge afterwards.
void Sm90Forward::deriveFields(const KernelRequest &request, KernelConfig &config) const {
  config.chunkN = config.blockN;
  if (config.blockM < kConsumerRows || config.blockM > kLargestField || config.minBlocks < 1 ||
      config.minBlocks > kLargestField)
    return;
  config.warps = sm90Warps(config.blockM);
  config.consumerRegisters = sm90ConsumerRegisters(*request.arch, config);
}

void Sm90Forward::takeBack(KernelConfig &config) const {
  if (config.grid == kGridTile)
    config.splitTiles = 0;
  if (config.grid != kGridStride || config.splitTiles)
    config.splitLast = 0;
  if (config.blockM == kConsumerRows)
    config.turnTaking = 0;
}

SmemLayout Sm90Forward::planSmem(const KernelRequest &request, const KernelConfig &config) const {
  return sm90Smem(request, config);
}

LaunchPlan Sm90Forward::planLaunch(const KernelRequest &request, const KernelConfig &config) const {
  LaunchPlan plan = forwardPlan(request, tilesAreWhole(request, config) ? keyOriginStep(request, config.blockN) : 1);
  KernelLaunch &launch = plan.launches.emplace_back();
  launch.grid[0] = gridBlocks(request, config);
  launch.block = config.threads();
  launch.sharedBytes = sm90Smem(request, config).totalBytes();
  appendTensorMapParams(launch, request, config, planWorkspace(plan, launch, request, config));
  return plan;
}

// What the skeleton needs where templates do not reach: in names of instructions.
std::string macros(const KernelRequest &request, const KernelConfig &config) {
  return "#define HEDDLE_SCORE_COLUMNS " + number(config.blockN) + "\n#define HEDDLE_OUTPUT_COLUMNS " +
         number(request.valueDim) + "\n";
}

std::string Sm90Forward::traits(const KernelRequest &request, const KernelConfig &config) const {
  const MapRates rates = MapRates::of(request.variants);
  TraitsPrinter printer;
  printer.request(request);
  printer.config(config);
  printer.constant("kTilesAreWhole", tilesAreWhole(request, config));
  printer.smem(sm90Smem(request, config));
  printer.constant("kMapsPerRate", rates.mapsPerRate());
  printer.constant("kQueryRateCount", static_cast<int64_t>(rates.query.size()));
  printer.constant("kKeyRateCount", static_cast<int64_t>(rates.key.size()));
  printer.array("kQueryRates", rates.query);
  printer.array("kKeyRates", rates.key);
  return printer.str() + macros(request, config);
}

} // namespace

const Skeleton &sm90ForwardSkeleton() {
  static const Sm90Forward skeleton;
  return skeleton;
}

} // namespace heddle
