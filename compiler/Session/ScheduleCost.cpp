#include "compiler/Session/ScheduleCost.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Shared/ScheduleFacts.h"
#include "codegen/Skeletons/Shared/Skeleton.h"
#include "codegen/Target/GpuModel.h"
#include "codegen/Choose/WorkCounts.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Session/PreparedPattern.h"
#include "runtime/Core/DType.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace heddle {
namespace {

constexpr int64_t kExpPerClock = 16; // of an SM

/// Times on an ideal GPU. Latencies are of one warpgroup, whose steps wait for each other; blocks of an SM hide them.
enum Term {
  tensor,
  expOnline,
  expAnchored,
  mask,
  tileLatency,
  keyLatency,
  productLatency,
  memory,
  item,
  part,
  launch,
  termCount
};
constexpr struct {
  const char *name;
  double start;
} kTerms[termCount] = {
    {"tensor", 0.6},      {"exp_online", 0.3},      {"exp_anchored", 0.3}, {"mask", 0.3}, {"tile_latency", 0.3},
    {"key_latency", 0.3}, {"product_latency", 0.3}, {"memory", 0.1},       {"item", 0.5}, {"part", 0.5},
    {"launch", 1},
};
constexpr double kImbalanceStart = 0.7; // items overlap with what the others do at the end

} // namespace

static tuner::CostModel startOf(const Skeleton &skeleton) {
  tuner::CostModel model;
  model.family = skeleton.name();
  for (const auto &term : kTerms)
    model.terms.push_back({term.name, term.start});
  for (const auto &[choice, isMade] : skeleton.schedule(KernelConfig(skeleton.fields())).choices)
    model.factors.push_back({choice, 0});
  model.factors.push_back({"imbalance", kImbalanceStart});
  model.factors.push_back({"changes", 0});
  return model;
}

Result<const tuner::CostModel *> costModelStart(const std::string &skeleton) {
  static const std::vector<tuner::CostModel> starts = [] {
    std::vector<tuner::CostModel> models;
    for (const Skeleton *skeleton : skeletonsOf(Kind()))
      models.push_back(startOf(*skeleton));
    return models;
  }();
  for (const tuner::CostModel &start : starts)
    if (start.family == skeleton)
      return &start;
  return Status::notFound("there is no cost model for kernels of '" + skeleton + "'");
}

struct ScheduleCost::Impl {
  Impl(std::shared_ptr<const CountedPattern> pattern, const ProblemShape &shape, const KernelRequest &request,
       const GpuModel &gpu, WorkCounts whole)
      : pattern(std::move(pattern)), shape(shape), gpu(gpu),
        bytesOfKey(request.headDim * dtypeBytes(request.elements.k) +
                   request.valueDim * dtypeBytes(request.elements.v)),
        dims(request.headDim + request.valueDim), whole(std::move(whole)) {}

  /// The counts of what the configuration launches.
  WorkCounts &counts(const ScheduleFacts &facts) { return facts.isChained && chained ? *chained : whole; }

  Dealing dealingOf(const ScheduleFacts &facts) const {
    Dealing dealing;
    dealing.blockM = facts.blockM;
    dealing.takesStrides = facts.takesStrides;
    dealing.isReversed = facts.isReversed;
    dealing.partKeys = facts.partTiles * facts.blockN;
    dealing.blocks = gpu.smCount * std::max<int64_t>(facts.minBlocks, 1);
    const int64_t headBytes = std::max<int64_t>(shape.seqlenK * bytesOfKey, 1);
    dealing.sectionPairs =
        facts.rasterMib ? std::max<int64_t>((facts.rasterMib << 20) / headBytes, 1) * (shape.heads / shape.kvHeads)
                        : std::max<int64_t>(facts.rasterHeads, 1);
    return dealing;
  }

  const std::shared_ptr<const CountedPattern> pattern;
  const ProblemShape shape;
  const GpuModel gpu;
  const int64_t bytesOfKey, dims;
  WorkCounts whole;
  std::optional<WorkCounts> chained; ///< of the kernels of all passes
};

ScheduleCost::ScheduleCost(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
ScheduleCost::~ScheduleCost() = default;

Result<std::shared_ptr<ScheduleCost>> ScheduleCost::create(const PreparedPattern &pattern, const ProblemShape &shape,
                                                           const KernelRequest &request, const GpuModel &gpu) {
  const std::shared_ptr<const CountedPattern> counted = pattern.counted;
  const attn::ProblemSizes sizes = sizesOf(request.qOrigin, shape);
  HEDDLE_ASSIGN(WorkCounts whole, WorkCounts::create({&counted->whole}, sizes, shape.batch));
  auto impl = std::make_unique<Impl>(counted, shape, request, gpu, std::move(whole));
  std::vector<const attn::PatternAnalysis *> passes;
  for (const attn::PatternAnalysis &pass : counted->passes)
    passes.push_back(&pass);
  if (!passes.empty())
    if (Result<WorkCounts> chained = WorkCounts::create(passes, sizes, shape.batch))
      impl->chained.emplace(chained.take());
  return std::shared_ptr<ScheduleCost>(new ScheduleCost(std::move(impl)));
}

void ScheduleCost::describe(const KernelConfig &config, size_t changes, tuner::CostFeatures &features) {
  const ScheduleFacts facts = (*findSkeleton(config.skeleton()))->schedule(config);
  WorkCounts &counts = impl->counts(facts);
  const TileWork &work = counts.tiles(facts.blockM, facts.blockN);
  const DealtWork &dealt = counts.deal(impl->dealingOf(facts));
  const double rows = double(facts.blockM), keys = double(facts.blockN), dims = double(impl->dims);
  const double clocks = double(impl->gpu.smCount) * impl->gpu.clockMhz; // of all SMs in a microsecond
  const double blockClocks = clocks * double(std::max<int64_t>(facts.minBlocks, 1));
  const double pairs = work.visited * rows * keys, exps = pairs / (kExpPerClock * clocks);

  std::vector<double> &terms = features.terms;
  terms.assign(termCount, 0);
  terms[tensor] = pairs * 2 * dims / (impl->gpu.bf16Tflops * 1e6);
  terms[facts.isAnchored ? expAnchored : expOnline] = exps;
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
  for (const auto &[choice, isMade] : facts.choices)
    factors.push_back(isMade);
  factors.push_back(std::log(dealt.imbalance));
  factors.push_back(double(changes));
}

} // namespace heddle
