//===- RatesOf.h - what a pattern fixes for kernels --------------*- C++ -*-===//
// Owns the way from an analysed pattern to the rates, the grain and the hints that kernels are built for.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_CODEGEN_CHOOSE_RATESOF_H
#define HEDDLE_CODEGEN_CHOOSE_RATESOF_H

#include "codegen/Choose/AnalysedPattern.h"
#include "codegen/Config/PatternRates.h"

namespace heddle {

/// Where the pattern says that query 0 stands.
QOriginRule originRuleOf(attn::PatternOp pattern);

PatternRates ratesOf(const AnalysedPattern &analysed);

} // namespace heddle

#endif
