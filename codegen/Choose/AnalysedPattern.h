//===- AnalysedPattern.h - what kernels are chosen from ----------*- C++ -*-===//
// Owns what the choices of this folder are told of a pattern: its op, its analysis and those of its passes.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_CODEGEN_CHOOSE_ANALYSEDPATTERN_H
#define HEDDLE_CODEGEN_CHOOSE_ANALYSEDPATTERN_H

#include "dialect/Geometry/Counts.h"
#include "dialect/IR/Attn.h"

#include <optional>
#include <string>
#include <vector>

namespace heddle {

/// The operations and analyses must outlive it.
struct AnalysedPattern {
  attn::PatternOp pattern; ///< as it is written
  attn::PatternOp lowered; ///< as it is analysed
  const attn::PatternAnalysis &analysis;
  std::vector<const attn::PatternAnalysis *> passes; ///< in the order of their launches
  std::string whyOnePass;                            ///< where there are none
  std::optional<std::vector<int64_t>> defaults;      ///< words of the arguments; none: a size has no default
};

} // namespace heddle

#endif
