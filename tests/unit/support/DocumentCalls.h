//===- DocumentCalls.h - calls of ragged batches ----------------------------===//
// Owns documents of many layouts, the patterns and tensors of calls of them, and one call on the CPU.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_DOCUMENTCALLS_H
#define HEDDLE_TESTS_UNIT_SUPPORT_DOCUMENTCALLS_H

#include "codegen/Cpu/CpuAttention.h"
#include "compiler/Oracle/PatternOracle.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Session/CompileForCpu.h"
#include "support/AttentionCase.h"

#include <doctest/doctest.h>
#include <functional>
#include <random>

namespace heddle::test {

using Entries = std::vector<int32_t>;

/// Offsets of both axes and, if there are any, the keys in use.
struct Layout {
  Entries queries, keys, used;
  int64_t seqlenQ() const { return queries.back(); }
  int64_t seqlenK() const { return keys.back(); }
};

inline Entries offsetsOf(const Entries &lengths) {
  Entries offsets = {0};
  for (int32_t length : lengths)
    offsets.push_back(offsets.back() + length);
  return offsets;
}

inline Layout layoutOf(const Entries &queries, const Entries &keys) {
  Layout layout{offsetsOf(queries), offsetsOf(keys), {}};
  for (size_t s = 0; s < keys.size(); ++s)
    layout.used.push_back(keys[s] - (s % 2 ? keys[s] / 3 : 0));
  return layout;
}

/// Empty documents, documents of one token, short ones and one that is longer than a tile.
inline std::vector<Layout> layouts() {
  std::vector<Layout> result = {
      layoutOf({37}, {37}),
      layoutOf({0, 0, 5}, {0, 3, 0}),
      layoutOf({1, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 2, 1, 0, 1, 1, 5, 1, 1}),
      layoutOf({10, 0, 23, 1, 7}, {12, 4, 23, 1, 0}),
      layoutOf({3, 50, 9}, {20, 50, 3}),
      layoutOf({0, 12, 0}, {7, 0, 9}),
  };
  std::mt19937 random(11);
  for (int trial = 0; trial < 12; ++trial) {
    Entries queries, keys;
    for (int s = 0, count = 1 + int(random() % 7); s < count; ++s) {
      queries.push_back(random() % 4 ? int32_t(random() % 18) : 0);
      keys.push_back(random() % 4 ? int32_t(random() % 24) : 0);
    }
    result.push_back(layoutOf(queries, keys));
  }
  return result;
}

/// A pattern over documents of the mask %i that `inside` defines; `outside` makes %m of %d.
inline std::string patternText(const std::string &inside, const std::string &outside = "",
                               const std::string &origin = "", bool isUsed = false) {
  return "attn.pattern @p(%cu_q: memref<?xi32>, %cu_k: memref<?xi32>" +
         std::string(isUsed ? ", %used: memref<?xi32>" : "") + ") " + origin + " {\n" + inside + "\n" +
         (outside.empty() ? "%m" : "%d") + " = attn.documents %i at %cu_q, %cu_k : memref<?xi32>, memref<?xi32>" +
         (isUsed ? " used %used : memref<?xi32>" : "") + "\n" + outside + "\nattn.softmax union(%m)\n}";
}

inline std::unique_ptr<PatternFile> parsed(const std::string &text) {
  auto file = PatternFile::parse(text, "documents.mlir");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  return file.take();
}

inline oracle::Problem problemOf(const PatternFile &file, const Layout &layout, int64_t heads) {
  attn::PatternOp pattern = file.pattern();
  oracle::Problem problem{heads, layout.seqlenQ(), layout.seqlenK(), 0, 0, {}};
  if (pattern.getQOrigin() == attn::Origin::end)
    problem.qOrigin = problem.seqlenK - problem.seqlenQ;
  for (const Entries *entries : {&layout.queries, &layout.keys, &layout.used})
    if (problem.operands.size() < pattern.getNumArguments()) {
      problem.operands.push_back(OperandTensor::integers({int64_t(entries->size())}, *entries));
      problem.parameters.push_back(int64_t(entries->size()));
    }
  return problem;
}

inline JitContext contextOf(const oracle::Problem &problem) {
  JitContext context;
  context.heads = int32_t(problem.heads);
  context.seqlenQ = int32_t(problem.seqlenQ), context.seqlenK = int32_t(problem.seqlenK);
  context.qOrigin = int32_t(problem.qOrigin), context.kOrigin = int32_t(problem.kOrigin);
  std::copy(problem.parameters.begin(), problem.parameters.end(), context.params.begin());
  for (size_t i = 0; i < problem.operands.size(); ++i)
    context.operands[i] = problem.operands[i].address();
  return context;
}

/// out and lse of one call on the CPU.
struct Outcome {
  AttentionCase attention;
  Outcome(const std::string &text, const Layout &layout, const std::function<void(AttentionCase &)> &change = nullptr)
      : attention(CaseShape{1, 2, 1, int(layout.seqlenQ()), int(layout.seqlenK())}, 5) {
    if (change)
      change(attention);
    auto file = parsed(text);
    auto jit = compileForCpu(*file);
    REQUIRE(jit.isOk());
    const oracle::Problem problem = problemOf(*file, layout, 2);
    CpuCall args = attention.args();
    args.qOrigin = int32_t(problem.qOrigin);
    args.params.assign(problem.parameters.begin(), problem.parameters.end());
    for (const OperandTensor &tensor : problem.operands)
      args.operands.push_back(tensor.address());
    args.blockM = 16, args.blockN = 8;
    REQUIRE(runAttention(**jit, args).isOk());
  }
  double lse(int head, int row) const { return attention.lse[size_t(head * attention.shape.seqlenQ + row)]; }
};

inline void copyRow(CaseTensor &to, int row, const CaseTensor &from, int fromRow, int heads, int dim) {
  for (int head = 0; head < heads; ++head)
    for (int d = 0; d < dim; ++d)
      to.set(0, row, head, d, from.get(0, fromRow, head, d));
}

} // namespace heddle::test

#endif
