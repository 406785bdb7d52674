// The emitted text, compiled by the host compiler, against the JIT of the same module and against the
// rule in plain C++: every function, over odd lengths, shifted origins and tiles of any size.
#include "codegen/Cpu/JitPattern.h"
#include "codegen/Emit/PatternInfo.h"
#include "support/HostPattern.h"
#include "support/ModuleLoader.h"
#include "support/RangeCheck.h"
#include <algorithm>
#include <doctest/doctest.h>

using namespace heddle;
using namespace heddle::test;

namespace {

// Contexts that differ in everything a generated function may read.
std::vector<JitContext> contextsOf(const HandPattern &pattern) {
  struct Sizes {
    int seqlenQ, seqlenK, qOrigin, kOrigin;
  };
  std::vector<JitContext> contexts;
  for (Sizes s : {Sizes{1, 1, 0, 0}, Sizes{0, 5, 0, 0}, Sizes{5, 0, 0, 0}, Sizes{37, 37, 0, 0}, Sizes{13, 61, 48, 0},
                  Sizes{61, 13, 0, 0}, Sizes{29, 50, 7, 3}, Sizes{20, 33, 2, 9}})
    for (int head : {0, 2}) {
      JitContext context;
      context.batch = 1;
      context.head = head;
      context.heads = 3;
      context.seqlenQ = s.seqlenQ;
      context.seqlenK = s.seqlenK;
      context.qOrigin = s.qOrigin;
      context.kOrigin = s.kOrigin;
      std::copy(pattern.params.begin(), pattern.params.end(), context.params.begin());
      contexts.push_back(context);
    }
  return contexts;
}

const std::vector<TileShape> shapes = {{1, 1}, {1, 7}, {5, 3}, {8, 8}, {16, 1}, {48, 20}, {64, 64}};

std::string describe(const HandPattern &pattern, const JitContext &c, TileShape shape) {
  return pattern.name() + " head " + std::to_string(c.head) + " q " + std::to_string(c.seqlenQ) + "+" +
         std::to_string(c.qOrigin) + " k " + std::to_string(c.seqlenK) + "+" + std::to_string(c.kOrigin) + " tile " +
         std::to_string(shape.blockM) + "x" + std::to_string(shape.blockN);
}

} // namespace

TEST_CASE("kept pairs are those of the rule, in the text and in the JIT") {
  for (const HandPattern &pattern : allHandPatterns()) {
    HostPattern text(emitText(pattern), *pattern.info);
    JitPattern jit = compileForCpu(pattern);
    long kept = 0, wrongText = 0, wrongJit = 0;
    for (const JitContext &c : contextsOf(pattern))
      for (int branch = 0; branch < pattern.branchCount(); ++branch)
        for (int q = c.qOrigin; q < c.qOrigin + c.seqlenQ; ++q)
          for (int k = c.kOrigin; k < c.kOrigin + c.seqlenK; ++k) {
            bool expected = pattern.keeps(c, branch, q, k);
            kept += expected;
            wrongText += text.keep(c, branch, q, k) != expected;
            wrongJit += jit.keep(c, branch, q, k) != expected;
          }
    INFO(pattern.name());
    CHECK(kept > 0);
    CHECK(wrongText == 0);
    CHECK(wrongJit == 0);
  }
}

TEST_CASE("ranges visit every kept pair once and call full only what is full") {
  for (const HandPattern &pattern : allHandPatterns()) {
    HostPattern text(emitText(pattern), *pattern.info);
    JitPattern jit = compileForCpu(pattern);
    long visited = 0;
    for (const JitContext &context : contextsOf(pattern))
      for (TileShape shape : shapes) {
        RangeReport fromText = checkRanges(text, pattern, context, shape);
        RangeReport fromJit = checkRanges(jit, pattern, context, shape);
        INFO(describe(pattern, context, shape));
        CHECK(fromText.error == "");
        CHECK(fromJit.error == "");
        CHECK(fromText.visitedTiles == fromJit.visitedTiles);
        CHECK(fromText.fullTiles == fromJit.fullTiles);
        visited += fromJit.visitedTiles;
      }
    CHECK(visited > 0);
  }
}

TEST_CASE("simple patterns visit only tiles that keep something, and call every full tile full") {
  for (const HandPattern &pattern : {fullPattern(), causalPattern(), windowPattern(5, 2)}) {
    JitPattern jit = compileForCpu(pattern);
    for (const JitContext &context : contextsOf(pattern))
      for (TileShape shape : shapes) {
        RangeReport report = checkRanges(jit, pattern, context, shape);
        INFO(describe(pattern, context, shape));
        CHECK(report.visitedTiles == report.nonEmptyTiles);
        CHECK(report.fullTiles == report.trulyFullTiles);
      }
  }
}

TEST_CASE("rates, residues and variants agree between the text and the JIT") {
  for (const HandPattern &pattern : allHandPatterns()) {
    HostPattern text(emitText(pattern), *pattern.info);
    JitPattern jit = compileForCpu(pattern);
    INFO(pattern.name());
    for (int variant = 0; variant < pattern.variantCount(); ++variant) {
      CHECK(text.queryRate(variant) == jit.queryRate(variant));
      for (int branch = 0; branch < pattern.branchCount(); ++branch)
        CHECK(text.keyRate(variant, branch) == jit.keyRate(variant, branch));
    }
    for (const JitContext &context : contextsOf(pattern)) {
      CHECK(text.variant(context) == jit.variant(context));
      for (int tileFirst = -20; tileFirst < 40; ++tileFirst)
        for (int branch = 0; branch < pattern.branchCount(); ++branch)
          CHECK(text.keyResidue(context, jit.variant(context), branch, tileFirst) ==
                jit.keyResidue(context, jit.variant(context), branch, tileFirst));
    }
  }
}

TEST_CASE("the text states the counts of the pattern") {
  for (const HandPattern &pattern : allHandPatterns()) {
    PatternInfo counts = HostPattern(emitText(pattern), *pattern.info).counts();
    CHECK(counts.variantCount == pattern.variantCount());
    CHECK(counts.branchCount == pattern.branchCount());
    CHECK(counts.hasScore == pattern.info->hasScore);
    CHECK(counts.paramCount == pattern.info->paramCount);
  }
}
