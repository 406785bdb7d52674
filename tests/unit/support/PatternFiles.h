//===- PatternFiles.h - the patterns of the library, and odd ones ------------===//
// Owns the lists that tests sweep beside the files of patterns/: texts that combine ops in ways that have broken
// something or look as if they might.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_PATTERNFILES_H
#define HEDDLE_TESTS_UNIT_SUPPORT_PATTERNFILES_H

#include "support/LibraryFiles.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Pattern/PatternFile.h"

#include <algorithm>
#include <doctest/doctest.h>

namespace heddle::test {

inline std::unique_ptr<PatternFile> loaded(const std::string &path) {
  auto file = PatternFile::load(path);
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  return file.take();
}

/// `size` for every run-time size of the pattern, more where it asks for more.
inline std::vector<int64_t> sizesFrom(const PatternFile &file, int64_t size) {
  attn::PatternOp pattern = file.pattern();
  std::vector<int64_t> sizes;
  for (unsigned i = 0; i < pattern.getNumArguments(); ++i)
    sizes.push_back(std::max(size, pattern.getParameterMinimum(i)));
  return sizes;
}

/// Tensors for what the masks of the pattern read, and their lengths in `parameters`. Where no tensors fit the sizes
/// (one for both axes, of unequal lengths) they are those of a square problem.
inline Operands maskOperands(const PatternFile &file, int64_t heads, int64_t seqlenQ, int64_t seqlenK,
                             std::vector<int64_t> &parameters) {
  ProblemShape shape;
  shape.heads = shape.kvHeads = heads;
  shape.seqlenQ = seqlenQ;
  shape.seqlenK = seqlenK;
  shape.parameters = parameters;
  const OperandSources sources{{}, {}, OperandSources::Missing::makeForMasks, 1};
  if (!bindOperands(file, sources, shape).isOk()) {
    shape.seqlenQ = shape.seqlenK = std::max(seqlenQ, seqlenK);
    Status bound = bindOperands(file, sources, shape);
    REQUIRE_MESSAGE(bound.isOk(), bound.message());
  }
  parameters = shape.parameters;
  return shape.operands;
}

/// A union of the mask %m that `ops` define.
inline std::string unionText(const std::string &ops) {
  return "attn.pattern @p() {\n" + ops + "\nattn.softmax union(%m)\n}";
}

inline std::unique_ptr<PatternFile> parsed(const std::string &text) {
  auto file = PatternFile::parse(text, "test.mlir");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  return file.take();
}

/// Keeps keys of the query's own block of two and of the blocks beside it.
inline const char *const kNeighbourBlocks = R"(%m = attn.predicate {
  ^bb0(%b: i32, %h: i32, %q: i32, %k: i32):
    %two = arith.constant 2 : i32
    %one = arith.constant 1 : i32
    %minus = arith.constant -1 : i32
    %i = arith.divsi %q, %two : i32
    %j = arith.divsi %k, %two : i32
    %d = arith.subi %i, %j : i32
    %near = arith.cmpi sle, %d, %one : i32
    %far = arith.cmpi sge, %d, %minus : i32
    %keep = arith.andi %near, %far : i1
    attn.yield %keep : i1
  })";

inline std::vector<std::string> oddPatterns() {
  return {
      unionText("%a = attn.causal %b = attn.dilate %a by 3 rule(every) %m = attn.segment %b by [8]"),
      unionText("%a = attn.causal %b = attn.segment %a by [5] %m = attn.dilate %b by 3 at 1"),
      unionText(
          "%a = attn.window [1, 1] %b = attn.segment %a by [5] %c = attn.dilate %b by 2 rule(every) %m = attn.not %c"),
      unionText("%a = attn.stride q by 2 at 1 %b = attn.stride k by 3 at 2 %m = attn.and %a, %b"),
      unionText("%w = attn.window [4, 4] %r = attn.rows [3, 2] %k = attn.cols [0, 3] %m = attn.or %w, %r, %k"),
      unionText("%a = attn.full %b = attn.dilate %a by 2 rule(modulo) %c = attn.causal %m = attn.heads %b, %c"),
      unionText("%a = attn.causal %b = attn.dilate %a by 4 rule(block) %w = attn.window [2, 0] %m = attn.or %b, %w"),
      unionText("%a = attn.full %m = attn.not %a"),
      unionText(
          "%a = attn.random count 3 seed 5 per_head %b = attn.blocks %a by [4] %c = attn.causal %m = attn.and %b, %c"),
      unionText("%a = attn.random count 2 seed 7 %b = attn.dilate %a by 2 rule(every) %w = attn.window [2, 0] %m = "
                "attn.or %b, %w"),
      unionText(
          "%a = attn.random count 2 seed 7 %b = attn.segment %a by [6] %c = attn.blocks %b by [3] %m = attn.not %c"),
      unionText(kNeighbourBlocks),
      "attn.pattern @p() { %c = attn.causal %w = attn.window [3, 3] %d = attn.dilate %w by 2 rule(every) "
      "attn.softmax lse(%c, %d, %c) }",
      "attn.pattern @p() q_origin(end) { %m = attn.causal attn.softmax union(%m) }",
  };
}

} // namespace heddle::test

#endif
