//===- PortableCascade.cpp - host half of portable_cascade.cuh ---------------------------------===//
//
// Owns what the portable cascade skeleton adds to that of decode, whose knobs, constraints and kernel it has: which patterns
// let sequences share keys, the launches before and after, and what these leave in the workspace. Change it together with
// cascade_layout.cuh.
//
//===----------------------------------------------------------------------===//
#include "codegen/Config/KernelRequest.h"
#include "codegen/Config/PatternRates.h"
#include "codegen/Skeletons/Decode/DecodeConfig.h"
#include "codegen/Skeletons/Decode/cascade_layout.cuh"
#include "codegen/Skeletons/Decode/decode_layout.cuh"
#include "codegen/Skeletons/Shared/Family.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Skeletons/Shared/Sibling.h"
#include "runtime/Core/LaunchPlan.h"

namespace heddle {
namespace {

using Symbol = LaunchSymbol;

/// Rows of q that groups may have.
LaunchExpr mostRows() {
  const LaunchExpr sharing = max(floorDiv(Symbol::heads, max(LaunchExpr(Symbol::kvHeads), 1)), 1);
  const LaunchExpr ofSequence = max(floorDiv(LaunchExpr(cascade::kMostRows), sharing), 1);
  return min(LaunchExpr(Symbol::batch) * Symbol::seqlenQ, LaunchExpr(Symbol::sequences) * ofSequence);
}

/// Another launch of the same parameter block: null where regions lie that do not live then.
KernelLaunch besideDecode(const LaunchPlan &plan, const KernelLaunch &decode, const char *entry, int64_t number) {
  KernelLaunch launch = decode;
  launch.entry = entry;
  launch.clears.clear();
  for (SlotSpec &slot : launch.slots) {
    if (slot.kind != SlotSpec::Kind::ptr || slot.pointer.kind != PointerSource::Kind::region)
      continue;
    const WorkspaceRegion &region = plan.regions[size_t(slot.pointer.index)];
    if (number < region.first || number > region.last)
      slot.kind = SlotSpec::Kind::i64, slot.expr = 0;
  }
  return launch;
}

class PortableCascade final : public Sibling<KindBase::cascade, portableDecodeSkeleton> {
public:
  PortableCascade() : Sibling("portable_cascade") {}
  LaunchPlan planLaunch(const KernelRequest &request, const KernelConfig &config) const override;

protected:
  Status checkRequest(const KernelRequest &request) const override;
  std::vector<KernelEntry> entries(const KernelRequest &, const KernelConfig &) const override {
    return {
        {"heddle_kernel", "Kernel"}, {"heddle_cascade_plan", "Kernel::Plan"}, {"heddle_cascade_join", "Kernel::Join"}};
  }
};

Status PortableCascade::checkRequest(const KernelRequest &request) const {
  HEDDLE_TRY(Sibling::checkRequest(request));
  const bool isOnOneLattice = request.variants.size() == 1 && request.variants.front().queryRate == 1 &&
                              request.variants.front().keyRates == std::vector<int64_t>{1};
  if (request.keepsByHead || !isOnOneLattice)
    return Status::unsupported(
        "sequences share keys where all heads keep the same pairs, without dilation and branches; "
        "kind decode serves this pattern");
  return {};
}

// In front of the launches of decode those that find out what is shared, behind them those that join what was left.
LaunchPlan PortableCascade::planLaunch(const KernelRequest &request, const KernelConfig &given) const {
  const DecodeConfig config(ofOther(given));
  LaunchPlan plan = Sibling::planLaunch(request, given);
  for (WorkspaceRegion &region : plan.regions)
    region.first = region.last = 1;
  const LaunchExpr rows = mostRows() * Symbol::heads;
  const LaunchExpr words = cascade::firstRowWord(LaunchExpr(Symbol::sequences)) + mostRows();
  const PointerSource sharing = plan.appendRegion("sharing", words * int64_t(sizeof(int32_t)), 0, 2);
  const int64_t bytesOfRow = cascade::kStatesOfRow * cascade::stateBytes(request.valueDim);
  const PointerSource states = plan.appendRegion("shared_states", rows * bytesOfRow, 1, 2);
  KernelLaunch &decode = plan.launches.front();
  decode.appendPointer(Role::sharedK);
  decode.appendPointer(sharing);
  decode.appendPointer(states);
  KernelLaunch first = besideDecode(plan, decode, "heddle_cascade_plan", 0),
               last = besideDecode(plan, decode, "heddle_cascade_join", 2);
  first.grid[0] = 1;
  first.sharedBytes = decode::kControlBytes + config.threads() * 16;
  last.grid[0] = ceilDiv(rows, config.warps);
  last.sharedBytes = 0;
  plan.launches.insert(plan.launches.begin(), first);
  plan.launches.push_back(last);
  return plan;
}

} // namespace

const Skeleton &portableCascadeSkeleton() { return theOnly<PortableCascade>(); }

} // namespace heddle
