//===- ChainedLaunch.cpp - several kernels under one softmax -------------------------------===//
#include "codegen/Config/ChainedLaunch.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"

#include <iterator>
#include <numeric>

namespace heddle {
namespace {

using Pointer = PointerSource::Kind;
using Symbol = LaunchSymbol;

LaunchExpr aligned(const LaunchExpr &bytes) {
  constexpr int64_t kAlignment = 256; // of the workspace, and so of every part of it
  return ceilDiv(bytes, kAlignment) * LaunchExpr(kAlignment);
}

constexpr int64_t kFloatBytes = sizeof(float);

/// Batch elements and heads together.
LaunchExpr pairs() { return LaunchExpr(Symbol::batch) * Symbol::heads; }

/// Where in the workspace things begin: one carry for each pass that leaves one, but no more than two, in turn. A kernel
/// that computes rows again, as the anchored softmax may, must still find what it continues.
struct CarryLayout {
  LaunchExpr rows; ///< of a round; of the carry in each batch element and head
  std::vector<LaunchExpr> out, lse;
  LaunchExpr end = 0;

  CarryLayout(size_t passes, int64_t step, int64_t mib) {
    const int64_t count = passes > 2 ? 2 : 1;
    const LaunchExpr bytesOfStep = max(pairs(), 1) * (LaunchExpr(Symbol::valueDim) + 1) * LaunchExpr(kFloatBytes * count * step);
    const LaunchExpr steps = min(floorDiv(mib * (int64_t(1) << 20), bytesOfStep), ceilDiv(Symbol::seqlenQ, step));
    rows = max(steps, 1) * LaunchExpr(step);
    for (int64_t i = 0; i < count; ++i) {
      out.push_back(end);
      lse.push_back(end + aligned(pairs() * rows * Symbol::valueDim * LaunchExpr(kFloatBytes)));
      end = lse.back() + aligned(pairs() * rows * LaunchExpr(kFloatBytes));
    }
  }
};

void pointAt(SlotSpec &slot, const LaunchExpr &bytes) {
  slot.pointer = {Pointer::workspace, 0};
  slot.expr = bytes;
}

/// One pass of several.
struct Link {
  const CarryLayout &carry;
  size_t index, passes;

  bool isFirst() const { return index == 0; }
  bool isLast() const { return index + 1 == passes; }
  size_t writes() const { return index % carry.out.size(); }
  size_t reads() const { return (index - 1) % carry.out.size(); }
};

/// Out and lse are those of a carry: [batch, rows, heads, value_dim] and [batch, heads, rows].
LaunchExpr ofCarry(const LaunchExpr &expr, const LaunchExpr &rows) {
  const LaunchExpr head(Symbol::valueDim), row = LaunchExpr(Symbol::heads) * head;
  return expr.replaced(Symbol::outStrideBatch, rows * row)
      .replaced(Symbol::outStrideRow, row)
      .replaced(Symbol::outStrideHead, head)
      .replaced(Symbol::lseRows, rows);
}

void redirect(SlotSpec &slot, const Link &link) {
  const CarryLayout &carry = link.carry;
  if (slot.kind != SlotSpec::Kind::ptr) {
    if (!link.isLast())
      slot.expr = ofCarry(slot.expr, carry.rows);
    if (!link.isFirst())
      slot.expr = slot.expr.replaced(Symbol::carryRows, carry.rows);
    return;
  }
  // So far before the carry that rows are found by their numbers in the call.
  const LaunchExpr outShift = LaunchExpr(Symbol::roundFirst) * Symbol::heads * Symbol::valueDim * LaunchExpr(kFloatBytes);
  const LaunchExpr lseShift = LaunchExpr(Symbol::roundFirst) * LaunchExpr(kFloatBytes);
  const Pointer kind = slot.pointer.kind;
  if (kind == Pointer::workspace)
    pointAt(slot, carry.end);
  else if (kind == Pointer::out && !link.isLast())
    pointAt(slot, carry.out[link.writes()] - outShift);
  else if (kind == Pointer::lse && !link.isLast())
    pointAt(slot, carry.lse[link.writes()] - lseShift);
  else if (kind == Pointer::carryOut && !link.isFirst())
    pointAt(slot, carry.out[link.reads()] - outShift);
  else if (kind == Pointer::carryLse && !link.isFirst())
    pointAt(slot, carry.lse[link.reads()] - lseShift);
}

/// The classes of rows of all passes together; 0: more than any carry is worth.
int64_t rowClasses(const KernelRequest &request) {
  constexpr int64_t kMost = 4096;
  int64_t classes = 1;
  for (const PassRates &pass : request.passes)
    for (const VariantRates &variant : pass.variants)
      classes = classes == 0 ? 0 : std::lcm(classes, variant.queryRate) > kMost ? 0 : std::lcm(classes, variant.queryRate);
  return classes;
}

KernelLaunch linked(KernelLaunch launch, const Link &link) {
  for (SlotSpec &slot : launch.slots)
    redirect(slot, link);
  for (ClearSpec &clear : launch.clears)
    if (clear.target.kind == Pointer::workspace)
      clear.offset = link.carry.end + clear.offset;
  return launch;
}

} // namespace

int64_t defaultChainedMib(const KernelRequest &request) {
  const bool isFeasible = !request.passes.empty() && rowClasses(request) != 0;
  return isFeasible && request.balance.gainsFromPasses ? kChainedMib[2] : 0;
}

int64_t roundStep(const KernelRequest &request, const KernelConfig &config) {
  return rowClasses(request) * config.blockM;
}

LaunchPlan chainedPlan(std::vector<LaunchPlan> plans, int64_t step, int64_t mib) {
  const CarryLayout carry(plans.size(), step, mib);
  LaunchPlan result;
  result.roundRows = carry.rows;
  LaunchExpr most = 0; // the kernels run one after the other and share what they ask for
  for (size_t i = 0; i < plans.size(); ++i) {
    const LaunchPlan &plan = plans[i];
    KernelLaunch launch = linked(plan, {carry, i, plans.size()});
    if (i == 0)
      static_cast<KernelLaunch &>(result) = std::move(launch);
    else
      result.following.push_back(std::move(launch));
    const LaunchExpr own = plan.workspaceBytes.replaced(Symbol::roundRows, carry.rows);
    most = i == 0 ? own : most == own ? most : max(most, own);
    result.keyOriginStep = std::lcm(result.keyOriginStep, plan.keyOriginStep);
  }
  result.workspaceBytes = carry.end + most;
  return result;
}

std::optional<std::string> checkChained(const KernelRequest &request, const KernelConfig &config) {
  if (!config.chainedMib)
    return std::nullopt;
  if (request.passes.empty())
    return "the pattern is computed in one pass: " + (request.whyOnePass.empty() ? "its passes are not known" : request.whyOnePass);
  if (rowClasses(request) == 0)
    return std::string("rows of all passes together fall into more than 4096 classes, and a round has a tile of each");
  return std::nullopt;
}

void appendChainedKnob(std::vector<Knob> &knobs, const KernelRequest &request, size_t group) {
  if (!request.passes.empty())
    knobs.push_back({"chained_mib",
                     "masks on different row lattices in one kernel (0), or in " + std::to_string(request.passes.size()) +
                         " kernels that hand over fp32 outputs, so many MiB at a time",
                     {std::begin(kChainedMib), std::end(kChainedMib)},
                     {},
                     group});
}

} // namespace heddle
