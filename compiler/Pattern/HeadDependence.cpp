//===- HeadDependence.cpp - heads that are not alike ----------------------===//
#include "compiler/Pattern/HeadDependence.h"
#include "dialect/IR/PatternOperands.h"

#include <algorithm>

namespace heddle {
namespace {

/// Regions over (batch, head, q, k), of scores behind the score.
bool readsHead(mlir::Operation &op) {
  constexpr unsigned kOfMasks = 1, kOfScores = 2;
  const bool isMask = mlir::isa<attn::PredicateOp>(op);
  if (!isMask && !mlir::isa<attn::ScoreMapOp>(op))
    return false;
  return !op.getRegion(0).front().getArgument(isMask ? kOfMasks : kOfScores).use_empty();
}

/// Lists of keys are those of a head where the type says so; tensors of scores and sinks may be, whatever it says.
bool isOfHeads(attn::PatternOp pattern, unsigned argument, const std::vector<unsigned> &ofMasks) {
  return pattern.isOperand(argument) && (attn::hasExtent(pattern, argument, attn::Extent::Heads) ||
                                         std::count(ofMasks.begin(), ofMasks.end(), argument) == 0);
}

} // namespace

std::string whatDependsOnHeads(attn::PatternOp pattern, const attn::AnalysedCall &call) {
  for (mlir::Operation &op : pattern.getBody().front())
    if (mlir::isa<attn::AlibiOp>(op) || readsHead(op))
      return op.getName().getStringRef().str();
  const std::vector<unsigned> ofMasks = attn::maskTensorsOf(pattern);
  for (unsigned argument = 0; argument < pattern.getNumArguments(); ++argument)
    if (isOfHeads(pattern, argument, ofMasks))
      return "tensor '" + pattern.getParameterName(argument).str() + "'";
  return attn::headGroups(call.analysis, call.sizes).size() > 1 ? "what heads keep" : "";
}

} // namespace heddle
