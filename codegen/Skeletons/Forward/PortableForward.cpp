// Owns what the portable forward skeleton serves, its search space, constraints, shared-memory plan and
// launch. Constants and constraints mirror the contract at the top of portable_forward.cuh; change
// both together.
#include "codegen/Config/ChainedLaunch.h"
#include "codegen/Config/DocumentTiles.h"
#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Config/TraitsPrinter.h"
#include "codegen/Skeletons/Forward/PortableConfig.h"
#include "codegen/Skeletons/Shared/BlockLimits.h"
#include "codegen/Skeletons/Shared/Family.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Skeletons/Shared/ScheduleFacts.h"
#include "runtime/Core/LaunchPlan.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr int64_t kMmaRows = 16; // rows of one matrix product, and keys of one step of the second
constexpr int64_t kMaxHeadDim = 128;
constexpr int64_t kMostRasterHeads = 32;
constexpr int64_t kHeadDimStep = 64; // of packed elements: rows of shared memory are multiples of 128 bytes

SmemLayout layoutOf(const KernelRequest &request, const PortableConfig &config) {
  SmemLayout layout;
  layout.append("q", config.blockM * rowBytes(request, request.headDim));
  layout.append("k", config.blockN * keyRowBytes(request, request.headDim), config.stages);
  layout.append("v", config.blockN * keyRowBytes(request, request.valueDim), config.stages);
  return layout;
}

// What must live at once in one thread: the accumulators, the scores of one chunk (two with overlap;
// packed weights take the place of scores, exact floats two registers each), the query fragments if they stay, softmax
// state and addresses. A lower bound within about 40 of what ptxas takes: it spares hopeless compilations, and
// checkVariant() refuses what spills in spite of it.
int64_t leastRegisters(const KernelRequest &request, const PortableConfig &config) {
  constexpr int64_t kStatePerTile = 4, kAddresses = 20;
  const int64_t rowTiles = config.blockM / config.warps / kMmaRows;
  const int64_t copies = request.isExact();
  const int64_t perTile = request.valueDim / 2 + config.chunkN / 2 * (1 + config.overlapScores + copies) +
                          config.queryInRegisters * request.headDim * request.element().bytes / 8 + kStatePerTile;
  return rowTiles * perTile + kAddresses;
}

Reason checkQueryTile(const KernelRequest &, const PortableConfig &config) {
  if (config.blockM % (kMmaRows * config.warps) == 0)
    return std::nullopt;
  return "block_m is " + number(config.blockM) + ", expected a multiple of " + number(kMmaRows) + " rows for each of " +
         number(config.warps) + " warps";
}

Reason checkKeyTile(const KernelRequest &, const PortableConfig &config) {
  if (config.chunkN % kMmaRows != 0)
    return "chunk_n is " + number(config.chunkN) + ", expected a multiple of " + number(kMmaRows);
  if (config.blockN % config.chunkN != 0)
    return "block_n is " + number(config.blockN) + ", expected a multiple of chunk_n=" + number(config.chunkN);
  return std::nullopt;
}

Reason checkPipeline(const KernelRequest &, const PortableConfig &config) {
  const bool isWhole = config.chunkN == config.blockN;
  if (config.stages == 1 && (!isWhole || config.overlapScores))
    return std::string("one stage wants chunk_n = block_n and no overlap: K and V take turns");
  if (config.overlapScores && !isWhole)
    return std::string("overlap wants chunk_n = block_n: it works on whole tiles");
  return std::nullopt;
}

Reason checkQuery(const KernelRequest &request, const PortableConfig &config) {
  if (request.elements.hasScaledKeys() && !config.queryInRegisters)
    return std::string("query_in_registers is 0: beside keys of e4m3 rows of q are made fp16 once");
  if (request.element().isPacked() || !config.queryInRegisters)
    return std::nullopt;
  return std::string("query_in_registers is 1: floats are split for every tile, and one step at a time");
}

int64_t tilesAreWhole(const KernelRequest &request, const PortableConfig &config) {
  return config.documentTiles ? 0 : request.tilesAreWhole(config.blockM, config.blockN); // documents begin anywhere
}

constexpr CostChoice<PortableConfig> kChoices[] = {
    {"chunk_n=16", &PortableConfig::chunkN, 16},
    {"chunk_n=32", &PortableConfig::chunkN, 32},
    {"chunk_n=48", &PortableConfig::chunkN, 48},
    {"chunk_n=64", &PortableConfig::chunkN, 64},
    {"warps=8,block_m=64", &PortableConfig::warps, 8, &PortableConfig::blockM, 64},
    {"warps=8,block_m=128", &PortableConfig::warps, 8, &PortableConfig::blockM, 128},
    {"warps=8,block_m=192", &PortableConfig::warps, 8, &PortableConfig::blockM, 192},
    {"stages=1", &PortableConfig::stages, 1},
    {"overlap_scores", &PortableConfig::overlapScores, 1},
    {"query_in_registers", &PortableConfig::queryInRegisters, 1},
    {"rescale_threshold=0", &PortableConfig::rescaleThreshold, 0},
    {"raster_heads=1", &PortableConfig::rasterHeads, 1},
    {"raster_heads=32", &PortableConfig::rasterHeads, 32},
};

class PortableForward final : public Family<PortableConfig, KindBase::forward, AsyncCopies, layoutOf> {
public:
  Status checkRequest(const KernelRequest &request) const override;
  std::vector<Knob> knobs(const KernelRequest &request) const override;
  const std::vector<Constraint> &constraints() const override;
  KernelConfig defaultConfig(const KernelRequest &request) const override;
  std::vector<KernelConfig> fallbackConfigs(const KernelRequest &request) const override;
  ScheduleFacts schedule(const KernelConfig &config) const override;
  LaunchPlan planLaunch(const KernelRequest &request, const KernelConfig &config) const override;
  std::string traits(const KernelRequest &request, const KernelConfig &config) const override;
};

Status PortableForward::checkRequest(const KernelRequest &request) const {
  HEDDLE_TRY(request.checkTypes(&ElementTraits::isOfWarps, /*takesScaledKeys=*/true));
  HEDDLE_TRY(checkScaledKeys(request));
  const bool isPacked = request.element().isPacked();
  const int64_t step = isPacked ? kHeadDimStep : request.element().mmaStep;
  const std::string served = isPacked ? "64 and 128" : "of multiples of " + number(step) + " up to 128";
  for (int64_t dim : {request.headDim, request.valueDim})
    if (dim % step != 0 || dim > kMaxHeadDim)
      return Status::unsupported("serves head dims " + served + ", not " + number(dim) +
                                 (isPacked ? "" : " of " + std::string(dtypeName(request.elements.q))));
  return {};
}

std::vector<Knob> PortableForward::knobs(const KernelRequest &request) const {
  std::vector<Knob> knobs = {
      {"block_m", "query rows of one block: more reuse of K and V, fewer blocks", {64, 128, 192}},
      {"block_n", "keys of one tile: fewer barriers, more shared memory", {32, 48, 64, 80, 96, 112, 128}},
      {"chunk_n", "keys whose scores are in registers at a time", {16, 32, 48, 64, 80, 96, 112, 128}},
      {"stages", "key tiles in shared memory: deeper prefetch, fewer blocks per SM", {1, 2, 3}},
      {"warps", "warps of one block; rows of one warp are block_m / warps", {4, 8}},
      {"min_blocks", "blocks per SM that the registers must allow", {1, 2}},
      {"overlap_scores", "compute the scores of the next tile beside the exponentials of this one", {0, 1}},
      {"query_in_registers", "hold query fragments instead of reading them for every tile", {0, 1}},
      {"rescale_threshold", "growth of a row maximum, in log2 units, before accumulators are rescaled", {0, 8}},
      {"compact_mask", "the predicate of partial tiles in a loop: less code and fewer registers", {0, 1}},
      {"raster_heads",
       "(batch, head) pairs whose query tiles of one number run side by side",
       {1, 8, kMostRasterHeads}},
      {"raster_reversed", "query tiles in descending order, longest first under causal masks", {0, 1}},
  };
  if (!request.element().isPacked())
    knobs[1].values = {16, 32, 48, 64};
  appendChainedKnob(knobs, request, 0);
  appendDocumentKnob(knobs, request, 0);
  return knobs;
}

const std::vector<Constraint> &PortableForward::constraints() const {
  using C = PortableConfig;
  static const std::vector<Constraint> list = {
      {"ranges", "every field lies in its range", checkRanges},
      {"query_tile", "every warp owns a multiple of 16 rows", ruleOf<C, checkQueryTile>},
      {"key_tile", "chunks of 16 keys tile block_n", ruleOf<C, checkKeyTile>},
      {"pipeline", "stages, chunks and overlap fit each other", ruleOf<C, checkPipeline>},
      {"query", "query fragments in registers are of packed elements", ruleOf<C, checkQuery>},
      {"threads", "threads of one block and of one SM", ruleOf<C, threadsFit<C>>},
      {"smem", "shared memory of one block", ruleOf<C, smemFits<C, layoutOf>>},
      {"portable_smem", "shared memory that every GPU gives, so that the PTX runs anywhere",
       ruleOf<C, smemIsPortable<C, layoutOf>>},
      {"smem_blocks", "shared memory of min_blocks blocks", ruleOf<C, smemOfBlocksFits<C, layoutOf>>},
      {"registers", "least registers of one thread", ruleOf<C, registersFit<C, leastRegisters>>},
      {"chained", "a pattern of several passes", ruleOf<C, checkChained>},
      {"document_tiles", "a pattern whose rows lie in documents, in one kernel", ruleOf<C, checkDocumentTiles>},
  };
  return list;
}

// Long rows of all heads come first, or they are all that is left at the end, and few of them in one block.
static void shortenLongRows(const KernelRequest &request, PortableConfig &config) {
  config.blockM = 64;
  config.warps = 4;
  config.rasterHeads = kMostRasterHeads;
  config.rasterReversed = request.balance.longRowsAreLast;
}

// Rows take twice the shared memory, and weights up to four times the registers.
static void fitToFloats(const KernelRequest &request, PortableConfig &config) {
  const bool isWide = std::max(request.headDim, request.valueDim) > 64;
  config.blockM = isWide ? 64 : 128;
  config.blockN = 32;
  config.chunkN = 16;
  config.warps = 4;
  config.queryInRegisters = 0;
}

// Rows of q stay in registers: 16 of them in a warp where heads are wide.
static void fitToScaledKeys(const KernelRequest &request, PortableConfig &config) {
  config.queryInRegisters = 1;
  if (std::max(request.headDim, request.valueDim) > 64)
    config.warps = 8;
}

// With wide heads, 32 rows per warp come close to the register limit; the range functions
// of several head groups do not fit beside them.
KernelConfig PortableForward::defaultConfig(const KernelRequest &request) const {
  const bool isWide = std::max(request.headDim, request.valueDim) > 64;
  const bool hasHeadGroups = request.variants.size() > 1;
  PortableConfig config;
  config.blockM = 128;
  config.blockN = isWide && !hasHeadGroups ? 48 : 64;
  config.chunkN = config.blockN;
  config.stages = 2;
  config.warps = isWide && hasHeadGroups ? 8 : 4;
  config.minBlocks = 1;
  config.overlapScores = 0;
  config.queryInRegisters = !isWide;
  config.rescaleThreshold = 8;
  config.compactMask = 1;
  config.rasterHeads = 8;
  config.rasterReversed = 1;
  if (!request.element().isPacked())
    fitToFloats(request, config);
  if (request.elements.hasScaledKeys())
    fitToScaledKeys(request, config);
  if (request.balance.hasLongRows)
    shortenLongRows(request, config);
  config.chainedMib = defaultChainedMib(request);
  return config;
}

// Half as many rows per warp.
std::vector<KernelConfig> PortableForward::fallbackConfigs(const KernelRequest &request) const {
  PortableConfig fallback = defaultConfig(request);
  if (fallback.warps == 8 || fallback.blockM == kMmaRows * fallback.warps)
    return {};
  fallback.warps = 8;
  return {fallback};
}

ScheduleFacts PortableForward::schedule(const KernelConfig &given) const {
  const PortableConfig config(given);
  ScheduleFacts facts = forwardFacts(config, kChoices);
  facts.rasterHeads = config.rasterHeads;
  return facts;
}

LaunchPlan PortableForward::planLaunch(const KernelRequest &request, const KernelConfig &given) const {
  const PortableConfig config(given);
  LaunchPlan plan = planFor(request, tilesAreWhole(request, config) ? keyOriginStep(request, config.blockN) : 1);
  KernelLaunch &launch = plan.launches.emplace_back();
  launch.grid[0] = LaunchExpr(LaunchSymbol::batch) * LaunchSymbol::heads * itemsOfHead(request, config, config.blockM);
  launch.block = config.threads();
  launch.sharedBytes = layoutOf(request, config).totalBytes();
  appendForwardParams(launch, request);
  return plan;
}

std::string PortableForward::traits(const KernelRequest &request, const KernelConfig &config) const {
  TraitsPrinter printer(request, config);
  printer.constant("kTilesAreWhole", tilesAreWhole(request, config));
  printer.smem(layoutOf(request, config));
  printRowBytes(printer, request);
  return printer.str();
}

} // namespace

const Skeleton &portableForwardSkeleton() { return theOnly<PortableForward>(); }

} // namespace heddle
