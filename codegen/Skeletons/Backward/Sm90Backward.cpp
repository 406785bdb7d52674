// Owns what the Hopper backward skeleton serves, its search space and defaults. Change it together with
// sm90_backward.cuh.
#include "codegen/Config/TraitsPrinter.h"
#include "codegen/Skeletons/Backward/Sm90BackwardConfig.h"
#include "codegen/Skeletons/Backward/Sm90Raised.h"
#include "codegen/Skeletons/Shared/BlockLimits.h"
#include "codegen/Skeletons/Shared/Family.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Skeletons/Shared/ScheduleFacts.h"
#include "codegen/Skeletons/Shared/WarpgroupShapes.h"

#include <algorithm>

namespace heddle {
namespace {

using namespace sm90;

/// Pairs are kept or dropped, in a band or everywhere, by squares that a step does not fill.
bool cutsSquares(const KernelRequest &request, int64_t blockM) {
  const int64_t grain = std::max(request.grain, request.bandedGrain);
  return grain > 1 && grain % blockM != 0;
}

// More heads side by side: fewer blocks of each wait for each other, and those that do read the same queries (H200,
// causal 32k: 19.7 ms, 20.8 with 64, 21.4 with 32). Rows of a class lie scattered among the sums, which then should
// stay in L2 (dilated window 32k: 2.72 ms, 3.68 with 256).
constexpr int64_t kOrderedRasterMib = 256, kScatteredRasterMib = 64;
constexpr int64_t kMaxRaisedDim = 128; // two tiles of queries beside those of 64 keys
constexpr int64_t kTeam = 4;           // H200, longformer 32k: 834 us, 861 with 8

class Sm90Backward final : public Family<Sm90BackwardConfig, KindBase::backward, WarpgroupProducts, backwardSmem> {
public:
  std::vector<Knob> knobs(const KernelRequest &) const override {
    return {
        {"block_m", "queries of a step: fewer barriers, more registers", {64, 128}},
        {"block_n", "keys of a block, 64 for each warpgroup: fewer additions to the query gradient", {64, 128}},
        {"stages", "tiles of q and d_out in shared memory: deeper prefetch", {2, 3}},
        {"reduce",
         "how the query gradient comes about: added to sums by those who make scores or by a warpgroup of its own, in "
         "no order or in that of the keys, or by a walk of its own",
         {kReduceRegisters, kReduceWarpgroup, kReduceOrdered, kReduceNone}},
        {"producer_registers",
         "of a thread that copies: ranges of many pieces want more, the others get the rest",
         {24, 56, 88, 120}},
        {"long_split", "blocks that share a tile that sees, or is seen by, everything", {1, 4, 8}},
        {"raster_reversed", "key tiles in descending order", {0, 1}},
        {"raster_mib",
         "what heads that run side by side read and add, in MiB: what should stay in L2",
         {8, 32, 64, 256}}};
  }

  const std::vector<Constraint> &constraints() const override { return sm90BackwardConstraints(); }

  KernelConfig defaultConfig(const KernelRequest &request) const override {
    Sm90BackwardConfig config = plainConfig(request);
    for (int64_t reduce : reducesOf(request)) {
      config.reduce = reduce;
      for (int64_t blockM : stepsOf(request)) {
        config.blockM = blockM;
        if (!whyInfeasible(request, config))
          return config;
      }
    }
    return config;
  }

  // Fewer queries a step, more registers of the producing threads, which ranges of many pieces want; then d_q by those
  // who make scores, and by a walk of its own.
  std::vector<KernelConfig> fallbackConfigs(const KernelRequest &request) const override {
    std::vector<KernelConfig> fallbacks;
    const KernelConfig tried = defaultConfig(request);
    Sm90BackwardConfig config = plainConfig(request);
    const auto offer = [&](int64_t reduce, int64_t producerRegisters) {
      config.reduce = reduce;
      config.producerRegisters = producerRegisters;
      for (int64_t blockM : {2 * kConsumerRows, kConsumerRows}) {
        config.blockM = blockM;
        if (!(KernelConfig(config) == tried) && !whyInfeasible(request, config))
          fallbacks.push_back(config);
      }
    };
    for (int64_t reduce : reducesOf(request))
      for (int64_t producerRegisters : {24, 56, 88})
        if (reduce != kReduceRegisters || producerRegisters == 24)
          offer(reduce, producerRegisters);
    config.blockN = kConsumerRows;
    if (isRaised(request)) {
      config.longSplit = 1;
      offer(kReduceNone, 24);
    }
    offer(kReduceNone, 120);
    return fallbacks;
  }

  ScheduleFacts schedule(const KernelConfig &given) const override {
    const Sm90BackwardConfig config(given);
    ScheduleFacts facts;
    facts.blockM = config.blockM;
    facts.blockN = config.blockN;
    if (!config.walksQueries() && !config.isOrdered())
      facts.addedInAnyOrder = {Role::dQ};
    return facts;
  }

  LaunchPlan planLaunch(const KernelRequest &request, const KernelConfig &config) const override {
    return sm90BackwardPlan(request, config);
  }

  std::string traits(const KernelRequest &request, const KernelConfig &given) const override {
    const Sm90BackwardConfig config(given);
    const MapRates rates = backwardRates(request);
    const int64_t columns = sumColumns(request, config);
    TraitsPrinter printer(request, given, backwardProduct(request));
    printer.constant("kConsumerRegisters", consumerRegisters(request, config));
    printer.constant("kWalkProducerRegisters", walkRegisters(request, config).producer);
    printer.constant("kWalkConsumerRegisters", walkRegisters(request, config).consumer);
    printer.constant("kPassesWeights", passesWeights(request, config));
    TileGrain(request, config.blockM, config.blockN).print(printer);
    printer.constant("kSumColumns", columns);
    printer.constant("kSumSplits", sumSplits(request, config));
    printer.constant("kOrderRate", config.isOrdered() ? request.consecutiveRate : 0);
    printRowTraits(printer, request, rates.key);
    if (isRaised(request))
      printRaiseRows(printer, request);
    printer.smem(backwardSmem(request, config));
    printer.constant("kMapsPerRate", rates.mapsPerRate());
    printer.constant("kKeyRateCount", int64_t(rates.query.size()));
    printer.array("kKeyRates", rates.query);
    return printer.str() + warpgroupShapes({config.blockM, request.valueDim, request.headDim, columns});
  }

private:
  // Steps of 128 queries where registers allow them and squares that are kept or dropped are not smaller.
  static std::vector<int64_t> stepsOf(const KernelRequest &request) {
    const int64_t longStep = 2 * kConsumerRows;
    return request.hasScores || isRaised(request) || cutsSquares(request, longStep)
               ? std::vector<int64_t>{kConsumerRows}
               : std::vector<int64_t>{longStep, kConsumerRows};
  }

  // What to try, in turn.
  static std::vector<int64_t> reducesOf(const KernelRequest &request) {
    if (needsTwo(request) || isRaised(request))
      return {kReduceNone};
    if (request.kind.isDeterministic)
      return {kReduceOrdered, kReduceNone};
    return {kReduceWarpgroup, kReduceRegisters, kReduceNone};
  }

  static Sm90BackwardConfig plainConfig(const KernelRequest &request) {
    Sm90BackwardConfig config;
    config.reduce = reducesOf(request).back();
    if (request.kind.isDeterministic)
      config.rasterMib = request.consecutiveRate > 1 ? kScatteredRasterMib : kOrderedRasterMib;
    if (needsTwo(request))
      config.blockN = kConsumerRows;
    if (isRaised(request) && !(needsTwo(request) && request.isExact()))
      config.stages = 3; // a tile stays until the products for the next one have begun
    const TileBalance &balance = request.balance;
    if (!needsTwo(request) && (balance.firstKeysAreLong || (balance.hasLongRows && !balance.longRowsAreLast)))
      config.longSplit = kTeam;
    return config;
  }

protected:
  std::vector<KernelEntry> entries(const KernelRequest &request, const KernelConfig &config) const override {
    std::vector<KernelEntry> entries = backwardEntries();
    if (isRaised(request))
      entries.insert(entries.begin(), raiseRowsEntry());
    return entries;
  }
  Status checkRequest(const KernelRequest &request) const override {
    HEDDLE_TRY(request.checkTypes(&ElementTraits::isOfWarps));
    if (request.elements.out != request.elements.q)
      return Status::unsupported("serves out and d_out of the type of q only");
    HEDDLE_TRY(checkOrderOfGradients(request));
    const int64_t most = isRaised(request) ? kMaxRaisedDim : kMaxHeadDim;
    for (int64_t dim : {request.headDim, request.valueDim})
      if (dim % kHeadDimStep != 0 || dim > most)
        return Status::unsupported("serves head dims that are multiples of " + number(kHeadDimStep) + " up to " +
                                   number(most) + ", not " + number(dim) +
                                   (isRaised(request) ? " of " + std::string(dtypeName(request.elements.q)) : ""));
    return {};
  }
};

} // namespace

const Skeleton &sm90BackwardSkeleton() { return theOnly<Sm90Backward>(); }

} // namespace heddle
