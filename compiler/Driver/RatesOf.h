//===- RatesOf.h - what an analysis fixes for kernels -----------*- C++ -*-===//
// Owns the way from the analysis of a pattern, or of one of its passes, to the rates and the grain that kernels are built for.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_DRIVER_RATESOF_H
#define HEDDLE_COMPILER_DRIVER_RATESOF_H

#include "codegen/Config/PatternRates.h"
#include "dialect/Analysis/PatternAnalysis.h"

namespace heddle {

QOriginRule originRule(attn::Origin origin);

std::vector<VariantRates> ratesOf(const attn::PatternAnalysis &analysis);

PassRates passRatesOf(const attn::PatternAnalysis &analysis);

} // namespace heddle

#endif
