// Owns what the quantize skeleton serves, its search space, constraints, workspace and launch: q, k and v as e4m3 with a
// scale for each head, on every GPU; QuantizeRotated.cpp asks it for kernels that rotate rows of q and k first. Change it
// together with quantize.cuh.
#include "codegen/Skeletons/Quantize/quantize_layout.cuh"
#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Config/TraitsPrinter.h"
#include "codegen/Skeletons/Shared/BlockLimits.h"
#include "codegen/Skeletons/Shared/Family.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Skeletons/Shared/ScheduleFacts.h"
#include "codegen/Target/GpuArch.h"
#include "runtime/Core/LaunchPlan.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr int64_t kDimStep = 16, kMaxDim = 512, kWarpLanes = 32, kMaxWarps = 16, kMaxUnits = 8;
constexpr int64_t kMaxSlots = 16 - quantize::kSpares;
constexpr int64_t kLeadParts = 4; // of the blocks of a GPU, that the lead is counted in

struct QuantizeConfig {
  int64_t units = 4;      ///< of eight elements, of each of the two pieces that a thread holds
  int64_t warps = 8;      ///< of one block
  int64_t minBlocks = 2;  ///< of one SM: that the registers must allow, and of the grid
  int64_t heads = 2;      ///< whose pieces are numbered in turn
  int64_t slots = 0;      ///< of pieces of a block in shared memory; 0: elements are read twice
  int64_t ahead = 0;      ///< of these, those under way
  int64_t lead = 8;       ///< quarters of the grid, of what is read twice
  int64_t evictFirst = 1; ///< 1: what is read the second time and what is written leave the cache first

  int64_t threads() const { return kWarpLanes * quantize::warpsOfBlock(warps, slots); }
  int64_t pieceRows(int64_t dim) const { return units * quantize::stepRows(warps, dim); }
  int64_t pieceBytes(const KernelRequest &request) const {
    return kWarpLanes * warps * units * quantize::kUnitElements * request.element().bytes;
  }

  QuantizeConfig() = default;
  QuantizeConfig(const KernelConfig &config) { readFields(config, *this); }
  operator KernelConfig() const { return writeFields(*this); }

  static const FieldsOf<QuantizeConfig> &fields() {
    using C = QuantizeConfig;
    static const FieldsOf<C> list = {"quantize",
                                     {{"units", &C::units, 1, kMaxUnits},
                                      {"warps", &C::warps, 1, kMaxWarps},
                                      {"min_blocks", &C::minBlocks, 1, kLargestField},
                                      {"heads", &C::heads, 1, kLargestField},
                                      {"slots", &C::slots, 0, kMaxSlots},
                                      {"ahead", &C::ahead, 0, kMaxSlots},
                                      {"lead", &C::lead, 0, kLargestField},
                                      {"evict_first", &C::evictFirst, 0, 1, noOrYes()}}};
    return list;
  }
};

Reason checkRows(const KernelRequest &request, const QuantizeConfig &config) {
  const int64_t dim = std::max(request.headDim, request.valueDim);
  if (config.pieceRows(dim) >= 1)
    return std::nullopt;
  return number(config.warps) + " warps take " + number(kWarpLanes * config.warps * quantize::kUnitElements) +
         " elements at a time, a row has " + number(dim);
}

Reason checkSlots(const KernelRequest &, const QuantizeConfig &config) {
  if (config.slots == 0 ? config.ahead == 0 : config.ahead > 0 && config.ahead < config.slots)
    return std::nullopt;
  return number(config.ahead) + " pieces under way of " + number(config.slots) +
         " in shared memory: there must be both";
}

int64_t leastRegisters(const KernelRequest &request, const QuantizeConfig &config) {
  const int64_t others = request.arch->features.hasFp8Mma ? 44 : 65; // as ptxas has it
  const int64_t unitWords = quantize::kUnitElements * request.element().bytes / 4;
  return (config.slots > 0 ? 1 : 2) * config.units * unitWords + others;
}

SmemLayout layoutOf(const KernelRequest &request, const QuantizeConfig &config) {
  SmemLayout layout;
  layout.append("control", quantize::controlBytes(config.warps, config.slots, request.elements.scaleRows));
  const int64_t columns = quantize::stepRows(config.warps, request.headDim) * request.headDim * int64_t(sizeof(float));
  const int64_t turned =
      request.kind.hasKeyMajorValues ? quantize::turnedBytes(config.pieceRows(request.valueDim), request.valueDim) : 0;
  layout.append("columns", std::max(columns, turned));
  layout.append("held", config.slots * config.pieceBytes(request));
  return layout;
}

bool rotates(const KernelRequest &request) { return request.kind.find(Role::rotation); }

struct QuantizedRole {
  Role from, to, descale;
  LaunchSymbol rows, heads;
};
constexpr QuantizedRole kRolesOfTensors[quantize::kTensors] = {
    {Role::q, Role::quantizedQ, Role::descaleQ, LaunchSymbol::seqlenQ, LaunchSymbol::heads},
    {Role::k, Role::quantizedK, Role::descaleK, LaunchSymbol::seqlenK, LaunchSymbol::kvHeads},
    {Role::v, Role::quantizedV, Role::descaleV, LaunchSymbol::seqlenK, LaunchSymbol::kvHeads}};

bool hasBlocks(const KernelRequest &request, const QuantizedRole &tensor) {
  return request.elements.scaleRows > 0 && tensor.from != Role::v;
}

/// Of a head, with a scale each; at least one.
LaunchExpr blocksOf(const KernelRequest &request, const QuantizedRole &tensor) {
  return hasBlocks(request, tensor) ? max(ceilDiv(tensor.rows, request.elements.scaleRows), 1) : LaunchExpr(1);
}

/// Of what has a scale.
LaunchExpr piecesOf(const KernelRequest &request, const QuantizedRole &tensor, int64_t pieceRows) {
  const LaunchExpr rows = hasBlocks(request, tensor) ? LaunchExpr(request.elements.scaleRows) : LaunchExpr(tensor.rows);
  return max(ceilDiv(rows, pieceRows), 1);
}

/// Of a batch element, all that has counters: what has a scale, and where blocks have, heads of k, whose blocks are smoothed
/// together.
LaunchExpr countedHeads(const KernelRequest &request) {
  LaunchExpr heads = request.elements.scaleRows > 0 ? LaunchExpr(LaunchSymbol::kvHeads) : LaunchExpr(0);
  for (const QuantizedRole &tensor : kRolesOfTensors)
    heads = heads + LaunchExpr(tensor.heads) * blocksOf(request, tensor);
  return heads;
}

class Quantize final : public Family<QuantizeConfig, KindBase::quantize, AnyInstructions, layoutOf> {
public:
  std::vector<Knob> knobs(const KernelRequest &request) const override;
  const std::vector<Constraint> &constraints() const override;
  KernelConfig defaultConfig(const KernelRequest &request) const override;
  std::vector<KernelConfig> fallbackConfigs(const KernelRequest &request) const override;
  KernelConfig takenBack(KernelConfig config) const override;
  ScheduleFacts schedule(const KernelConfig &config) const override;
  LaunchPlan planLaunch(const KernelRequest &request, const KernelConfig &config) const override;
  std::string traits(const KernelRequest &request, const KernelConfig &config) const override;

protected:
  Status checkRequest(const KernelRequest &request) const override;
};

std::vector<Knob> Quantize::knobs(const KernelRequest &) const {
  return {
      {"units", "units of eight elements of a thread: more bytes under way, more registers", {1, 2, 4, 8}},
      {"warps", "warps of one block", {4, 8, 16}},
      {"min_blocks", "blocks per SM: more bytes under way, fewer registers", {1, 2, 3, 4, 6, 8}},
      {"heads", "heads that are read side by side: longer runs in memory, more of the cache", {1, 2, 4}},
      {"slots", "pieces of a block that wait in shared memory for their head; 0: elements are read twice", {0, 6, 13}},
      {"ahead", "of these, pieces under way", {0, 2, 3, 4, 6}},
      {"lead", "how far reads run ahead, in quarters of the grid: fewer waits, more of the cache", {0, 1, 2, 4, 8}},
      {"evict_first", "what is read the second time and what is written leave the cache first", {0, 1}},
  };
}

const std::vector<Constraint> &Quantize::constraints() const {
  using C = QuantizeConfig;
  static const std::vector<Constraint> list = {
      {"ranges", "every field lies in its range", checkRanges},
      {"rows", "a piece has whole rows", ruleOf<C, checkRows>},
      {"slots", "pieces under way and others", ruleOf<C, checkSlots>},
      {"smem", "shared memory of the blocks of one SM", ruleOf<C, smemOfBlocksFits<C, layoutOf>>},
      {"threads", "threads and blocks of one SM", ruleOf<C, threadsFit<C>>},
      {"registers", "least registers of one thread", ruleOf<C, registersFit<C, leastRegisters>>},
  };
  return list;
}

// Elements wait in shared memory where an SM has room for two blocks of six pieces of 16 KB: of bf16, 32k rows, 16 heads of
// 128, an H200 takes 171 us so, 271 with a second read. Else 128 KB are under way on an SM, half of them out of the cache,
// of elements of any size; 64 KB where more instructions need more registers.
KernelConfig Quantize::defaultConfig(const KernelRequest &request) const {
  QuantizeConfig held;
  held.units = 8 / request.element().bytes;
  held.slots = 6, held.ahead = 2, held.heads = 1;
  if (request.arch->features.hasFp8Mma && !smemOfBlocksFits<QuantizeConfig, layoutOf>(request, held))
    return held;
  QuantizeConfig config;
  config.units = (request.arch->features.hasFp8Mma ? 16 : 8) / request.element().bytes;
  return config;
}

// Rotated rows spill with four units where lanes of a whole warp have one, and on architectures behind Hopper: there fewer
// units in more slots are as many bytes under way.
std::vector<KernelConfig> Quantize::fallbackConfigs(const KernelRequest &request) const {
  const QuantizeConfig first = defaultConfig(request);
  QuantizeConfig smaller = first, fewer = first;
  smaller.units = first.units * 3 / 4, smaller.slots = first.slots * 4 / 3;
  fewer.minBlocks = 1;
  if (first.slots > 0 && smaller.units * 4 == first.units * 3)
    return {smaller, fewer};
  return {fewer};
}

KernelConfig Quantize::takenBack(KernelConfig given) const {
  QuantizeConfig config(given);
  if (config.slots == 0)
    config.ahead = 0;
  return config;
}

ScheduleFacts Quantize::schedule(const KernelConfig &given) const {
  const QuantizeConfig config(given);
  ScheduleFacts facts;
  facts.blockM = config.pieceRows(kDimStep);
  facts.minBlocks = config.minBlocks;
  return facts;
}

LaunchPlan Quantize::planLaunch(const KernelRequest &request, const KernelConfig &given) const {
  using Symbol = LaunchSymbol;
  const QuantizeConfig config(given);
  LaunchPlan plan = planFor(request, 1);
  plan.serves.qOrigin = QOriginRule::given; // which no element depends on
  plan.serves.bounds.clear();               // nor on the pattern
  const LaunchExpr batch = Symbol::batch;
  const LaunchExpr words = batch * countedHeads(request) * quantize::kWordsOfHead + quantize::kWordsOfTicket;
  const LaunchExpr columnWords = batch * Symbol::kvHeads * (request.headDim * quantize::kWordsOfColumn);
  const PointerSource counters = plan.appendRegion("counters", words * int64_t(sizeof(uint32_t)));
  const PointerSource columns = plan.appendRegion("columns", columnWords * int64_t(sizeof(uint32_t)));
  KernelLaunch &launch = plan.launches.emplace_back();
  if (rotates(request))
    launch.appendPointer(Role::rotation);
  if (request.elements.scaleRows > 0) {
    const LaunchExpr endWords =
        batch * Symbol::kvHeads * blocksOf(request, kRolesOfTensors[1]) * (request.headDim * quantize::kWordsOfEnds);
    const PointerSource ends = plan.appendRegion("ends", endWords * int64_t(sizeof(uint32_t)));
    launch.appendPointer(ends);
    launch.clears.push_back({ends, 0, endWords, 0});
  }
  LaunchExpr pieces = 0, heads = 0, most = 0;
  for (const QuantizedRole &tensor : kRolesOfTensors) {
    const int64_t dim = tensor.from == Role::v ? request.valueDim : request.headDim;
    const LaunchExpr blocks = blocksOf(request, tensor);
    const LaunchExpr ofHead = piecesOf(request, tensor, config.pieceRows(dim));
    for (Role role : {tensor.from, tensor.to, tensor.descale})
      launch.appendPointer(role);
    for (Role role : {tensor.from, tensor.to})
      appendStrides(launch, role);
    for (const LaunchExpr &value : {LaunchExpr(tensor.rows), LaunchExpr(tensor.heads), ofHead, pieces, heads})
      launch.appendI32(value);
    launch.appendI32(0); // the struct ends at a multiple of eight bytes
    pieces = pieces + batch * tensor.heads * blocks * ofHead;
    heads = heads + batch * tensor.heads * blocks;
    most = max(most, request.elements.scaleRows ? blocks * ofHead : ofHead);
  }
  const LaunchExpr pieceWords = config.slots > 0 ? pieces : LaunchExpr(0);
  const PointerSource dropped = plan.appendRegion("dropped", pieceWords * int64_t(sizeof(int32_t)));
  const PointerSource found = plan.appendRegion("found", pieceWords * int64_t(sizeof(uint32_t)));
  const LaunchExpr blocks = LaunchExpr(Symbol::smCount) * config.minBlocks;
  launch.grid[0] = min(blocks, pieces);
  launch.block = config.threads();
  launch.sharedBytes = layoutOf(request, config).totalBytes();
  launch.clears.push_back({counters, 0, words, 0});
  launch.clears.push_back({columns, 0, columnWords, 0});
  launch.clears.push_back({found, 0, pieceWords, 0});
  for (const PointerSource &pointer : {counters, columns, PointerSource(Role::kMean), dropped, found})
    launch.appendPointer(pointer);
  launch.appendI32(batch);
  launch.appendI32(pieces);
  launch.appendI32(most * config.heads + 1 +
                   floorDiv(launch.grid[0] * config.lead, kLeadParts)); // no block waits for itself
  return plan;
}

std::string Quantize::traits(const KernelRequest &request, const KernelConfig &given) const {
  const QuantizeConfig config(given);
  TraitsPrinter printer(request, given);
  printer.constant("kConvertsE4m3", request.arch->features.hasFp8Mma);
  printer.constant("kRotates", rotates(request));
  printer.constant("kScaleRows", request.elements.scaleRows);
  printer.constant("kKeyMajorValues", request.kind.hasKeyMajorValues);
  printer.smem(layoutOf(request, config));
  return printer.str();
}

Status Quantize::checkRequest(const KernelRequest &request) const {
  HEDDLE_TRY(request.checkTypes(&ElementTraits::isOfWarps));
  if (request.elements.out != CallElements::outOf(request.elements.q) || request.elements.precision != Precision::exact)
    return Status::unsupported("writes e4m3 and multiplies by scales, so there is no choice of out or of products");
  for (int64_t dim : {request.headDim, request.valueDim})
    if (dim % kDimStep != 0 || dim > kMaxDim)
      return Status::unsupported("serves head dims of multiples of " + number(kDimStep) + " up to " + number(kMaxDim) +
                                 ", not " + number(dim));
  return {};
}

} // namespace

const Skeleton &quantizeSkeleton() { return theOnly<Quantize>(); }

} // namespace heddle
