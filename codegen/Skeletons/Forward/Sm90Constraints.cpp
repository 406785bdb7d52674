#include "codegen/Skeletons/Forward/Sm90Constraints.h"
#include "codegen/Skeletons/Forward/Sm90Pairs.h"
#include "codegen/Skeletons/Forward/Sm90TurnedValues.h"
#include "codegen/Config/ChainedLaunch.h"
#include "codegen/Config/DocumentTiles.h"
#include "codegen/Skeletons/Shared/BlockLimits.h"
#include "codegen/Skeletons/Shared/TensorMapLaunch.h"
#include "codegen/Skeletons/Shared/cell_layout.cuh"
#include "codegen/Target/GpuArch.h"

#include <algorithm>

namespace heddle {

using namespace sm90;

namespace {

constexpr int64_t kMaxBoxRows = 256;    // rows of one copy through a tensor map
constexpr int64_t kRegisterStep = 8;    // of setmaxnreg
constexpr int64_t kStateRegisters = 30; // softmax state and addresses of a consumer's thread

int64_t consumers(const Sm90Config &config) { return config.blockM / kConsumerRows; }

// Registers of every thread at launch: what the compiler may use for the whole block.
int64_t registersAtLaunch(const GpuArch &arch, const Sm90Config &config) {
  return allowedRegisters(arch, config.threads(), config.minBlocks) / kRegisterStep * kRegisterStep;
}

} // namespace

int64_t sm90Warps(int64_t blockM) { return blockM / kWarpRows + kProducerWarps; }

int64_t sm90KeyStep(const KernelRequest &request) {
  return std::max<int64_t>(kKeyStep, sm90Tiles(request).product.mmaStep);
}

int64_t sm90OutputDim(const KernelRequest &request) { return request.valueDim + sumColumns(sm90Tiles(request).bytes); }

bool sm90CanSplit(const KernelRequest &request) { return request.valueDim <= kLargestSplitValueDim; }

SmemLayout sm90Smem(const KernelRequest &request, const Sm90Config &config) {
  SmemLayout layout(kTileAlignment);
  layout.append("barriers", kBarrierBytes);
  const auto [headDim, valueDim, bytes, product] = sm90Tiles(request);
  layout.append("q", tileBytes(config.blockM, headDim, bytes), config.queryStages);
  layout.append("k", tileBytes(config.blockN, headDim, bytes), config.stages);
  const bool areKeyMajor = sm90AreKeyMajor(request, config), areTurned = areTurnedOver(bytes, areKeyMajor);
  const int64_t arriving = tileBytes(config.blockN, valueDim, bytes);
  layout.append("v", areTurned || areKeyMajor ? turnedBytes(config.blockN, request.valueDim, bytes) : arriving,
                valueStages(config.stages, bytes, areKeyMajor));
  if (areTurned)
    layout.append("raw", arriving, rawStages(bytes));
  if (config.turnValues)
    layout.append("turning", turningBytes(request.valueDim), kTransposerWarps);
  if (sharesOnes(bytes))
    layout.append("ones", kOnesBytes);
  if (sm90MakesPairs(request))
    layout.append("factors", config.blockN * kKeyFactorBytes, config.stages);
  if (config.flushTiles && !config.totals)
    layout.append("totals", totalBytes(config.blockM, request.valueDim));
  if (request.hasLists)
    layout.append("cells", kCellBytes + kNotedTileBytes);
  return layout;
}

// What the producing warpgroup gives back is all that the others can take.
int64_t sm90ConsumerRegisters(const GpuArch &arch, const Sm90Config &config) {
  const int64_t all = (consumers(config) + 1) * registersAtLaunch(arch, config);
  const int64_t each = (all - config.producerRegisters) / consumers(config);
  return std::clamp(each / kRegisterStep * kRegisterStep, kLeastRegisters, kMostRegisters);
}

namespace {

// Scores of a tile, the packed weights of the one before, the output, softmax state and addresses. Of pairs the product of a
// tile with the values is apart from the output, and may come after the scores.
int64_t leastConsumerRegisters(const KernelRequest &request, const Sm90Config &config) {
  const int64_t scores = config.blockN / 2, weights = config.blockN * request.element().bytes / 8;
  const int64_t output = roundUp(sm90OutputDim(request), kHeadDimStep) / 2;
  const int64_t ofTile = !sm90MakesPairs(request)          ? scores
                         : overlapsPairs(request.valueDim) ? scores + output
                                                           : std::max(scores, output);
  return ofTile + weights + output + kStateRegisters;
}

Reason checkQueryTile(const KernelRequest &, const Sm90Config &config) {
  if (config.blockM % kConsumerRows != 0)
    return "block_m is " + number(config.blockM) + ", expected a multiple of " + number(kConsumerRows) +
           " rows, one warpgroup for each " + number(kConsumerRows);
  if (config.warps != sm90Warps(config.blockM))
    return "warps is " + number(config.warps) + ", block_m=" + number(config.blockM) + " wants " +
           number(sm90Warps(config.blockM)) + ": block_m / 16 that consume and 4 that produce";
  return std::nullopt;
}

Reason checkKeyTile(const KernelRequest &request, const Sm90Config &config) {
  const int64_t step = sm90KeyStep(request);
  if (config.blockN % step != 0)
    return "block_n is " + number(config.blockN) + ", expected a multiple of " + number(step);
  return std::nullopt;
}

Reason checkBoxes(const KernelRequest &, const Sm90Config &config) {
  if (config.blockM <= kMaxBoxRows)
    return std::nullopt;
  return "block_m is " + number(config.blockM) + ", one copy through a tensor map takes at most " +
         number(kMaxBoxRows) + " rows";
}

Reason checkRegisterSplit(const KernelRequest &request, const Sm90Config &config) {
  if (config.producerRegisters % kRegisterStep != 0 || config.consumerRegisters % kRegisterStep != 0)
    return "producer_registers=" + number(config.producerRegisters) +
           " and consumer_registers=" + number(config.consumerRegisters) + ", expected multiples of " +
           number(kRegisterStep);
  const int64_t atLaunch = registersAtLaunch(*request.arch, config);
  const std::string launched = (config.minBlocks > 1 ? number(config.minBlocks) + " times " : "") +
                               number(config.threads()) + " threads start with " + number(atLaunch);
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

Reason checkRegisters(const KernelRequest &request, const Sm90Config &config) {
  const int64_t need = leastConsumerRegisters(request, config);
  if (need <= config.consumerRegisters)
    return std::nullopt;
  return "scores and weights of " + number(config.blockN) + " keys and " + number(request.valueDim) +
         " outputs need at least " + number(need) + " registers per thread, consumer_registers is " +
         number(config.consumerRegisters);
}

Reason checkThreshold(const KernelRequest &request, const Sm90Config &config) {
  const ElementTraits &element = request.element();
  if (config.rescaleThreshold <= element.largestExponent())
    return std::nullopt;
  return "rescale_threshold is " + number(config.rescaleThreshold) + ", weights in " + dtypeName(element.dtype) +
         " stay finite up to " + number(element.largestExponent());
}

Reason checkAnchored(const KernelRequest &request, const Sm90Config &config) {
  if (config.softmax != kSoftmaxAnchored)
    return std::nullopt;
  if (request.element().largestExponent() < kFloatExponent && !request.element().isScaled())
    return std::string("anchored weights need the range of fp32, not that of ") + dtypeName(request.elements.q);
  if (sm90MakesPairs(request))
    return std::string("weights of exact products are brought into the range of fp16, which takes their maximum");
  if (areTurnedOver(request.element().bytes) && !request.element().isScaled())
    return std::string("kernels of fp32 wait for shared memory, not for the search of maxima");
  // A bias that grows along the keys passes every anchor, and the item is computed twice.
  if (request.hasScores)
    return std::string("anchors hold where scores of one row stay close, which a chain of scores need not leave so");
  return std::nullopt;
}

Reason checkFlush(const KernelRequest &request, const Sm90Config &config) {
  const int64_t keys = config.flushTiles * config.blockN, most = kMostFlushKeys / std::max<int64_t>(config.blockN, 1);
  if (!request.element().isScaled()) {
    if (!config.flushTiles && !config.totals)
      return std::nullopt;
    return std::string("sums of products of ") + dtypeName(request.elements.q) + " are fp32, there is nothing to flush";
  }
  if (!config.flushTiles)
    return "flush_tiles=0 leaves sums of long rows to tensor cores, which cut them: expected 1 to " + number(most);
  if (keys > kMostFlushKeys)
    return "flush_tiles=" + number(config.flushTiles) + " of " + number(config.blockN) + " keys are " + number(keys) +
           ", expected at most " + number(kMostFlushKeys) + ", of whose sum 3% are cut: flush_tiles=" + number(most);
  return std::nullopt;
}

Reason checkTurned(const KernelRequest &request, const Sm90Config &config) {
  if (!config.turnValues || sm90CanTurn(request))
    return std::nullopt;
  return std::string("values are turned over once where they are bytes that lie row by row, keys have no stride, and a "
                     "call is no chain of passes");
}

Reason checkGrid(const KernelRequest &, const Sm90Config &config) {
  for (int known : {kGridTile, kGridStride, kGridDynamic})
    if (config.grid == known)
      return std::nullopt;
  return "no order has the number " + number(config.grid) +
         "; items are dealt out by tile (0), at a stride (1) or from a counter (3)";
}

Reason checkSplits(const KernelRequest &request, const Sm90Config &config) {
  if ((config.splitLast || config.splitTiles) && !sm90CanSplit(request))
    return "parts of value_dim=" + number(request.valueDim) +
           " do not merge within the registers of a thread, at most " + number(kLargestSplitValueDim) + " does";
  if (config.splitLast && config.grid != kGridStride)
    return std::string("a last round to split is known only where blocks take items at a stride");
  if (!config.splitTiles)
    return std::nullopt;
  if (config.splitLast)
    return std::string("items are cut for one reason, split_last or split_tiles");
  if (config.grid == kGridTile)
    return std::string("parts of long items are shared by blocks that stay, which a block for every item does not");
  return std::nullopt;
}

Reason checkTurns(const KernelRequest &, const Sm90Config &config) {
  if (!config.turnTaking || consumers(config) > 1)
    return std::nullopt;
  return "turns need at least two consuming warpgroups, block_m=" + number(config.blockM) + " has one";
}

// The runtime keeps the parameters of one call together.
Reason checkPasses(const KernelRequest &request, const Sm90Config &config) {
  if (!config.chainedMib || request.passes.empty())
    return checkChained(request, config);
  if (sm90MakesPairs(request))
    return std::string("every pass of every round would make the pairs of all floats again");
  int64_t need = 0;
  for (size_t i = 0; i < request.passes.size(); ++i)
    need += roundUp(tensorMapParamBytes(request.passRequest(i)), kParamAlignment);
  if (need <= kMaxParamBytes)
    return std::nullopt;
  return number(int64_t(request.passes.size())) + " passes take " + number(need) + " B of parameters, a call takes " +
         number(kMaxParamBytes) + " B";
}

} // namespace

bool sm90CanChain(const KernelRequest &request, const Sm90Config &config) { return !checkPasses(request, config); }

const std::vector<Constraint> &sm90Constraints() {
  using C = Sm90Config;
  static const std::vector<Constraint> list = {
      {"ranges", "every field lies in its range", checkRanges},
      {"query_tile", "every consuming warpgroup owns 64 rows", ruleOf<C, checkQueryTile>},
      {"key_tile", "tiles are multiples of 16 keys", ruleOf<C, checkKeyTile>},
      {"threads", "threads of one block", ruleOf<C, threadsFit<C>>},
      {"boxes", "rows of one copy through a tensor map", ruleOf<C, checkBoxes>},
      {"smem", "shared memory of one block", ruleOf<C, smemFits<C, sm90Smem>>},
      {"smem_blocks", "shared memory of min_blocks blocks", ruleOf<C, smemOfBlocksFits<C, sm90Smem>>},
      {"register_split", "registers of all warpgroups after launch", ruleOf<C, checkRegisterSplit>},
      {"registers", "least registers of a consuming thread", ruleOf<C, checkRegisters>},
      {"threshold", "weights stay finite in their type", ruleOf<C, checkThreshold>},
      {"anchored", "what the anchored softmax needs", ruleOf<C, checkAnchored>},
      {"flush", "totals of what is not summed in fp32", ruleOf<C, checkFlush>},
      {"turned", "what values are turned over once", ruleOf<C, checkTurned>},
      {"grid", "an order that there is", ruleOf<C, checkGrid>},
      {"splits", "which items can be cut into parts", ruleOf<C, checkSplits>},
      {"turns", "turns are taken by at least two", ruleOf<C, checkTurns>},
      {"chained", "a pattern of several passes, and parameters of all of them", ruleOf<C, checkPasses>},
      {"document_tiles", "a pattern whose rows lie in documents, in one kernel", ruleOf<C, checkDocumentTiles>},
  };
  return list;
}

} // namespace heddle
