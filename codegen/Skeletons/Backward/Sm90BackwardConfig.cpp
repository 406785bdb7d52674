//===- Sm90BackwardConfig.cpp - what is feasible for the Hopper backward skeleton, and why not -------===//
#include "codegen/Skeletons/Backward/Sm90BackwardConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Backward/BackwardLaunch.h"
#include "codegen/Target/GpuArch.h"

namespace heddle {
namespace {

using namespace sm90;
using Reason = std::optional<std::string>;

constexpr int64_t kScoreStages = 2; // sm90_backward_shared.cuh

int64_t roundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

} // namespace

int64_t sumColumns(const KernelRequest &request, const Sm90BackwardConfig &config) {
  if (!config.splitsColumns() || config.consumers() == 1)
    return roundUp(request.headDim, kSumGroupColumns);
  int64_t columns = kSumGroupColumns;
  while (columns * config.consumers() < request.headDim)
    columns *= 2;
  return columns;
}

int64_t sumSplits(const Sm90BackwardConfig &config) { return config.splitsColumns() ? config.consumers() : 1; }

MapRates backwardRates(const KernelRequest &request) {
  std::vector<VariantRates> both = request.transposed;
  for (const VariantRates &variant : request.variants)
    for (int64_t keyRate : variant.keyRates)
      both.push_back({keyRate, {variant.queryRate}});
  return MapRates::of(both);
}

bool stepsAreStrided(const KernelRequest &request) {
  return MapRates::of(request.transposed).key != std::vector<int64_t>{1};
}

SmemLayout backwardSmem(const KernelRequest &request, const Sm90BackwardConfig &config) {
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

namespace {

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
  const int64_t need = backwardSmem(request, config).totalBytes(), most = int64_t(request.arch->smemPerBlockBytes);
  if (need <= most)
    return std::nullopt;
  return "need " + std::to_string(need) + " B of shared memory, " + std::string(request.arch->name) + " allows " +
         std::to_string(most) + " B";
}

Reason checkReduce(const KernelRequest &request, const Sm90BackwardConfig &config) {
  if (config.reduce != kReduceCopies || !stepsAreStrided(request))
    return std::nullopt;
  return "tiles of rows at a stride are no copies in a row, expected reduce=0";
}

} // namespace

const std::vector<Constraint> &sm90BackwardConstraints() {
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

} // namespace heddle
