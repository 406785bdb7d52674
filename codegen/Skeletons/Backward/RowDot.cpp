// Owns what the row_dot skeleton serves, its search space, constraints and launch: delta, the row sums of out * d_out,
// on every GPU. Change it together with row_dot.cuh.
#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Config/TraitsPrinter.h"
#include "codegen/Skeletons/Shared/BlockLimits.h"
#include "codegen/Skeletons/Shared/Family.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Skeletons/Shared/ScheduleFacts.h"
#include "runtime/Core/LaunchPlan.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr int64_t kWarpLanes = 32, kPieceBytes = 16, kDimStep = 8, kMaxValueDim = 512, kMaxWarps = 32;

struct RowDotConfig {
  int64_t blockM = 64; ///< rows of one block
  int64_t warps = 4;   ///< warps of one block

  RowDotConfig() = default;
  RowDotConfig(const KernelConfig &config) { readFields(config, *this); }
  operator KernelConfig() const { return writeFields(*this); }

  static const FieldsOf<RowDotConfig> &fields() {
    using C = RowDotConfig;
    static const FieldsOf<C> list = {"row_dot",
                                     {{"block_m", &C::blockM, 1, kLargestField}, {"warps", &C::warps, 1, kMaxWarps}}};
    return list;
  }
};

// of one tensor and lane: two registers of four for each, in two tensors, fill 255 with fewer
constexpr int64_t kMaxPieces = 48;

int64_t piecesOfRow(const KernelRequest &request) {
  return request.valueDim * dtypeBytes(request.elements.out) / kPieceBytes;
}

int64_t lanesOfRow(const KernelRequest &request) {
  int64_t lanes = 1;
  while (lanes < piecesOfRow(request) && lanes < kWarpLanes)
    lanes *= 2;
  return lanes;
}

Reason checkSteps(const KernelRequest &request, const RowDotConfig &config) {
  const int64_t atATime = kWarpLanes / lanesOfRow(request);
  if (config.blockM % (config.warps * atATime) != 0)
    return "block_m is " + number(config.blockM) + ", expected a multiple of " + number(atATime) +
           " rows for each of " + number(config.warps) + " warps";
  return std::nullopt;
}

Reason checkRegisters(const KernelRequest &request, const RowDotConfig &config) {
  const int64_t lanes = lanesOfRow(request), steps = config.blockM / config.warps * lanes / kWarpLanes;
  const int64_t pieces = steps * ((piecesOfRow(request) + lanes - 1) / lanes), most = kMaxPieces / 2;
  if (pieces <= most)
    return std::nullopt;
  return "a lane holds " + number(pieces) + " pieces of 16 B of each tensor, registers hold " + number(most);
}

class RowDot final : public Family<RowDotConfig, KindBase::rowDot, AnyInstructions> {
public:
  std::vector<Knob> knobs(const KernelRequest &) const override {
    return {{"block_m",
             "rows of one block: more of them under way at a time, more registers",
             {4, 8, 16, 32, 64, 128, 256}},
            {"warps", "warps of one block", {1, 2, 4, 8}}};
  }

  const std::vector<Constraint> &constraints() const override {
    static const std::vector<Constraint> list = {
        {"ranges", "every field lies in its range", checkRanges},
        {"steps", "the warps of a block read its rows in whole steps", ruleOf<RowDotConfig, checkSteps>},
        {"registers", "what a lane reads fits its registers", ruleOf<RowDotConfig, checkRegisters>},
    };
    return list;
  }

  // Eight pieces of each tensor under way in every lane, where rows have that many.
  KernelConfig defaultConfig(const KernelRequest &request) const override {
    constexpr int64_t kPieces = 8, kWarps = 4;
    const int64_t lanes = lanesOfRow(request), ofLane = (piecesOfRow(request) + lanes - 1) / lanes;
    RowDotConfig config;
    config.warps = kWarps;
    config.blockM = kWarps * (kWarpLanes / lanes) * std::max<int64_t>(kPieces / ofLane, 1);
    return config;
  }

  ScheduleFacts schedule(const KernelConfig &config) const override {
    ScheduleFacts facts;
    facts.blockM = RowDotConfig(config).blockM;
    return facts;
  }

  LaunchPlan planLaunch(const KernelRequest &request, const KernelConfig &given) const override {
    const RowDotConfig config(given);
    LaunchPlan plan = planFor(request, 1);
    plan.serves.qOrigin = QOriginRule::given; // which no sum over a row depends on
    plan.serves.bounds.clear();               // nor on the pattern
    KernelLaunch &launch = plan.launches.emplace_back();
    launch.grid[0] =
        LaunchExpr(LaunchSymbol::batch) * LaunchSymbol::heads * ceilDiv(LaunchSymbol::seqlenQ, config.blockM);
    launch.block = kWarpLanes * config.warps;
    for (Role role : {Role::out, Role::dOut, Role::delta})
      launch.appendPointer(role);
    for (Role role : {Role::out, Role::dOut})
      appendStrides(launch, role);
    for (LaunchSymbol size : {LaunchSymbol::batch, LaunchSymbol::heads, LaunchSymbol::seqlenQ})
      launch.appendI32(size);
    return plan;
  }

  std::string traits(const KernelRequest &request, const KernelConfig &config) const override {
    TraitsPrinter printer(request, config);
    return printer.str();
  }

protected:
  Status checkRequest(const KernelRequest &request) const override {
    HEDDLE_TRY(request.checkTypes());
    if (request.valueDim % kDimStep == 0 && request.valueDim <= kMaxValueDim)
      return {};
    return Status::unsupported("serves value dims that are multiples of " + number(kDimStep) + " up to " +
                               number(kMaxValueDim) + ", not " + number(request.valueDim));
  }
};

} // namespace

const Skeleton &rowDotSkeleton() { return theOnly<RowDot>(); }

} // namespace heddle
