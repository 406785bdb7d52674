#include "codegen/Config/KernelRequest.h"
#include "codegen/Target/FindArch.h"
#include "runtime/Core/LaunchExpr.h"

#include <algorithm>

namespace heddle {
namespace {

Status validateRates(const VariantRates &rates, size_t variant, size_t branches) {
  const std::string where = "kernel request: variant " + std::to_string(variant) + ": expected ";
  if (rates.queryRate < 1)
    return Status::invalidArgument(where + "a query rate of at least 1, got " + std::to_string(rates.queryRate));
  if (rates.keyRates.size() != branches)
    return Status::invalidArgument(where + std::to_string(branches) + " key rates as variant 0 has, got " +
                                   std::to_string(rates.keyRates.size()));
  for (int64_t rate : rates.keyRates)
    if (rate < 1)
      return Status::invalidArgument(where + "key rates of at least 1, got " + std::to_string(rate));
  return {};
}

bool hasGradient(const std::vector<GradientSlot> &slots, int64_t argument) {
  return std::any_of(slots.begin(), slots.end(), [&](const GradientSlot &slot) { return slot.argument == argument; });
}

} // namespace

std::string KernelRequest::str() const {
  std::string text =
      kind.str() + " " + dtypeName(elements.q) +
      (elements.areAlike() ? "" : std::string(" k=") + dtypeName(elements.k) + " v=" + dtypeName(elements.v)) +
      (elements.out != CallElements::outOf(elements.q) ? std::string(" out=") + dtypeName(elements.out) : "") +
      (elements.precision != Precision::exact ? std::string(" precision=") + precisionName(elements.precision) : "") +
      (elements.scaleRows ? " scale_rows=" + std::to_string(elements.scaleRows) : "") +
      " head_dim=" + std::to_string(headDim) + " value_dim=" + std::to_string(valueDim) + " arch=" + archName(*arch) +
      " q_origin=" + qOriginRuleName(qOrigin) + " params=" + std::to_string(paramCount) + (hasScores ? " scores" : "") +
      (grain > 1 ? " grain=" + std::to_string(grain) : "") +
      (bandedGrain > 1 ? " banded_grain=" + std::to_string(bandedGrain) : "");
  for (const OperandSlot &operand : operands)
    text += " operand" + std::to_string(operand.argument) + (operand.hasLength ? "=length" : "");
  for (const VariantRates &rates : variants) {
    text += " rates=" + std::to_string(rates.queryRate) + ":";
    for (size_t branch = 0; branch < rates.keyRates.size(); ++branch)
      text += (branch ? "," : "") + std::to_string(rates.keyRates[branch]);
  }
  return text;
}

std::vector<GradientSlot> KernelRequest::wantedGradients() const {
  std::vector<GradientSlot> wanted;
  for (const GradientSlot &slot : gradients)
    if (std::find(kind.gradientsOf.begin(), kind.gradientsOf.end(), slot.argument) != kind.gradientsOf.end())
      wanted.push_back(slot);
  return wanted;
}

KernelRequest KernelRequest::passRequest(size_t index) const {
  KernelRequest request = *this;
  request.variants = passes[index].variants;
  request.grain = passes[index].grain;
  request.bandedGrain = passes[index].bandedGrain;
  if (index + 1 < passes.size())
    request.elements.out = kAccumulator;
  request.passes.clear();
  request.isPass = true;
  return request;
}

Status KernelRequest::checkTypes(ElementSet served, bool takesScaledKeys) const {
  HEDDLE_TRY(checkElements(elements, takesScaledKeys));
  HEDDLE_TRY(checkScaleRows(kind, elements));
  HEDDLE_TRY(checkKeyMajor(kind, elements));
  if ((element().*served)())
    return {};
  return Status::unsupported("serves " + elementList(served, &ElementTraits::name, "and") + ", not " +
                             dtypeName(elements.q));
}

Status KernelRequest::validate() const {
  const std::vector<int64_t> &gradientsOf = kind.gradientsOf;
  if (!gradientsOf.empty() && !kind.isBackward())
    return Status::invalidArgument("kernel request: kind " + kind.name() + " has no gradients of arguments");
  for (size_t i = 0; i < gradientsOf.size(); ++i)
    if ((i && gradientsOf[i] <= gradientsOf[i - 1]) || !hasGradient(gradients, gradientsOf[i]))
      return Status::invalidArgument("kernel request: gradients: scores and sinks have no derivative by argument " +
                                     std::to_string(gradientsOf[i]) + ", or it is not behind those of lower numbers");
  if (grain < 1 || bandedGrain < 1)
    return Status::invalidArgument("kernel request: expected a grain of at least 1, got " +
                                   std::to_string(std::min(grain, bandedGrain)));
  if (headDim < 1 || valueDim < 1)
    return Status::invalidArgument("kernel request: expected head dims of at least 1, got " + std::to_string(headDim) +
                                   " and " + std::to_string(valueDim));
  if (paramCount < 0 || paramCount > kMaxArguments)
    return Status::invalidArgument("kernel request: expected at least 0 and at most " + std::to_string(kMaxArguments) +
                                   " run-time sizes, got " + std::to_string(paramCount));
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i].argument < (i ? operands[i - 1].argument + 1 : 0) || operands[i].argument >= paramCount)
      return Status::invalidArgument("kernel request: expected ascending numbers of operands below " +
                                     std::to_string(paramCount) + ", got " + std::to_string(operands[i].argument));
  if (hasDocuments && documents.paramCount() > paramCount)
    return Status::invalidArgument("kernel request: expected a number of documents from " + std::to_string(paramCount) +
                                   " arguments, got " + documents.str());
  if (variants.empty() || variants.front().keyRates.empty())
    return Status::invalidArgument("kernel request: expected at least one variant with one branch");
  for (size_t i = 0; i < variants.size(); ++i)
    HEDDLE_TRY(validateRates(variants[i], i, variants.front().keyRates.size()));
  if (passes.size() == 1)
    return Status::invalidArgument("kernel request: expected no passes or at least two, got one");
  for (size_t i = 0; i < passes.size(); ++i)
    HEDDLE_TRY(passRequest(i).validate());
  return {};
}

} // namespace heddle
