#include "codegen/Skeletons/Forward/Sm90TurnedValues.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Shared/sm90_layout.cuh"

namespace heddle {

bool sm90CanTurn(const KernelRequest &request) {
  const bool isOnePass = request.passes.empty() && !request.isPass; // each of every round would turn all values over
  return request.hasValuesToTurn() && isOnePass && MapRates::of(request.variants).key == std::vector<int64_t>{1};
}

bool sm90AreKeyMajor(const KernelRequest &request, const Sm90Config &config) {
  return request.kind.hasKeyMajorValues || config.turnValues;
}

void planTurnedValues(LaunchPlan &plan, const KernelRequest &request, OperandCopies &copies) {
  using Symbol = LaunchSymbol;
  constexpr int64_t kWordBytes = 4;
  const int64_t number = int64_t(plan.launches.size()) - 1;
  const LaunchExpr heads = LaunchExpr(Symbol::batch) * Symbol::kvHeads;
  const LaunchExpr words = heads * ceilDiv(Symbol::seqlenK, sm90::kKeysOfMarks) + LaunchExpr(sm90::kFirstMark);
  copies.turnedValues = plan.appendRegion(
      "turned_values", heads * turnedPitch(Symbol::seqlenK) * LaunchExpr(request.valueDim), number, number);
  copies.turnedMarks = plan.appendRegion("turned_marks", words * LaunchExpr(kWordBytes), number, number);
  plan.launches.back().clears.push_back({*copies.turnedMarks, 0, words, 0});
}

} // namespace heddle
