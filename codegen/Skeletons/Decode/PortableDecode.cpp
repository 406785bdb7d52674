//===- PortableDecode.cpp - host half of portable_decode.cuh -----------------------------------===//
//
// Owns what the portable decode skeleton serves, its search space, constraints, shared-memory plan, workspace and
// launch. Constants and constraints mirror the contract at the top of portable_decode.cuh; change both together.
//
//===----------------------------------------------------------------------===//
#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Config/TraitsPrinter.h"
#include "codegen/Skeletons/Decode/ClusterLaunch.h"
#include "codegen/Skeletons/Decode/FewUnits.h"
#include "codegen/Skeletons/Decode/DecodeConfig.h"
#include "codegen/Skeletons/Decode/decode_layout.cuh"
#include "codegen/Skeletons/Shared/BlockLimits.h"
#include "codegen/Skeletons/Shared/Family.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Skeletons/Shared/ScheduleFacts.h"
#include "runtime/Core/KernelRecord.h"
#include "runtime/Core/LaunchPlan.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr int64_t kMmaKeys = 16, kMaxHeadDim = 128, kLanesOfRow = 4, kPieceBytes = 16;

SmemLayout layoutOf(const KernelRequest &request, const DecodeConfig &config) {
  SmemLayout layout;
  layout.append("q", config.warps * decode::kRows * rowBytes(request, request.headDim));
  layout.append("k", config.blockN() * keyRowBytes(request, request.headDim), config.stages);
  layout.append("v", config.blockN() * keyRowBytes(request, request.valueDim), config.stages);
  layout.append("control", decode::kControlBytes);
  return layout;
}

Reason checkWarps(const KernelRequest &, const DecodeConfig &config) {
  if (config.warps == 4 || config.warps == 8)
    return std::nullopt;
  return "warps is " + number(config.warps) + ", expected 4 or 8";
}

Reason checkKeys(const KernelRequest &, const DecodeConfig &config) {
  if (config.chunkN % kMmaKeys == 0)
    return std::nullopt;
  return "chunk_n is " + number(config.chunkN) + ", expected a multiple of " + number(kMmaKeys);
}

Reason checkStates(const KernelRequest &request, const DecodeConfig &config) {
  const int64_t need = config.warps * decode::stateBytes(request.valueDim);
  const int64_t have = config.stages * config.blockN() *
                       (keyRowBytes(request, request.headDim) + keyRowBytes(request, request.valueDim));
  if (need <= have)
    return std::nullopt;
  return "states of " + number(config.warps) + " warps need " + number(need) + " B, keys and values have " +
         number(have) + " B";
}

// Accumulators, query fragments, scores and weights; a lower bound, as in PortableForward.cpp.
int64_t leastRegisters(const KernelRequest &request, const DecodeConfig &config) {
  constexpr int64_t kOthers = 48;
  return request.valueDim / 2 + request.headDim / 4 + config.chunkN / 2 + config.chunkN / 4 + kOthers;
}

void appendRole(KernelLaunch &launch, const Kind &kind, Role role) {
  if (kind.find(role))
    launch.appendPointer(role);
  else
    launch.appendI64(0);
}

class PortableDecode final : public Family<DecodeConfig, KindBase::decode, AsyncCopies, layoutOf> {
public:
  Status checkRequest(const KernelRequest &request) const override;
  std::vector<Knob> knobs(const KernelRequest &request) const override;
  const std::vector<Constraint> &constraints() const override;
  KernelConfig defaultConfig(const KernelRequest &request) const override;
  std::vector<KernelConfig> fallbackConfigs(const KernelRequest &request) const override;
  ScheduleFacts schedule(const KernelConfig &config) const override;
  LaunchPlan planLaunch(const KernelRequest &request, const KernelConfig &config) const override;
  std::string traits(const KernelRequest &request, const KernelConfig &config) const override;

protected:
  std::vector<KernelEntry> entries(const KernelRequest &request, const KernelConfig &config) const override {
    std::vector<KernelEntry> all = Skeleton::entries(request, config);
    if (hasClusterKernel(request))
      all.push_back(clusterEntry());
    return all;
  }
};

Status PortableDecode::checkRequest(const KernelRequest &request) const {
  HEDDLE_TRY(request.checkTypes(&ElementTraits::isPacked, /*takesScaledKeys=*/true));
  HEDDLE_TRY(checkScaledKeys(request));
  const int64_t step = kLanesOfRow * kPieceBytes / traitsOf(request.elements.k).bytes;
  for (int64_t dim : {request.headDim, request.valueDim})
    if (dim % step != 0 || dim > kMaxHeadDim)
      return Status::unsupported("serves head dims of multiples of " + number(step) + " up to " + number(kMaxHeadDim) +
                                 (request.elements.hasScaledKeys() ? " beside k and v of e4m3" : "") + ", not " +
                                 number(dim));
  return request.whyNoPages.empty() ? Status() : Status::unsupported(request.whyNoPages);
}

/// Of a kind whose bits do not depend on the batch: all kernels that calls may get, as many rows as they have and whatever
/// searches found, sum the keys of a part in one order. Parts have at least the keys of a tile.
bool keepsSums(const KernelRequest &request) { return request.kind.base == KindBase::decodeInvariant; }

/// Eight warps would have tiles of more keys than a part; or units of more rows, of which other tiles are looked at where rows
/// have several ranges.
bool keepsWarps(const KernelRequest &request) {
  return keepsSums(request) && (request.elements.hasScaledKeys() || request.consecutiveRate == 0);
}

std::vector<Knob> PortableDecode::knobs(const KernelRequest &request) const {
  std::vector<Knob> knobs = {
      {"warps", "of a block: 8 read keys half as often for many rows", {4, 8}},
      {"chunk_n", "keys of a warp in one key tile: fewer waits, more shared memory", {16, 32}},
      {"stages", "slices of key tiles in each warp's ring: more bytes under way", {2, 3, 4}},
      {"min_blocks", "blocks per SM: more bytes under way, fewer registers", {1, 2, 3, 4}},
      {"piece_tiles", "fewest key tiles of a block: less to join, fewer blocks at work", {1, 2, 4, 8}},
      {"evict_tiles", "most key tiles of a block whose keys leave the L2 first: other lines stay there", {0, 8}},
      {"rescale_threshold", "growth of a row maximum, in log2 units, before accumulators are rescaled", {0, 8}},
  };
  const auto isKept = [&](const Knob &knob) {
    const std::string field = knob.name;
    return (keepsSums(request) && (field == "chunk_n" || field == "rescale_threshold")) ||
           (keepsWarps(request) && field == "warps");
  };
  knobs.erase(std::remove_if(knobs.begin(), knobs.end(), isKept), knobs.end());
  return knobs;
}

const std::vector<Constraint> &PortableDecode::constraints() const {
  using C = DecodeConfig;
  static const std::vector<Constraint> list = {
      {"ranges", "every field lies in its range", checkRanges},
      {"warps", "as many as units of many rows have groups", ruleOf<C, checkWarps>},
      {"keys", "a warp has whole matrices of keys", ruleOf<C, checkKeys>},
      {"states", "states of the warps fit where keys and values were", ruleOf<C, checkStates>},
      {"threads", "threads and blocks of one SM", ruleOf<C, threadsFit<C>>},
      {"smem", "shared memory of one block", ruleOf<C, smemFits<C, layoutOf>>},
      {"smem_blocks", "shared memory of min_blocks blocks", ruleOf<C, smemOfBlocksFits<C, layoutOf>>},
      {"registers", "least registers of one thread", ruleOf<C, registersFit<C, leastRegisters>>},
  };
  return list;
}

// Eight warps on an SM, with as many bytes under way as its shared memory holds: each lacks one slice, that it computes
// on. With two slices a block of four fits everywhere. Eight of one block read keys once for twice as many rows: 64 queries
// each of 8 sequences of 8k keys, 32/8 heads, take 261 us, 302 us by two blocks of four, 17 queries 145 and 167, 512 of one beside
// one each of 31 430 and 462; one query of 32 takes 1% longer. Where bits may not depend on the batch the last take 820 us, and
// 629 by four warps (H200).
KernelConfig PortableDecode::defaultConfig(const KernelRequest &request) const {
  struct Shape {
    int64_t warps, minBlocks, stages, pieceTiles;
  };
  constexpr int64_t kRowsOfFourWarps = 4 * decode::kRows;
  const bool hasManyRows =
      request.balance.queries > kRowsOfFourWarps && !keepsSums(request) && !request.elements.hasScaledKeys();
  DecodeConfig config;
  if (request.elements.hasScaledKeys()) // as many bytes of fewer bits
    config.chunkN *= 2;
  for (const Shape &shape : {Shape{8, 1, 3, 1}, {8, 1, 2, 1}, {4, 2, 3, 2}, {4, 2, 2, 2}, {4, 1, 3, 2}, {4, 1, 2, 2}}) {
    config.warps = shape.warps, config.minBlocks = shape.minBlocks;
    config.stages = shape.stages, config.pieceTiles = shape.pieceTiles;
    if ((hasManyRows || shape.warps == 4) && !whyInfeasible(request, config))
      break;
  }
  return config;
}

// Of eight warps each has fewer columns of states that are joined; of fewer keys a warp has fewer scores.
std::vector<KernelConfig> PortableDecode::fallbackConfigs(const KernelRequest &request) const {
  std::vector<KernelConfig> fallbacks;
  DecodeConfig config = defaultConfig(request);
  if (config.minBlocks > 1) {
    config.minBlocks = 1;
    fallbacks.push_back(config);
  }
  if (config.warps < 8) {
    config.warps = 8, config.pieceTiles = 1;
    fallbacks.push_back(config);
  }
  while (!fallbacks.empty() && whyInfeasible(request, fallbacks.back()))
    fallbacks.pop_back();
  for (DecodeConfig narrow : {DecodeConfig(defaultConfig(request)), config})
    if (narrow.chunkN > kMmaKeys && !whyInfeasible(request, (narrow.chunkN = kMmaKeys, narrow)))
      fallbacks.push_back(narrow);
  return fallbacks;
}

ScheduleFacts PortableDecode::schedule(const KernelConfig &given) const {
  const DecodeConfig config(given);
  ScheduleFacts facts;
  facts.blockM = decode::kRows;
  facts.blockN = config.blockN();
  facts.minBlocks = config.minBlocks;
  return facts;
}

LaunchPlan PortableDecode::planLaunch(const KernelRequest &request, const KernelConfig &given) const {
  using Symbol = LaunchSymbol;
  const DecodeConfig config(given);
  LaunchPlan plan = planFor(request, 1);
  plan.serves.qOrigin = QOriginRule::given; // calls give 0, sequences have their own
  const LaunchExpr blocks = LaunchExpr(Symbol::smCount) * config.minBlocks, slots = blocks * decode::kSlotsOfBlock;
  const LaunchExpr words = slots * (decode::kArrivalSteps * config.warps);
  const PointerSource arrivals = plan.appendRegion("zero.arrivals", words * int64_t(sizeof(uint32_t)));
  const PointerSource states =
      plan.appendRegion("states", slots * (config.warps * decode::blockStateBytes(request.valueDim, config.warps)));
  KernelLaunch &launch = plan.launches.emplace_back();
  launch.grid[0] = blocks;
  launch.block = config.threads();
  launch.sharedBytes = layoutOf(request, config).totalBytes();
  launch.clears.push_back({arrivals, 0, words, 0});
  appendOperands(launch, request);
  appendKeyScales(launch, request);
  if (request.hasPartsOfSequences())
    for (Role role : {Role::kOrigins, Role::wholeK})
      launch.appendPointer(role);
  const auto append = [&](Role role) { appendRole(launch, request.kind, role); };
  for (Symbol size :
       {Symbol::sequences, Symbol::tables, Symbol::pageSize, Symbol::maxPages, Symbol::heads, Symbol::kvHeads})
    launch.appendI32(size);
  launch.appendI32(floorDiv(Symbol::heads, max(LaunchExpr(Symbol::kvHeads), 1)));
  launch.appendI32(Symbol::seqlenQ);
  for (Role role :
       {Role::kvIndptr, Role::cuSeqlensQ, Role::sequsedK, Role::cuSeqlensK, Role::pageTable, Role::k, Role::v})
    append(role);
  for (Role role : {Role::k, Role::v})
    appendStrides(launch, role);
  launch.appendI64(ceilDiv(int64_t(1) << decode::kInverseShift, max(LaunchExpr(Symbol::pageSize), 1)));
  append(Role::q);
  appendStrides(launch, Role::q);
  for (Role role : {Role::kvIndices, Role::kvLastPageLen})
    append(role);
  appendRuntimeSizes(launch, request);
  launch.appendI32(Symbol::pages);
  launch.appendScaleLog2();
  launch.appendPointer(arrivals);
  launch.appendPointer(states);
  for (Role role : {Role::out, Role::lse})
    append(role);
  appendStrides(launch, Role::out);
  if (hasClusterKernel(request))
    appendClusterLaunch(plan, request);
  return plan;
}

std::string PortableDecode::traits(const KernelRequest &request, const KernelConfig &given) const {
  const DecodeConfig config(given);
  TraitsPrinter printer(request, given);
  printer.constant("kBlockM", decode::kRows);
  printer.constant("kBlockN", config.blockN());
  printer.constant("kRowWarps", 1);
  printer.constant("kQueryInRegisters", 1);
  printer.constant("kPacksHeads", packsHeads(request));
  const bool isPart = request.hasPartsOfSequences();
  printer.constant("kWholeQueries", isPart ? request.wholes[0] : -1);
  printer.constant("kWholeKeys", isPart ? request.wholes[1] : -1);
  printer.constant("kShares", request.kind.find(Role::sharedK) != nullptr);
  printer.smem(layoutOf(request, config));
  printRowBytes(printer, request);
  return printer.str() + (hasClusterKernel(request) ? clusterTraits(request, config) : "");
}

} // namespace

const Skeleton &portableDecodeSkeleton() { return theOnly<PortableDecode>(); }

} // namespace heddle
