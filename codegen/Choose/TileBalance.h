//===- TileBalance.h - whether query tiles cost alike ------------*- C++ -*-===//
// Owns the questions that defaults depend on: equal tiles may be dealt out in any order, others want the longest first;
// where query tiles are short, their ends weigh more than their middle; where neighbouring rows want different keys,
// large tiles load more than their parts need; where rows of many lattices meet in one kernel, its tiles keep little.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_CODEGEN_CHOOSE_TILEBALANCE_H
#define HEDDLE_CODEGEN_CHOOSE_TILEBALANCE_H

#include "codegen/Choose/AnalysedPattern.h"
#include "codegen/Config/PatternRates.h"

namespace heddle {

/// Of a pattern whose masks read tensors, or have lists that counts do not read, no more is known than the number of
/// queries that its masks are made for, and what lists in tensors are commonly made for.
TileBalance tileBalance(const AnalysedPattern &analysed);

} // namespace heddle

#endif
