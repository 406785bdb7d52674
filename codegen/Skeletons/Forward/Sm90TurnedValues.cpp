#include "codegen/Skeletons/Forward/Sm90TurnedValues.h"
#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Shared/TensorMapLaunch.h"
#include "codegen/Skeletons/Shared/sm90_layout.cuh"

namespace heddle {
namespace {

using namespace sm90;
using Symbol = LaunchSymbol;

constexpr const char *kEntry = "heddle_turn_values";

} // namespace

bool sm90CanTurn(const KernelRequest &request) {
  const bool isOnePass = request.passes.empty() && !request.isPass; // each of every round would turn all values over
  return request.hasValuesToTurn() && isOnePass && MapRates::of(request.variants).key == std::vector<int64_t>{1};
}

bool sm90AreKeyMajor(const KernelRequest &request, const Sm90Config &config) {
  return request.kind.hasKeyMajorValues || config.turnValues;
}

PointerSource appendTurnedValues(LaunchPlan &plan, const KernelRequest &request) {
  const LaunchExpr heads = LaunchExpr(Symbol::batch) * Symbol::kvHeads;
  const PointerSource turned =
      plan.appendRegion("turned_values", heads * turnedPitch(Symbol::seqlenK) * LaunchExpr(request.valueDim), 0, 1);
  KernelLaunch &launch = plan.launches.emplace_back();
  launch.entry = kEntry;
  launch.grid[0] = heads * ceilDiv(Symbol::seqlenK, kTurnedKeys);
  launch.block = kTurningThreads;
  launch.sharedBytes = kTurnedKeys * request.valueDim;
  launch.appendPointer(Role::v);
  launch.appendPointer(turned);
  appendStrides(launch, Role::v);
  for (Symbol size : {Symbol::kvHeads, Symbol::seqlenK})
    launch.appendI32(size);
  return turned;
}

KernelEntry turnValuesEntry() { return {kEntry, "Kernel::TurnValues"}; }

} // namespace heddle
