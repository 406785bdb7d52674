#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Config/KernelRequest.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace heddle {
namespace {

void appendFixedParams(KernelLaunch &launch, QOriginRule rule) {
  for (Role role : {Role::q, Role::k, Role::v, Role::out, Role::lse, Role::carryOut, Role::carryLse})
    launch.appendPointer(role);
  for (Role role : {Role::q, Role::k, Role::v, Role::out})
    appendStrides(launch, role);
  appendCallSizes(launch, rule);
}

// Elements without scales take none.
void dropScales(PlanService &serves, const CallElements &elements) {
  const auto hasNone = [&](Role role) {
    return serves.kind->find(role)->presence == Presence::scale &&
           !traitsOf(elements.of(specOf(scaledBy(role)).element)).isScaled();
  };
  serves.roles.erase(std::remove_if(serves.roles.begin(), serves.roles.end(), hasNone), serves.roles.end());
}

} // namespace

// Calls of one whole have none of what parts of sequences have; bounds of what each sequence says are asked by nobody here.
static void settleParts(PlanService &serves, const KernelRequest &request) {
  const auto isOfParts = [&](Role role) { return serves.kind->find(role)->presence == Presence::part; };
  const auto readsWhole = [&](const ArgumentBound &bound) {
    return std::any_of(request.wholes.begin(), request.wholes.end(),
                       [&](int64_t argument) { return bound.argumentsRead() >> argument & 1; });
  };
  if (request.hasPartsOfSequences())
    serves.bounds.erase(std::remove_if(serves.bounds.begin(), serves.bounds.end(), readsWhole), serves.bounds.end());
  else
    serves.roles.erase(std::remove_if(serves.roles.begin(), serves.roles.end(), isOfParts), serves.roles.end());
}

LaunchPlan planFor(const KernelRequest &request, int64_t keyOriginStep) {
  LaunchPlan plan{PlanService(request.kind)};
  plan.serves.qOrigin = request.qOrigin;
  plan.serves.keyOriginStep = keyOriginStep;
  plan.serves.bounds = request.bounds;
  dropScales(plan.serves, request.elements);
  settleParts(plan.serves, request);
  return plan;
}

LaunchExpr itemsPerHead(const KernelRequest &request, int64_t blockM) {
  const LaunchSymbol all = request.isPass ? LaunchSymbol::roundRows : LaunchSymbol::seqlenQ;
  std::set<int64_t> rates;
  for (const VariantRates &variant : request.variants)
    rates.insert(variant.queryRate);
  LaunchExpr most = 0;
  bool isFirst = true;
  for (int64_t rate : rates) {
    const LaunchExpr rows = rate == 1 ? LaunchExpr(all) : ceilDiv(all, rate);
    const LaunchExpr tiles = ceilDiv(rows, blockM);
    const LaunchExpr items = rate == 1 ? tiles : LaunchExpr(rate) * tiles;
    most = isFirst ? items : max(most, items);
    isFirst = false;
  }
  return most;
}

LaunchExpr qOriginExpr(QOriginRule rule) {
  switch (rule) {
  case QOriginRule::start:
    return 0;
  case QOriginRule::end:
    return LaunchExpr(LaunchSymbol::seqlenK) - LaunchExpr(LaunchSymbol::seqlenQ);
  case QOriginRule::given:
    break;
  }
  return LaunchSymbol::qOrigin;
}

int64_t keyOriginStep(const KernelRequest &request, int64_t blockN) {
  int64_t step = blockN;
  for (const VariantRates &variant : request.variants)
    for (int64_t rate : variant.keyRates)
      step = std::lcm(step, blockN * rate);
  return step;
}

void appendStrides(KernelLaunch &launch, Role role) {
  for (StrideDim dim : {StrideDim::batch, StrideDim::row, StrideDim::head})
    launch.appendI64(strideOf(role, dim));
}

void appendCallSizes(KernelLaunch &launch, QOriginRule rule) {
  using Symbol = LaunchSymbol;
  for (Symbol size : {Symbol::batch, Symbol::heads, Symbol::kvHeads, Symbol::seqlenQ, Symbol::seqlenK})
    launch.appendI32(size);
  launch.appendI32(qOriginExpr(rule));
  launch.appendI32(Symbol::kOrigin);
  launch.appendScaleLog2();
}

void appendOperands(KernelLaunch &launch, const KernelRequest &request) {
  for (const OperandSlot &operand : request.operands)
    launch.appendPointer(PointerSource::operand(operand.argument));
}

void appendRowRange(KernelLaunch &launch, const KernelRequest &request) {
  using Symbol = LaunchSymbol;
  if (!request.isPass)
    return;
  for (Symbol value : {Symbol::roundFirst, Symbol::roundRows, Symbol::lseRows, Symbol::carryRows})
    launch.appendI32(value);
}

void appendKeyScales(KernelLaunch &launch, const KernelRequest &request) {
  if (request.elements.hasScaledKeys())
    for (Role role : {Role::descaleK, Role::descaleV})
      launch.appendPointer(role);
}

void appendRuntimeSizes(KernelLaunch &launch, const KernelRequest &request) {
  std::vector<LaunchExpr> words;
  for (int64_t i = 0; i < request.paramCount; ++i)
    words.push_back(LaunchExpr::param(i));
  for (const OperandSlot &operand : request.operands)
    if (!operand.hasLength)
      words[size_t(operand.argument)] = 0;
  if (request.hasPartsOfSequences())
    for (int64_t argument : request.wholes)
      words[size_t(argument)] = 0;
  if (words.empty())
    words.push_back(0);
  for (LaunchExpr &word : words)
    launch.appendI32(std::move(word));
}

void appendForwardParams(KernelLaunch &launch, const KernelRequest &request) {
  appendOperands(launch, request);
  appendRowRange(launch, request);
  appendKeyScales(launch, request);
  appendFixedParams(launch, request.qOrigin);
  appendRuntimeSizes(launch, request);
}

} // namespace heddle
