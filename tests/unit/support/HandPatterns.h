//===- HandPatterns.h - pattern modules written by hand ---------------------===//
// Modules of the form of docs/architecture.md, section 2, as MLIR text, each with the plain C++ rule
// of what it keeps. The rule shares nothing with the text, so it can serve as the oracle.
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_HANDPATTERNS_H
#define HEDDLE_TESTS_UNIT_SUPPORT_HANDPATTERNS_H

#include "codegen/Cpu/JitContext.h"
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace heddle {
struct PatternInfo;
}

namespace heddle::test {

// True where branch `branch` keeps the pair of positions (q, k). The context carries head, heads and
// the run-time sizes.
using KeepRule = std::function<bool(const JitContext &context, int branch, int q, int k)>;

// What becomes of scale * <q, k> of the pair.
using ScoreRule = std::function<double(const JitContext &context, int q, int k, double score)>;

struct HandPattern {
  std::shared_ptr<const PatternInfo> info; // never null where the pattern is used
  std::string module;
  KeepRule keeps;
  std::vector<int32_t> params;                    // values for the run-time sizes
  ScoreRule scores = nullptr;                     // null: scores stay as they are
  std::function<double(int head)> sink = nullptr; // score of a key without a value; null: there is none

  const std::string &name() const;
  int variantCount() const;
  int branchCount() const;
};

HandPattern fullPattern();
HandPattern causalPattern();
// keeps q - param_0 <= k <= q + param_1
HandPattern windowPattern(int left, int right);
// First half of the heads: segments of shortLength. Second half: segments of longLength, a multiple of
// rate, where only the positions with remainder 1 take part.
HandPattern dilatedPattern(int shortLength = 12, int longLength = 24, int rate = 3);
// Branch 0: the last 4 positions. Branch 1: every 4th position up to the query. A key may count twice.
HandPattern twoBranchPattern();
// (7 k + 3 q) mod 5 < 2, ranges found by loops over the pairs.
HandPattern scannedPattern();

std::vector<HandPattern> allHandPatterns();

} // namespace heddle::test

#endif
