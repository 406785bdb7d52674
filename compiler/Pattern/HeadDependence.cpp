#include "compiler/Pattern/HeadDependence.h"
#include "dialect/IR/PatternOperands.h"

#include <algorithm>

namespace heddle {
namespace {

/// Regions end with (batch, head, q, k). Scores that say nothing of the head, but of positions, may weigh these by it.
bool readsHead(mlir::Operation &op) {
  constexpr unsigned kFromEnd = 3;
  if (op.getNumRegions() && !op.getRegion(0).empty()) {
    mlir::Block &region = op.getRegion(0).front();
    return region.getNumArguments() < kFromEnd || !region.getArgument(region.getNumArguments() - kFromEnd).use_empty();
  }
  auto score = mlir::dyn_cast<attn::ScoreOpInterface>(op);
  return score && score.positionUse() != attn::PositionUse::None;
}

/// Lists of keys are those of a head where the type says so; tensors of scores and sinks may be, whatever it says.
bool isOfHeads(attn::PatternOp pattern, unsigned argument, const std::vector<unsigned> &ofMasks) {
  return pattern.isOperand(argument) && (attn::hasExtent(pattern, argument, attn::Extent::Heads) ||
                                         std::count(ofMasks.begin(), ofMasks.end(), argument) == 0);
}

} // namespace

std::string whatDependsOnHeads(attn::PatternOp pattern, const attn::AnalysedCall &call) {
  for (mlir::Operation &op : pattern.getBody().front())
    if (readsHead(op))
      return op.getName().getStringRef().str();
  const std::vector<unsigned> ofMasks = attn::maskTensorsOf(pattern);
  for (unsigned argument = 0; argument < pattern.getNumArguments(); ++argument)
    if (isOfHeads(pattern, argument, ofMasks))
      return "tensor '" + pattern.getParameterName(argument).str() + "'";
  return attn::headGroups(call.analysis, call.sizes).size() > 1 ? "what heads keep" : "";
}

} // namespace heddle
