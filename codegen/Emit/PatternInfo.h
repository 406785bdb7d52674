//===- PatternInfo.h - what is known beside the functions -------------------===//
// The counts that every user of a pattern's generated functions needs; free of MLIR, so that the CPU
// path's callers need none.
#ifndef HEDDLE_CODEGEN_EMIT_PATTERNINFO_H
#define HEDDLE_CODEGEN_EMIT_PATTERNINFO_H

#include <string>

namespace heddle {

struct PatternInfo {
  std::string name;     // the pattern's symbol, for comments and messages
  int paramCount = 0;   // run-time sizes: the trailing i32 values of every context
  int variantCount = 1; // head groups
  int branchCount = 1;  // operands of the softmax
  bool hasScore = false; // a chain changes scores: there is a pattern_score
};

} // namespace heddle

#endif
