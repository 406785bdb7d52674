//===- ForwardLaunch.cpp - parameter block and work items ----------------------------------===//
#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Config/KernelRequest.h"

#include <numeric>
#include <set>

namespace heddle {
namespace {

void appendFixedParams(LaunchPlan &plan, QOriginRule rule) {
  using Pointer = PointerSource::Kind;
  using Symbol = LaunchSymbol;
  for (Pointer kind :
       {Pointer::q, Pointer::k, Pointer::v, Pointer::out, Pointer::lse, Pointer::carryOut, Pointer::carryLse})
    plan.appendPointer({kind, 0});
  for (Symbol stride : {Symbol::qStrideBatch, Symbol::qStrideRow, Symbol::qStrideHead, Symbol::kStrideBatch,
                        Symbol::kStrideRow, Symbol::kStrideHead, Symbol::vStrideBatch, Symbol::vStrideRow,
                        Symbol::vStrideHead, Symbol::outStrideBatch, Symbol::outStrideRow, Symbol::outStrideHead})
    plan.appendI64(stride);
  appendCallSizes(plan, rule);
}

} // namespace

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

void appendCallSizes(LaunchPlan &plan, QOriginRule rule) {
  using Symbol = LaunchSymbol;
  for (Symbol size : {Symbol::batch, Symbol::heads, Symbol::kvHeads, Symbol::seqlenQ, Symbol::seqlenK})
    plan.appendI32(size);
  plan.appendI32(qOriginExpr(rule));
  plan.appendI32(Symbol::kOrigin);
  plan.appendScaleLog2();
}

void appendOperands(LaunchPlan &plan, const KernelRequest &request) {
  for (const OperandSlot &operand : request.operands)
    plan.appendPointer({PointerSource::Kind::operand, operand.argument});
}

void appendRowRange(LaunchPlan &plan, const KernelRequest &request) {
  using Symbol = LaunchSymbol;
  if (!request.isPass)
    return;
  for (Symbol value : {Symbol::roundFirst, Symbol::roundRows, Symbol::lseRows, Symbol::carryRows})
    plan.appendI32(value);
}

void appendRuntimeSizes(LaunchPlan &plan, const KernelRequest &request) {
  std::vector<LaunchExpr> words;
  for (int64_t i = 0; i < request.paramCount; ++i)
    words.push_back(LaunchExpr::param(i));
  for (const OperandSlot &operand : request.operands)
    if (!operand.hasLength)
      words[size_t(operand.argument)] = 0;
  if (words.empty())
    words.push_back(0);
  for (LaunchExpr &word : words)
    plan.appendI32(std::move(word));
}

void appendForwardParams(LaunchPlan &plan, const KernelRequest &request) {
  appendOperands(plan, request);
  appendRowRange(plan, request);
  appendFixedParams(plan, request.qOrigin);
  appendRuntimeSizes(plan, request);
}

} // namespace heddle
