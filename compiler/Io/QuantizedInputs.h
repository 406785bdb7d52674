// Owns the way from the results of a call of kind quantize to the inputs of a forward call, which has k_mean beside it.
#pragma once

#include "compiler/Io/AttentionInputs.h"

#include <utility>

namespace heddle {

/// `from`: what was quantised.
inline AttentionInputs inputsOfQuantized(RoleTensors results, const AttentionInputs &from) {
  AttentionInputs low;
  low.sizes = from.sizes;
  low.scaleRows = from.scaleRows;
  low.kind.hasKeyMajorValues = from.kind.hasKeyMajorValues;
  low.q = std::move(results.quantizedQ), low.k = std::move(results.quantizedK), low.v = std::move(results.quantizedV);
  low.descaleQ = std::move(results.descaleQ), low.descaleK = std::move(results.descaleK);
  low.descaleV = std::move(results.descaleV);
  low.kMean = std::move(results.kMean);
  return low;
}

} // namespace heddle
