//===- HostPattern.h - emitted device text run on the host ------------------===//
// Compiles the CUDA C++ text of a pattern with the host compiler, loads it and calls `struct Pattern`
// in it: what the GPU runs, checked without a GPU.
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_HOSTPATTERN_H
#define HEDDLE_TESTS_UNIT_SUPPORT_HOSTPATTERN_H

#include "codegen/Cpu/JitContext.h"
#include <memory>
#include <string>

namespace heddle {
struct PatternInfo;
}

namespace heddle::test {

// One loaded text. The functions mirror JitPattern, so tests can ask both the same question.
class HostPattern {
public:
  // `text` as emitPatternFunctions gives it. Throws std::runtime_error with the compiler's output.
  HostPattern(const std::string &text, const PatternInfo &info);
  ~HostPattern();
  HostPattern(const HostPattern &) = delete;
  HostPattern &operator=(const HostPattern &) = delete;

  int variant(const JitContext &context) const;
  int queryRate(int variant) const;
  int keyRate(int variant, int branch) const;
  int keyResidue(const JitContext &context, int variant, int branch, int tileFirst) const;
  JitKeyRange nextRange(const JitContext &context, const JitTile &tile, int from) const;
  bool keep(const JitContext &context, int branch, int q, int k) const;
  // Of key tiles, in texts with a TransposedPattern: rates of keys and queries, and ranges of query tiles.
  int transposedKeyRate(int variant) const;
  int transposedQueryRate(int variant, int branch) const;
  int transposedQueryResidue(const JitContext &context, int variant, int branch, int tileFirst) const;
  JitKeyRange transposedNextRange(const JitContext &context, const JitTile &tile, int from) const;
  bool hasTransposedKeptColumns(int branch) const;
  bool hasTransposedBandColumns() const;
  uint32_t transposedBandColumns(const JitContext &context, int branch, int k, int firstQuery) const;
  uint32_t transposedKeptColumns(const JitContext &context, int branch, int k, int firstQuery) const;
  bool hasKeptColumns(int branch) const;
  // The word of a lane whose first column is the key at position firstKey; asks only branches that have words.
  uint32_t keptColumns(const JitContext &context, int branch, int q, int firstKey) const;
  // Of the band that alone cuts the squares of a pattern, likewise; hasBandColumns says whether there is one.
  bool hasBandColumns() const;
  uint32_t bandColumns(const JitContext &context, int branch, int q, int firstKey) const;
  float score(const JitContext &context, int q, int k, float score) const;
  // In texts with a TransposedPattern.
  float scoreGradient(const JitContext &context, int q, int k, float score) const;
  bool isDetached() const;
  float sink(const JitContext &context) const;
  // kVariantCount, kBranchCount, kParamCount and kHasScore as the text states them.
  PatternInfo counts() const;

private:
  struct Library;
  std::unique_ptr<Library> library;
};

} // namespace heddle::test

#endif
