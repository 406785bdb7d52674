//===- PreparedPattern.h - a pattern without MLIR -------------*- C++ -*-===//
// Owns what is kept of a pattern between its preparation, once, and the compilation of its variants.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_DRIVER_PREPAREDPATTERN_H
#define HEDDLE_COMPILER_DRIVER_PREPAREDPATTERN_H

#include "codegen/Config/PatternRates.h"
#include "compiler/Driver/StageTimes.h"

#include <string>
#include <vector>

namespace heddle {

/// All that variants need of a pattern: immutable text and numbers.
struct PreparedPattern {
  std::string name;
  std::string digest;    ///< PatternFile::digest()
  std::string functions; ///< the generated CUDA functions and struct Pattern
  std::vector<VariantRates> variants;
  std::vector<PassRates> passes;          ///< as KernelRequest::passes
  std::vector<std::string> passFunctions; ///< of each of them, as `functions`
  std::string whyOnePass;                 ///< as KernelRequest::whyOnePass
  QOriginRule qOrigin = QOriginRule::start;
  int64_t grain = 1;                       ///< attn::grainOf (Grain.h)
  bool hasScores = false;                  ///< a chain changes scores
  TileBalance balance = {};                ///< TileBalance.h
  std::vector<std::string> parameterNames; ///< of the run-time sizes, in order of param<i>
  std::vector<OperandSlot> operands;       ///< the tensors among them
  std::string note;                        ///< what is evaluated pair by pair and why; empty if nothing
  StageTimes times;                        ///< parse, analyse, schedule, emit, passes, digest
};

} // namespace heddle

#endif
