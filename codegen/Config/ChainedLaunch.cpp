#include "codegen/Config/ChainedLaunch.h"
#include "codegen/Config/KernelRequest.h"

#include <iterator>
#include <numeric>

namespace heddle {
namespace {

using Symbol = LaunchSymbol;

constexpr int64_t kFloatBytes = sizeof(float);

/// Batch elements and heads together.
LaunchExpr pairs() { return LaunchExpr(Symbol::batch) * Symbol::heads; }

/// Rows of a round, in each batch element and head: two carries live at once where there are more than two passes. A
/// kernel that computes rows again, as the anchored softmax may, must still find what it continues.
LaunchExpr rowsOfRound(size_t passes, int64_t step, int64_t mib) {
  const int64_t living = passes > 2 ? 2 : 1;
  const LaunchExpr bytesOfStep =
      max(pairs(), 1) * (LaunchExpr(Symbol::valueDim) + 1) * LaunchExpr(kFloatBytes * living * step);
  const LaunchExpr steps = min(floorDiv(mib * (int64_t(1) << 20), bytesOfStep), ceilDiv(Symbol::seqlenQ, step));
  return max(steps, 1) * LaunchExpr(step);
}

/// What one pass leaves to the next.
struct Carry {
  PointerSource out, lse;
};

/// What pass `index` of the plan continues from.
Carry appendCarry(LaunchPlan &plan, int64_t index) {
  const std::string name = "carry" + std::to_string(index);
  const LaunchExpr lse = pairs() * plan.roundRows * LaunchExpr(kFloatBytes);
  const PointerSource out = plan.appendRegion(
      name + "_out", pairs() * plan.roundRows * Symbol::valueDim * LaunchExpr(kFloatBytes), index, index + 1);
  return {out, plan.appendRegion(name + "_lse", lse, index, index + 1)};
}

/// One pass of several: what it continues and what it leaves; null: what the caller gives and wants.
struct Link {
  const LaunchExpr &rows;
  const Carry *reads = nullptr, *writes = nullptr;
};

/// Out and lse are those of a carry: [batch, rows, heads, value_dim] and [batch, heads, rows].
LaunchExpr ofCarry(const LaunchExpr &expr, const LaunchExpr &rows) {
  const LaunchExpr head(Symbol::valueDim), row = LaunchExpr(Symbol::heads) * head;
  return expr.replaced(strideOf(Role::out, StrideDim::batch), rows * row)
      .replaced(strideOf(Role::out, StrideDim::row), row)
      .replaced(strideOf(Role::out, StrideDim::head), head)
      .replaced(Symbol::lseRows, rows);
}

/// So far before the carry that rows are found by their numbers in the call.
void pointAt(SlotSpec &slot, const PointerSource &region, const LaunchExpr &bytesOfRow) {
  slot.pointer = region;
  slot.expr = LaunchExpr(0) - LaunchExpr(Symbol::roundFirst) * bytesOfRow;
}

void redirect(SlotSpec &slot, const Link &link) {
  if (slot.kind != SlotSpec::Kind::ptr) {
    if (link.writes)
      slot.expr = ofCarry(slot.expr, link.rows);
    if (link.reads)
      slot.expr = slot.expr.replaced(Symbol::carryRows, link.rows);
    return;
  }
  const LaunchExpr outRow = LaunchExpr(Symbol::heads) * Symbol::valueDim * LaunchExpr(kFloatBytes),
                   lseRow = kFloatBytes;
  const PointerSource asked = slot.pointer;
  if (link.writes && asked.is(Role::out))
    pointAt(slot, link.writes->out, outRow);
  else if (link.writes && asked.is(Role::lse))
    pointAt(slot, link.writes->lse, lseRow);
  else if (link.reads && asked.is(Role::carryOut))
    pointAt(slot, link.reads->out, outRow);
  else if (link.reads && asked.is(Role::carryLse))
    pointAt(slot, link.reads->lse, lseRow);
}

/// The regions of the only launch of `own` as regions of launch `index` of `plan`, and what they are called there.
std::vector<PointerSource> appendOwnRegions(LaunchPlan &plan, const LaunchPlan &own, int64_t index) {
  std::vector<PointerSource> renamed;
  for (const WorkspaceRegion &region : own.regions)
    renamed.push_back(plan.appendRegion(region.name + std::to_string(index),
                                        region.bytes.replaced(Symbol::roundRows, plan.roundRows), index, index));
  return renamed;
}

void rename(PointerSource &source, const std::vector<PointerSource> &renamed) {
  if (source.kind == PointerSource::Kind::region)
    source = renamed[size_t(source.index)];
}

KernelLaunch linked(KernelLaunch launch, const std::vector<PointerSource> &renamed, const Link &link) {
  for (ClearSpec &clear : launch.clears)
    rename(clear.target, renamed);
  for (SlotSpec &slot : launch.slots) {
    rename(slot.pointer, renamed);
    redirect(slot, link);
  }
  return launch;
}

/// The classes of rows of all passes together; 0: more than any carry is worth.
int64_t rowClasses(const KernelRequest &request) {
  constexpr int64_t kMost = 4096;
  int64_t classes = 1;
  for (const PassRates &pass : request.passes)
    for (const VariantRates &variant : pass.variants)
      classes = classes == 0                                   ? 0
                : std::lcm(classes, variant.queryRate) > kMost ? 0
                                                               : std::lcm(classes, variant.queryRate);
  return classes;
}

} // namespace

int64_t defaultChainedMib(const KernelRequest &request) {
  const bool isFeasible = !request.passes.empty() && rowClasses(request) != 0;
  return isFeasible && request.balance.gainsFromPasses ? kChainedMib[2] : 0;
}

int64_t roundStep(const KernelRequest &request, int64_t blockM) { return rowClasses(request) * blockM; }

LaunchPlan chainedPlan(const std::vector<LaunchPlan> &plans, int64_t step, int64_t mib) {
  const size_t last = plans.size() - 1;
  LaunchPlan result;
  result.serves = plans.front().serves;
  result.roundRows = rowsOfRound(plans.size(), step, mib);
  std::vector<Carry> carries;
  for (size_t i = 0; i < last; ++i)
    carries.push_back(appendCarry(result, int64_t(i)));
  for (size_t i = 0; i < plans.size(); ++i) {
    const std::vector<PointerSource> renamed = appendOwnRegions(result, plans[i], int64_t(i));
    const Link link = {result.roundRows, i > 0 ? &carries[i - 1] : nullptr, i < last ? &carries[i] : nullptr};
    result.launches.push_back(linked(plans[i].launches.front(), renamed, link));
    result.serves.keyOriginStep = std::lcm(result.serves.keyOriginStep, plans[i].serves.keyOriginStep);
  }
  return result;
}

std::optional<std::string> checkChained(const KernelRequest &request, const ForwardConfig &config) {
  if (!config.chainedMib)
    return std::nullopt;
  if (request.passes.empty())
    return "the pattern is computed in one pass: " +
           (request.whyOnePass.empty() ? "its passes are not known" : request.whyOnePass);
  if (rowClasses(request) == 0)
    return std::string("rows of all passes together fall into more than 4096 classes, and a round has a tile of each");
  return std::nullopt;
}

void appendChainedKnob(std::vector<Knob> &knobs, const KernelRequest &request, size_t group) {
  if (!request.passes.empty())
    knobs.push_back({kChainedField,
                     "masks on different row lattices in one kernel (0), or in " +
                         std::to_string(request.passes.size()) +
                         " kernels that hand over fp32 outputs, so many MiB at a time",
                     {std::begin(kChainedMib), std::end(kChainedMib)},
                     group});
}

} // namespace heddle
