// The counts that every user of a pattern's generated functions needs; free of MLIR, so that the CPU
// path's callers need none.
#pragma once

#include "runtime/Core/DType.h"

#include <string>
#include <vector>

namespace heddle {

// A tensor that the pattern reads.
struct PatternOperand {
  int argument; // its number among the arguments of the pattern; param_<argument> is its length, if it has one
  DType element;
};

struct PatternInfo {
  std::string name;                          // the pattern's symbol, for comments and messages
  int paramCount = 0;                        // arguments of the pattern: the trailing i32 values of every context
  int variantCount = 1;                      // head groups
  int branchCount = 1;                       // operands of the softmax
  bool hasScore = false;                     // a chain changes scores: there is a pattern_score
  bool hasSink = false;                      // every row has a key without a value: there is a pattern_sink
  int sinkArgument = -1;                     // the argument that the sink comes from; -1: none
  bool isDetached = false;                   // gradients of out do not go through the weights of branches
  bool keepsByHead = true;                   // false: all heads keep the same pairs
  std::vector<PatternOperand> operands = {}; // ascending; pointers behind the words of every context
};

} // namespace heddle
