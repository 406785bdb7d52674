// Owns the check of what a pattern is given beside its tensors' addresses: run-time sizes and lengths of tensors, which
// kernels rely on. A pattern makes the list once; plans carry it to launches, and calls on the processors, tensors from
// files and Python are held against the same one. What tensors hold is not looked at: it may lie on a GPU.
#pragma once

#include "runtime/Core/LaunchExpr.h"

namespace heddle {

// Of a run-time size, or of the length of a tensor.
struct ArgumentBound {
  int64_t argument = 0;
  LaunchExpr value; // the word of the argument, or the length that its type says
  LaunchExpr least = 0, most = kNoMost;
  std::string unit;   // of lengths, singular: "entry"; empty: a size
  std::string reason; // behind the bounds: "as the offsets of the queries have"; may be empty

  static constexpr int64_t kNoMost = INT32_MAX;

  // Bit i: the word of argument i must be known.
  uint64_t argumentsRead() const;
};

// invalidArgument names the first argument out of bounds, those allowed and the value. Bounds that read words outside
// of `given` (bit i: argument i) are passed over. `names`: of all arguments, for messages; empty: they have numbers.
Status checkBounds(const std::vector<ArgumentBound> &bounds, const LaunchSymbols &symbols, uint64_t given,
                   const std::vector<std::string> &names = {});

} // namespace heddle
