//===- KeptFlops.cpp - what a call computes on kept pairs -----------------===//
#include "compiler/Tools/KeptFlops.h"
#include "compiler/Views/KeptPairs.h"

#include <cstdio>

namespace heddle::cli {

Result<std::optional<double>> keptFlops(const PatternFile &file, const ProblemShape &shape, int64_t headDim,
                                        int64_t valueDim) {
  HEDDLE_ASSIGN(const views::KeptPairs kept, views::keptPairsOf(file, sizesOf(file, shape), shape.operands));
  if (!kept.count)
    return std::optional<double>();
  return std::optional<double>(2.0 * (headDim + valueDim) * static_cast<double>(*kept.count) * shape.batch);
}

std::optional<double> teraflops(const std::optional<double> &flops, double us) {
  return flops && us > 0 ? std::optional<double>(*flops / us * 1e-6) : std::nullopt;
}

std::string rateText(const std::optional<double> &rate) {
  char text[32] = "-";
  if (rate)
    std::snprintf(text, sizeof(text), "%.1f", *rate);
  return text;
}

Json rateJson(const std::optional<double> &rate) { return rate ? Json(*rate) : Json(); }

} // namespace heddle::cli
