//===- ScheduleCost.cpp - the estimated time of a configuration -----------===//
#include "compiler/Session/ScheduleCost.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Target/GpuModel.h"
#include "compiler/Pattern/PassesOfFile.h"
#include "runtime/Core/DType.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"

#include <cassert>
#include <cmath>
#include <vector>

namespace heddle {
namespace {

constexpr int64_t kAnchored = 1, kGridStride = 1, kGridSnake = 2; // of KernelConfig's fields
constexpr int64_t kExpPerClock = 16;                               // of an SM

/// A choice that lengthens or shortens the whole, or two that do so together.
struct ChoiceFactor {
  const char *name;
  int64_t KernelConfig::*field;
  int64_t value;
  int64_t KernelConfig::*otherField = nullptr;
  int64_t otherValue = 0;

  bool applies(const KernelConfig &config) const {
    return config.*field == value && (!otherField || config.*otherField == otherValue);
  }
};

using C = KernelConfig;
/// Of every family, before its own.
constexpr ChoiceFactor kSharedChoices[] = {
    {"block_m=64", &C::blockM, 64},
    {"block_m=192", &C::blockM, 192},
    {"block_n=32", &C::blockN, 32},
    {"block_n=48", &C::blockN, 48},
    {"block_n=64", &C::blockN, 64},
    {"block_n=80", &C::blockN, 80},
    {"block_n=96", &C::blockN, 96},
    {"block_n=112", &C::blockN, 112},
    {"min_blocks=2", &C::minBlocks, 2},
    {"stages=3", &C::stages, 3},
    {"compact_mask", &C::compactMask, 1},
    {"raster_reversed", &C::rasterReversed, 1},
};

constexpr ChoiceFactor kHopperChoices[] = {
    {"block_m=256", &C::blockM, 256},
    {"min_blocks=3", &C::minBlocks, 3},
    {"stages=4", &C::stages, 4},
    {"stages=6", &C::stages, 6},
    {"rescale_threshold=0,online", &C::rescaleThreshold, 0, &C::softmax, 0},
    {"rescale_threshold=0,anchored", &C::rescaleThreshold, 0, &C::softmax, kAnchored},
    {"query_stages=2", &C::queryStages, 2},
    {"turn_taking,block_m=128", &C::turnTaking, 1, &C::blockM, 128},
    {"turn_taking,block_m=192", &C::turnTaking, 1, &C::blockM, 192},
    {"turn_taking,block_m=256", &C::turnTaking, 1, &C::blockM, 256},
    {"grid=tile", &C::grid, 0},
    {"grid=snake", &C::grid, kGridSnake},
    {"grid=dynamic", &C::grid, 3},
    {"split_last", &C::splitLast, 1},
    {"split_tiles=0,online", &C::splitTiles, 0, &C::softmax, 0},
    {"split_tiles=0,anchored", &C::splitTiles, 0, &C::softmax, kAnchored},
    {"producer_registers=40", &C::producerRegisters, 40},
    {"producer_registers=56", &C::producerRegisters, 56},
    {"raster_mib=4", &C::rasterMib, 4},
    {"raster_mib=4096", &C::rasterMib, 4096},
};

constexpr ChoiceFactor kPortableChoices[] = {
    {"chunk_n=16", &C::chunkN, 16},
    {"chunk_n=32", &C::chunkN, 32},
    {"chunk_n=48", &C::chunkN, 48},
    {"chunk_n=64", &C::chunkN, 64},
    {"warps=8,block_m=64", &C::warps, 8, &C::blockM, 64},
    {"warps=8,block_m=128", &C::warps, 8, &C::blockM, 128},
    {"warps=8,block_m=192", &C::warps, 8, &C::blockM, 192},
    {"stages=1", &C::stages, 1},
    {"overlap_scores", &C::overlapScores, 1},
    {"query_in_registers", &C::queryInRegisters, 1},
    {"rescale_threshold=0", &C::rescaleThreshold, 0},
    {"raster_heads=1", &C::rasterHeads, 1},
    {"raster_heads=32", &C::rasterHeads, 32},
};

struct Family {
  Family(const char *skeleton, llvm::ArrayRef<ChoiceFactor> own) : skeleton(skeleton), choices(std::begin(kSharedChoices), std::end(kSharedChoices)) {
    choices.insert(choices.end(), own.begin(), own.end());
  }
  const char *skeleton;
  std::vector<ChoiceFactor> choices;
};

const std::vector<Family> &families() {
  static const std::vector<Family> list = {{"sm90_forward", kHopperChoices}, {"portable_forward", kPortableChoices}};
  return list;
}

const Family *familyOf(const std::string &skeleton) {
  auto family = llvm::find_if(families(), [&](const Family &family) { return family.skeleton == skeleton; });
  return family == families().end() ? nullptr : &*family;
}

/// Times on an ideal GPU. Latencies are of one warpgroup, whose steps wait for each other; blocks of an SM hide them.
enum Term { tensor, expOnline, expAnchored, mask, tileLatency, keyLatency, productLatency, memory, item, part, launch, termCount };
constexpr struct {
  const char *name;
  double start;
} kTerms[termCount] = {
    {"tensor", 0.6},      {"exp_online", 0.3},      {"exp_anchored", 0.3}, {"mask", 0.3}, {"tile_latency", 0.3}, {"key_latency", 0.3},
    {"product_latency", 0.3}, {"memory", 0.1}, {"item", 0.5},         {"part", 0.5}, {"launch", 1},
};
constexpr double kImbalanceStart = 0.7; // items overlap with what the others do at the end

} // namespace

static tuner::CostModel startOf(const Family &family) {
  tuner::CostModel model;
  model.family = family.skeleton;
  for (const auto &term : kTerms)
    model.terms.push_back({term.name, term.start});
  for (const ChoiceFactor &choice : family.choices)
    model.factors.push_back({choice.name, 0});
  model.factors.push_back({"imbalance", kImbalanceStart});
  model.factors.push_back({"changes", 0});
  return model;
}

Result<const tuner::CostModel *> costModelStart(const std::string &skeleton) {
  static const std::vector<tuner::CostModel> starts = [] {
    std::vector<tuner::CostModel> models;
    for (const Family &family : families())
      models.push_back(startOf(family));
    return models;
  }();
  const Family *family = familyOf(skeleton);
  if (!family)
    return Status::notFound("there is no cost model for kernels of '" + skeleton + "'");
  return &starts[size_t(family - families().data())];
}

struct ScheduleCost::Impl {
  Impl(const PatternFile &file, const ProblemShape &shape, const KernelRequest &request, const GpuModel &gpu, WorkCounts whole)
      : file(file), shape(shape), gpu(gpu), bytesOfKey(request.headDim * dtypeBytes(request.kType) + request.valueDim * dtypeBytes(request.vType)),
        dims(request.headDim + request.valueDim), whole(std::move(whole)) {}

  /// Of what the configuration launches.
  WorkCounts &counts(const KernelConfig &config) {
    if (!config.chainedMib)
      return whole;
    if (!passes) {
      passes = std::make_unique<PassesOfFile>(file);
      std::vector<const attn::PatternAnalysis *> kernels;
      for (const PatternFile::Pass &pass : passes->passes)
        kernels.push_back(&pass.analysis);
      Result<WorkCounts> apart = WorkCounts::create(kernels, sizesOf(file, shape), shape.batch);
      if (apart && !kernels.empty())
        chained.emplace(apart.take());
    }
    return chained ? *chained : whole;
  }

  Dealing dealingOf(const KernelConfig &config) const {
    Dealing dealing;
    dealing.blockM = config.blockM;
    dealing.order = config.grid == kGridStride ? Dealing::Order::stride
                    : config.grid == kGridSnake ? Dealing::Order::snake
                                                : Dealing::Order::asTheyEnd;
    dealing.isReversed = config.rasterReversed;
    dealing.partKeys = config.splitTiles * config.blockN;
    dealing.blocks = gpu.smCount * std::max<int64_t>(config.minBlocks, 1);
    const int64_t headBytes = std::max<int64_t>(shape.seqlenK * bytesOfKey, 1);
    dealing.sectionPairs = config.rasterMib ? std::max<int64_t>((config.rasterMib << 20) / headBytes, 1) * (shape.heads / shape.kvHeads)
                                            : std::max<int64_t>(config.rasterHeads, 1);
    return dealing;
  }

  const PatternFile &file;
  const ProblemShape shape;
  const GpuModel gpu;
  const int64_t bytesOfKey, dims;
  WorkCounts whole;
  std::unique_ptr<PassesOfFile> passes;
  std::optional<WorkCounts> chained;
};

ScheduleCost::ScheduleCost(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
ScheduleCost::~ScheduleCost() = default;

Result<std::shared_ptr<ScheduleCost>> ScheduleCost::create(const PatternFile &file, const ProblemShape &shape,
                                                           const KernelRequest &request, const GpuModel &gpu) {
  HEDDLE_ASSIGN(WorkCounts whole, WorkCounts::create({&file.analysis()}, sizesOf(file, shape), shape.batch));
  return std::shared_ptr<ScheduleCost>(
      new ScheduleCost(std::make_unique<Impl>(file, shape, request, gpu, std::move(whole))));
}

void ScheduleCost::describe(const KernelConfig &config, size_t changes, tuner::CostFeatures &features) {
  const Family *family = familyOf(config.skeleton);
  assert(family && "the skeleton has a cost model");
  WorkCounts &counts = impl->counts(config);
  const TileWork &work = counts.tiles(config.blockM, config.blockN);
  const DealtWork &dealt = counts.deal(impl->dealingOf(config));
  const double rows = double(config.blockM), keys = double(config.blockN), dims = double(impl->dims);
  const double clocks = double(impl->gpu.smCount) * impl->gpu.clockMhz; // of all SMs in a microsecond
  const double blockClocks = clocks * double(std::max<int64_t>(config.minBlocks, 1));
  const double pairs = work.visited * rows * keys, exps = pairs / (kExpPerClock * clocks);
  const bool isAnchored = config.softmax == kAnchored;

  std::vector<double> &terms = features.terms;
  terms.assign(termCount, 0);
  terms[tensor] = pairs * 2 * dims / (impl->gpu.bf16Tflops * 1e6);
  terms[isAnchored ? expAnchored : expOnline] = exps;
  terms[mask] = (work.visited - work.full) * rows * keys / (kExpPerClock * clocks);
  terms[tileLatency] = work.visited * 100 / blockClocks;
  terms[keyLatency] = work.visited * keys * 4 / blockClocks;
  terms[productLatency] = work.visited * keys * dims / 16 / blockClocks;
  terms[memory] = work.visited * keys * double(impl->bytesOfKey) / (impl->gpu.bandwidthGBps * 1e3);
  terms[item] = work.items * 1000 / blockClocks;
  terms[part] = double(dealt.parts) * 1000 / blockClocks;
  terms[launch] = 5;

  std::vector<double> &factors = features.factors;
  factors.clear();
  for (const ChoiceFactor &choice : family->choices)
    factors.push_back(choice.applies(config));
  factors.push_back(std::log(dealt.imbalance));
  factors.push_back(double(changes));
}

} // namespace heddle
