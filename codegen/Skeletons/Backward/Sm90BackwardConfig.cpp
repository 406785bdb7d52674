#include "codegen/Skeletons/Backward/Sm90BackwardConfig.h"
#include "codegen/Skeletons/Backward/BackwardLaunch.h"
#include "codegen/Skeletons/Backward/Sm90Raised.h"
#include "codegen/Skeletons/Shared/BlockLimits.h"
#include "codegen/Skeletons/Backward/sm90_backward_records.cuh"

namespace heddle {
namespace {

using namespace sm90;

constexpr int64_t kTileColumnElements = 64;
// Of ranges of many pieces; consumers of wide heads do with 208, as they hold no products for the next tile.
constexpr int64_t kRaisedWalkRegisters = 72, kWideWalkRegisters = 88;

} // namespace

int64_t mostJointDim(const KernelRequest &request) { return isRaised(request) ? kMaxRaisedJointDim : kMaxJointDim; }

bool needsTwo(const KernelRequest &request) {
  return std::max(request.headDim, request.valueDim) > mostJointDim(request);
}

bool isWide(const KernelRequest &request, const Sm90BackwardConfig &config) {
  return needsTwo(request) || (isRaised(request) && config.blockN == kConsumerRows);
}

bool passesWeights(const KernelRequest &request, const Sm90BackwardConfig &config) {
  return isWide(request, config) && !request.hasScores;
}

int64_t consumersOf(const KernelRequest &request, const Sm90BackwardConfig &config) {
  return isWide(request, config) ? 2 : config.blockN / kConsumerRows;
}

namespace {

/// What those who copy leave for a consumer.
int64_t registersBeside(const KernelRequest &request, const Sm90BackwardConfig &config, int64_t producerRegisters) {
  const int64_t pool = config.hasReducer() ? kBlockRegisters - kReducerRegisters : kPoolRegisters;
  const int64_t left = (pool - producerRegisters) / 2 / kRegisterStep * kRegisterStep;
  return consumersOf(request, config) == 1 ? kMostRegisters : std::min(left, kMostRegisters);
}

} // namespace

int64_t consumerRegisters(const KernelRequest &request, const Sm90BackwardConfig &config) {
  return registersBeside(request, config, config.producerRegisters);
}

WalkRegisters walkRegisters(const KernelRequest &request, const Sm90BackwardConfig &config) {
  const int64_t ofRaised = isWide(request, config) ? kWideWalkRegisters : kRaisedWalkRegisters;
  const int64_t producer = isRaised(request) ? std::max(config.producerRegisters, ofRaised) : config.producerRegisters;
  return {producer, registersBeside(request, config, producer)};
}

int64_t sumColumns(const KernelRequest &request, const Sm90BackwardConfig &config) {
  const int64_t consumers = consumersOf(request, config);
  const int64_t tileColumns = columnsOf(request.headDim, request.element().bytes);
  if (isWide(request, config) && tileColumns > 1)
    return kTileColumnElements;
  if (isWide(request, config) || !config.splitsColumns() || consumers == 1)
    return roundUp(request.headDim, kSumGroupColumns);
  int64_t columns = kSumGroupColumns;
  while (columns * consumers < request.headDim)
    columns *= 2;
  return columns;
}

int64_t sumSplits(const KernelRequest &request, const Sm90BackwardConfig &config) {
  if (isWide(request, config))
    return roundUp(request.headDim, sumColumns(request, config)) / sumColumns(request, config);
  return config.splitsColumns() ? consumersOf(request, config) : 1;
}

MapRates backwardRates(const KernelRequest &request) {
  std::vector<VariantRates> both = request.transposed;
  for (int64_t rate : keyItemRates(request))
    both.push_back({rate, both.front().keyRates});
  for (const VariantRates &variant : request.variants)
    for (int64_t keyRate : variant.keyRates)
      both.push_back({keyRate, {variant.queryRate}});
  return MapRates::of(both);
}

SmemLayout backwardSmem(const KernelRequest &request, const Sm90BackwardConfig &config) {
  const int64_t bytes = backwardProduct(request).bytes;
  const auto tile = [&](int64_t rows, int64_t dim) { return backwardTileBytes(request, rows, dim); };
  SmemLayout layout(kTileAlignment);
  layout.append("barriers", kBarrierBytes);
  layout.append("k", tile(config.blockN, request.headDim));
  layout.append("v", tile(config.blockN, request.valueDim));
  layout.append("q", tile(config.blockM, request.headDim), config.stages);
  layout.append("out", tile(config.blockM, request.valueDim), config.stages);
  layout.append("scores", config.walksQueries() ? 0 : tileBytes(config.blockN, config.blockM, bytes), kScoreStages);
  const int64_t weightBytes = isRaised(request) ? kFloatBytes : bytes;
  layout.append("weights", passesWeights(request, config) ? tileBytes(config.blockN, config.blockM, weightBytes) : 0,
                kScoreStages);
  const int64_t statistics = isRaised(request) ? kRaisedRowStatistics : kRowStatistics;
  layout.append("statistics", statistics * config.blockM * kFloatBytes * config.stages);
  return layout;
}

namespace {

Reason checkTiles(const KernelRequest &request, const Sm90BackwardConfig &config) {
  if (needsTwo(request) && (config.blockN != kConsumerRows || config.blockM != kConsumerRows))
    return "block_m and block_n are " + number(config.blockM) + " and " + number(config.blockN) +
           ", expected 64 for head dims above " + number(mostJointDim(request));
  if (config.blockN != kConsumerRows && config.blockN != 2 * kConsumerRows)
    return "block_n is " + number(config.blockN) + ", expected 64 or 128";
  if (config.blockM != kConsumerRows && config.blockM != config.blockN)
    return "block_m is " + number(config.blockM) + ", expected 64 or block_n";
  return std::nullopt;
}

/// What stays, the sum of one tile, weights as an operand, and where one warpgroup sums d_k and d_v the weights and dP.
int64_t neededRaisedRegisters(const KernelRequest &request, const Sm90BackwardConfig &config) {
  const int64_t scores = config.blockM / 2, widest = std::max(request.headDim, request.valueDim);
  const int64_t ofSum = widest / 2 + scores;
  return isWide(request, config) ? widest / 2 + ofSum : (request.headDim + request.valueDim) / 2 + ofSum + 2 * scores;
}

/// A lane holds what stays, and what lives while the query gradient leaves.
int64_t neededRegisters(const KernelRequest &request, const Sm90BackwardConfig &config) {
  if (isRaised(request))
    return neededRaisedRegisters(request, config);
  const int64_t scores = config.blockM / 2, factors = request.hasScores ? scores / 2 : 0;
  const int64_t columns = sumColumns(request, config) / 2;
  if (isWide(request, config)) {
    const int64_t ofScores = scores + scores / 2 + factors,
                  ofSums = config.walksQueries() ? 0 : scores / 2 + 2 * columns;
    return std::max(request.headDim / 2 + std::max(ofScores, ofSums), request.valueDim / 2 + ofScores);
  }
  const int64_t queryGradient = config.walksQueries() || config.hasReducer() ? scores / 2 : columns;
  return (request.headDim + request.valueDim) / 2 + scores + scores / 2 + factors + queryGradient;
}

Reason checkRegisters(const KernelRequest &request, const Sm90BackwardConfig &config) {
  const int64_t need = neededRegisters(request, config);
  if (config.producerRegisters % kRegisterStep != 0)
    return "producer_registers is " + number(config.producerRegisters) + ", expected a multiple of " +
           number(kRegisterStep);
  const int64_t most = consumerRegisters(request, config) - 16; // for addresses and cursors
  if (need <= most)
    return std::nullopt;
  return "sums and scores take " + number(need) + " registers of a thread, " + number(most) + " are left";
}

Reason checkReduce(const KernelRequest &request, const Sm90BackwardConfig &config) {
  if (!config.hasReducer() || !isWide(request, config))
    return std::nullopt;
  return "a third warpgroup finds no registers above head dims of " + number(mostJointDim(request)) +
         ", expected reduce=0 or 2";
}

Reason checkRaised(const KernelRequest &request, const Sm90BackwardConfig &config) {
  if (!isRaised(request) || (config.walksQueries() && config.blockM == kConsumerRows))
    return std::nullopt;
  return "rows of fp32 have powers of two of their own, which d_q in sums of key tiles does not allow, expected "
         "reduce=2 and block_m=64";
}

Reason checkTeams(const KernelRequest &request, const Sm90BackwardConfig &config) {
  if (!config.hasTeams() || !isWide(request, config))
    return std::nullopt;
  return "blocks share no tiles " +
         (isRaised(request) ? std::string("of 64 keys") : "above head dims of " + number(mostJointDim(request))) +
         ", expected long_split=1";
}

Reason checkOrder(const KernelRequest &request, const Sm90BackwardConfig &config) {
  if (!config.isOrdered())
    return std::nullopt;
  if (request.consecutiveRate == 0)
    return "the key tiles that add to a query tile do not follow each other, expected reduce=2";
  if (config.hasTeams())
    return "a block waits for that of the key tile before, expected long_split=1";
  return std::nullopt;
}

Reason checkDeterministic(const KernelRequest &request, const Sm90BackwardConfig &config) {
  if (!request.kind.isDeterministic || config.walksQueries() || config.isOrdered())
    return std::nullopt;
  return "sums of the query gradient are added in any order, expected reduce=2 or 3";
}

} // namespace

const std::vector<Constraint> &sm90BackwardConstraints() {
  using C = Sm90BackwardConfig;
  static const std::vector<Constraint> list = {
      {"ranges", "every field lies in its range", checkRanges},
      {"tiles", "consumers have 64 keys each, and 64 rows or some columns of the query gradient",
       ruleOf<C, checkTiles>},
      {"raised", "of fp32 d_q has a walk of its own, in steps of 64 queries", ruleOf<C, checkRaised>},
      {"registers", "sums and scores of a step fit the registers", ruleOf<C, checkRegisters>},
      {"smem", "tiles fit the shared memory of a block", ruleOf<C, smemFits<C, backwardSmem>>},
      {"teams", "consumers that share keys have no team", ruleOf<C, checkTeams>},
      {"reduce", "a warpgroup for the query gradient finds registers", ruleOf<C, checkReduce>},
      {"order", "blocks wait for those before them", ruleOf<C, checkOrder>},
      {"deterministic", "bits do not depend on the run where that is asked for", ruleOf<C, checkDeterministic>},
  };
  return list;
}

} // namespace heddle
