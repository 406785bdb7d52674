//===- Sm90Forward.cpp - host half of the Hopper forward skeleton -----------------------------===//
//
// Softmax attention with a producing warpgroup that copies through tensor maps and one to four consuming
// warpgroups of 64 rows that multiply from shared memory. The device half is sm90_forward.cuh; the
// constants that it reads and what it demands of them are listed at its top; change both together.
//
//===----------------------------------------------------------------------===//
#include "codegen/Config/FieldRange.h"
#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Config/SmemLayout.h"
#include "codegen/Config/TensorMapLaunch.h"
#include "codegen/Config/TraitsPrinter.h"
#include "codegen/Skeletons/Registry.h"
#include "codegen/Target/GpuArch.h"

#include <algorithm>

namespace heddle {
namespace {

using Reason = std::optional<std::string>;

constexpr int64_t kConsumerRows = 64; // rows of one warpgroup
constexpr int64_t kKeyStep = 16;      // keys of one step of the second product
constexpr int64_t kMaxKeys = 128;     // kept columns of one row fit one word
constexpr int64_t kMaxBoxRows = 256;  // rows of one copy through a tensor map
constexpr int64_t kMaxHeadDim = 256;
constexpr int64_t kHeadDimStep = 8;      // strides of tensor maps are multiples of 16 bytes
constexpr int64_t kColumnElements = 64;  // elements of one row of a swizzled tile, 128 bytes
constexpr int64_t kTileAlignment = 1024; // swizzled tiles start on it
constexpr int64_t kBarrierBytes = 1024;
constexpr int64_t kRegisterStep = 8, kLeastRegisters = 24, kMostRegisters = 240; // of setmaxnreg
constexpr int64_t kStateRegisters = 30;   // softmax state and addresses of a consumer's thread
constexpr int64_t kMaxThresholdHalf = 15; // weights up to 2^threshold stay finite in half

constexpr int64_t kGridTile = 0, kGridStride = 1, kGridDynamic = 3;
constexpr int64_t kSoftmaxAnchored = 1;

std::string number(int64_t value) { return std::to_string(value); }

int64_t roundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

int64_t consumers(const KernelConfig &config) { return config.blockM / kConsumerRows; }

int64_t warpsFor(int64_t blockM) { return blockM / 16 + 4; }

int64_t tileBytes(int64_t rows, int64_t dim) {
  return roundUp(dim, kColumnElements) / kColumnElements * rows * kColumnElements * 2;
}

SmemLayout layoutOf(const KernelRequest &request, const KernelConfig &config) {
  SmemLayout layout(kTileAlignment);
  layout.append("barriers", kBarrierBytes);
  layout.append("q", tileBytes(config.blockM, request.headDim), config.queryStages);
  layout.append("k", tileBytes(config.blockN, request.headDim), config.stages);
  layout.append("v", tileBytes(config.blockN, request.valueDim), config.stages);
  return layout;
}

// Registers of every thread at launch: what the compiler may use for the whole block.
int64_t registersAtLaunch(const GpuArch &arch, int64_t threads) {
  const int64_t most = std::min<int64_t>(arch.registersPerSm / threads, arch.maxRegistersPerThread);
  return most / kRegisterStep * kRegisterStep;
}

// What the producing warpgroup gives back is all that the others can take.
int64_t mostConsumerRegisters(const GpuArch &arch, const KernelConfig &config) {
  const int64_t all = (consumers(config) + 1) * registersAtLaunch(arch, config.threads());
  const int64_t each = (all - config.producerRegisters) / consumers(config);
  return std::clamp(each / kRegisterStep * kRegisterStep, kLeastRegisters, kMostRegisters);
}

// Scores of a tile, the packed weights of the one before, the output, softmax state and addresses.
int64_t leastConsumerRegisters(const KernelRequest &request, const KernelConfig &config) {
  return config.blockN / 2 + config.blockN / 4 + roundUp(request.valueDim, kHeadDimStep) / 2 + kStateRegisters;
}

Reason checkRanges(const KernelRequest &, const KernelConfig &config) {
  static const std::vector<FieldRange> ranges = {
      {&KernelConfig::blockM, 1, kLargestField},
      {&KernelConfig::blockN, 1, kMaxKeys},
      {&KernelConfig::chunkN, 1, kMaxKeys},
      {&KernelConfig::stages, 1, 6},
      {&KernelConfig::warps, 1, kLargestField},
      {&KernelConfig::minBlocks, 1, 1},
      {&KernelConfig::overlapScores, 1, 1},
      {&KernelConfig::rescaleThreshold, 0, 60},
      {&KernelConfig::compactMask, 0, 1},
      {&KernelConfig::rasterReversed, 0, 1},
      {&KernelConfig::queryStages, 1, 2},
      {&KernelConfig::turnTaking, 0, 1},
      {&KernelConfig::grid, 0, kGridDynamic},
      {&KernelConfig::softmax, 0, kSoftmaxAnchored},
      {&KernelConfig::producerRegisters, kLeastRegisters, kMostRegisters},
      {&KernelConfig::consumerRegisters, kLeastRegisters, kMostRegisters},
      {&KernelConfig::rasterMib, 0, kLargestField},
  };
  return outsideRange(config, ranges);
}

Reason checkQueryTile(const KernelRequest &, const KernelConfig &config) {
  if (config.blockM % kConsumerRows != 0)
    return "block_m is " + number(config.blockM) + ", expected a multiple of " + number(kConsumerRows) +
           " rows, one warpgroup for each " + number(kConsumerRows);
  if (config.warps != warpsFor(config.blockM))
    return "warps is " + number(config.warps) + ", block_m=" + number(config.blockM) + " wants " +
           number(warpsFor(config.blockM)) + ": block_m / 16 that consume and 4 that produce";
  return std::nullopt;
}

Reason checkKeyTile(const KernelRequest &, const KernelConfig &config) {
  if (config.blockN % kKeyStep != 0)
    return "block_n is " + number(config.blockN) + ", expected a multiple of " + number(kKeyStep);
  if (config.chunkN != config.blockN)
    return "chunk_n is " + number(config.chunkN) + ", expected block_n=" + number(config.blockN) +
           ": scores of whole tiles are in registers";
  return std::nullopt;
}

Reason checkThreads(const KernelRequest &request, const KernelConfig &config) {
  if (config.threads() <= request.arch->maxThreadsPerBlock)
    return std::nullopt;
  return "need " + number(config.threads()) + " threads, " + std::string(request.arch->name) + " allows " +
         number(request.arch->maxThreadsPerBlock) + " per block";
}

Reason checkBoxes(const KernelRequest &, const KernelConfig &config) {
  if (config.blockM <= kMaxBoxRows)
    return std::nullopt;
  return "block_m is " + number(config.blockM) + ", one copy through a tensor map takes at most " +
         number(kMaxBoxRows) + " rows";
}

Reason checkSmem(const KernelRequest &request, const KernelConfig &config) {
  const int64_t need = layoutOf(request, config).totalBytes();
  if (need <= request.arch->smemPerBlockBytes)
    return std::nullopt;
  return "need " + number(need) + " B, " + std::string(request.arch->name) + " allows " +
         number(request.arch->smemPerBlockBytes) + " B";
}

Reason checkRegisterSplit(const KernelRequest &request, const KernelConfig &config) {
  if (config.producerRegisters % kRegisterStep != 0 || config.consumerRegisters % kRegisterStep != 0)
    return "producer_registers=" + number(config.producerRegisters) +
           " and consumer_registers=" + number(config.consumerRegisters) + ", expected multiples of " +
           number(kRegisterStep);
  const int64_t atLaunch = registersAtLaunch(*request.arch, config.threads());
  const std::string launched = number(config.threads()) + " threads start with " + number(atLaunch);
  if (config.producerRegisters > atLaunch)
    return "producer_registers is " + number(config.producerRegisters) + ", " + launched + " and can only shrink";
  if (config.consumerRegisters < std::min(atLaunch, kMostRegisters))
    return "consumer_registers is " + number(config.consumerRegisters) + ", " + launched + " and can only grow";
  const int64_t need = config.producerRegisters + consumers(config) * config.consumerRegisters;
  const int64_t all = (consumers(config) + 1) * atLaunch;
  if (need <= all)
    return std::nullopt;
  return "producer_registers=" + number(config.producerRegisters) + " and " + number(consumers(config)) +
         " times consumer_registers=" + number(config.consumerRegisters) + " make " + number(need) + ", " + launched +
         ": " + number(all) + " together";
}

Reason checkRegisters(const KernelRequest &request, const KernelConfig &config) {
  const int64_t need = leastConsumerRegisters(request, config);
  if (need <= config.consumerRegisters)
    return std::nullopt;
  return "scores and weights of " + number(config.blockN) + " keys and " + number(request.valueDim) +
         " outputs need at least " + number(need) + " registers per thread, consumer_registers is " +
         number(config.consumerRegisters);
}

Reason checkThreshold(const KernelRequest &request, const KernelConfig &config) {
  if (request.dtype != DType::fp16 || config.rescaleThreshold <= kMaxThresholdHalf)
    return std::nullopt;
  return "rescale_threshold is " + number(config.rescaleThreshold) + ", weights in fp16 stay finite up to " +
         number(kMaxThresholdHalf);
}

Reason checkAnchored(const KernelRequest &request, const KernelConfig &config) {
  if (config.softmax != kSoftmaxAnchored)
    return std::nullopt;
  if (request.dtype != DType::bf16)
    return std::string("anchored weights need the range of bf16, not ") + dtypeName(request.dtype);
  if (config.grid == kGridDynamic)
    return std::string("items that are computed again must be known in advance, which a dynamic grid does not allow");
  return std::nullopt;
}

Reason checkTurns(const KernelRequest &, const KernelConfig &config) {
  if (!config.turnTaking || consumers(config) > 1)
    return std::nullopt;
  return "turns need at least two consuming warpgroups, block_m=" + number(config.blockM) + " has one";
}

// The default for head dims up to mostDim; measured.
struct DefaultRow {
  int64_t mostDim;
  int64_t blockM, blockN, stages, queryStages, turnTaking, producerRegisters;
};

// Patterns of one head group whose rows and keys are not strided.
constexpr DefaultRow kPlainRows[] = {
    {64, 256, 64, 4, 1, 0, 32},
    {128, 192, 64, 2, 1, 0, 32},
    {192, 128, 96, 2, 1, 0, 32},
    {256, 128, 48, 2, 1, 0, 32},
};

// The range functions of head groups and strides take more registers of the producing warpgroup.
constexpr DefaultRow kLatticeRows[] = {
    {64, 192, 80, 4, 1, 0, 56},
    {128, 128, 96, 2, 1, 0, 56},
    {192, 128, 80, 2, 1, 0, 56},
    {256, 128, 32, 3, 1, 0, 56},
};

const DefaultRow &defaultRow(const KernelRequest &request) {
  const bool isPlain = request.variants.size() == 1 && MapRates::of(request.variants).mapsPerRate() == 1;
  const int64_t dim = std::max(request.headDim, request.valueDim);
  const DefaultRow *row = isPlain ? kPlainRows : kLatticeRows;
  while (row->mostDim < dim)
    ++row;
  return *row;
}

class Sm90Forward final : public Skeleton {
public:
  std::string_view name() const override { return "sm90_forward"; }
  bool servesArch(const GpuArch &arch) const override { return arch.features.hasWgmma && arch.features.hasTma; }
  Status appliesTo(const KernelRequest &request) const override;
  std::vector<Knob> knobs(const KernelRequest &request) const override;
  const std::vector<Constraint> &constraints() const override;
  KernelConfig defaultConfig(const KernelRequest &request) const override;
  std::vector<KernelConfig> spareConfigs(const KernelRequest &request) const override;
  void deriveFields(const KernelRequest &request, KernelConfig &config) const override;
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
  if (request.dtype != DType::bf16 && request.dtype != DType::fp16)
    return Status::unsupported(who + "serves bf16 and fp16, not " + dtypeName(request.dtype));
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

std::vector<Knob> Sm90Forward::knobs(const KernelRequest &) const {
  return {
      {"block_m", "query rows of one block, 64 for each warpgroup: more reuse of K and V", {128, 192, 256}},
      {"block_n", "keys of one tile: fewer barriers, more registers", {32, 48, 64, 80, 96, 112, 128}},
      {"stages", "key tiles in shared memory: deeper prefetch", {1, 2, 3, 4, 6}},
      {"rescale_threshold", "growth of a row maximum, in log2 units, before accumulators are rescaled", {0, 8}},
      {"compact_mask", "the predicate of masked tiles in a loop: less code and fewer registers", {0, 1}, {"no", "yes"}},
      {"raster_reversed", "query tiles in descending order, longest first under causal masks", {0, 1}, {"no", "yes"}},
      {"query_stages", "query tiles in shared memory: with two, the next item arrives beside this one", {1, 2}},
      {"turn_taking", "warpgroups issue their products in turn", {0, 1}, {"no", "yes"}},
      {"grid",
       "a block for every item, or one per SM that takes items at a stride, to and fro, or from a counter",
       {0, 1, 2, 3},
       {"tile", "stride", "snake", "dynamic"}},
      {"softmax", "look for maxima in every tile, or in masked tiles only", {0, 1}, {"online", "anchored"}},
      {"producer_registers", "registers of a producing thread: the others get what these leave", {32, 40, 56}},
      {"raster_mib", "K and V of the heads that run side by side, in MiB: what should stay in L2", {4, 16}},
  };
}

const std::vector<Constraint> &Sm90Forward::constraints() const {
  static const std::vector<Constraint> list = {
      {"ranges", "every field lies in its range", checkRanges},
      {"query_tile", "every consuming warpgroup owns 64 rows", checkQueryTile},
      {"key_tile", "tiles are multiples of 16 keys", checkKeyTile},
      {"threads", "threads of one block", checkThreads},
      {"boxes", "rows of one copy through a tensor map", checkBoxes},
      {"smem", "shared memory of one block", checkSmem},
      {"register_split", "registers of all warpgroups after launch", checkRegisterSplit},
      {"registers", "least registers of a consuming thread", checkRegisters},
      {"threshold", "weights stay finite in their type", checkThreshold},
      {"anchored", "what the anchored softmax needs", checkAnchored},
      {"turns", "turns are taken by at least two", checkTurns},
  };
  return list;
}

KernelConfig Sm90Forward::defaultConfig(const KernelRequest &request) const {
  const DefaultRow &row = defaultRow(request);
  KernelConfig config;
  config.skeleton = name();
  config.blockM = row.blockM;
  config.blockN = row.blockN;
  config.stages = row.stages;
  config.minBlocks = 1;
  config.overlapScores = 1;
  config.rescaleThreshold = 8;
  config.compactMask = 1;
  config.rasterReversed = 1;
  config.queryStages = row.queryStages;
  config.turnTaking = row.turnTaking;
  config.grid = request.hasEqualTiles ? kGridStride : kGridTile;
  config.producerRegisters = row.producerRegisters;
  config.rasterMib = 16;
  deriveFields(request, config);
  return config;
}

// More registers for one side or the other: for the producing threads, and smaller tiles for the consuming ones.
std::vector<KernelConfig> Sm90Forward::spareConfigs(const KernelRequest &request) const {
  constexpr int64_t kAmpleProducer = 56;
  std::vector<KernelConfig> spares;
  const KernelConfig base = defaultConfig(request);
  for (int64_t step = 0; step <= 2; ++step) {
    KernelConfig spare = base;
    spare.blockN = base.blockN - step * kKeyStep;
    spare.producerRegisters = kAmpleProducer;
    deriveFields(request, spare);
    if (spare != base && !whyInfeasible(request, spare))
      spares.push_back(spare);
  }
  return spares;
}

// For any numbers: the constraints judge afterwards.
void Sm90Forward::deriveFields(const KernelRequest &request, KernelConfig &config) const {
  config.chunkN = config.blockN;
  if (config.blockM < kConsumerRows || config.blockM > kLargestField)
    return;
  config.warps = warpsFor(config.blockM);
  config.consumerRegisters = mostConsumerRegisters(*request.arch, config);
}

SmemLayout Sm90Forward::planSmem(const KernelRequest &request, const KernelConfig &config) const {
  return layoutOf(request, config);
}

LaunchPlan Sm90Forward::planLaunch(const KernelRequest &request, const KernelConfig &config) const {
  LaunchPlan plan;
  const LaunchExpr items = workItems(request, config);
  plan.grid[0] = config.grid == kGridTile ? items : min(items, LaunchSymbol::smCount);
  plan.block = config.threads();
  plan.sharedBytes = layoutOf(request, config).totalBytes();
  if (config.grid == kGridDynamic) {
    plan.workspaceBytes = 4;
    ClearSpec counter;
    counter.words = 1;
    plan.clears.push_back(counter);
  }
  appendTensorMapParams(plan, request, config);
  return plan;
}

std::string Sm90Forward::traits(const KernelRequest &request, const KernelConfig &config) const {
  const MapRates rates = MapRates::of(request.variants);
  TraitsPrinter printer;
  printer.request(request);
  printer.config(config);
  printer.smem(layoutOf(request, config));
  printer.constant("kMapsPerRate", rates.mapsPerRate());
  printer.constant("kQueryRateCount", static_cast<int64_t>(rates.query.size()));
  printer.constant("kKeyRateCount", static_cast<int64_t>(rates.key.size()));
  printer.array("kQueryRates", rates.query);
  printer.array("kKeyRates", rates.key);
  return printer.str();
}

} // namespace

const Skeleton &sm90ForwardSkeleton() {
  static const Sm90Forward skeleton;
  return skeleton;
}

} // namespace heddle
