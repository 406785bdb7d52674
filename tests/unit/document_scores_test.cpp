// Scores inside documents: positions that a chain counts are those of the document, for every layout, on the CPU and in
// the text of kernels.
#include "compiler/Oracle/ScoreOracle.h"
#include "support/CompiledPattern.h"
#include "support/DocumentCalls.h"

using namespace heddle;
using namespace heddle::test;

namespace {

// Scores that read positions in every way: how far it is, which they are, both beside an index.
const char *const kChains[] = {
    "%t = attn.alibi %s",
    "%t = attn.score_map %s {\n^bb0(%x: f32, %b: i32, %h: i32, %q: i32, %k: i32):\n%d = arith.subi %k, %q : i32\n"
    "%f = arith.sitofp %d : i32 to f32\n%c = arith.constant 0.07 : f32\n%g = arith.mulf %f, %c : f32\n"
    "%y = arith.addf %x, %g : f32\nattn.yield %y : f32\n}",
    "%u = attn.score_map %s {\n^bb0(%x: f32, %b: i32, %h: i32, %q: i32, %k: i32):\n%two = arith.constant 2 : i32\n"
    "%p = arith.muli %q, %two : i32\n%d = arith.addi %p, %k : i32\n%f = arith.sitofp %d : i32 to f32\n"
    "%c = arith.constant 0.03 : f32\n%g = arith.mulf %f, %c : f32\n%e = math.sin %g : f32\n"
    "%y = arith.addf %x, %e : f32\nattn.yield %y : f32\n}\n%t = attn.alibi %u",
};

std::string withScores(std::string text, const std::string &chain) {
  const std::string end = "attn.softmax union(%m)";
  return text.replace(text.find(end), end.size(), "%s = attn.scaled\n" + chain + "\n" + end + " of %t");
}

struct Scored {
  std::string chain, origin;
  bool isUsed;
  std::string packed() const { return withScores(patternText("%i = attn.window [9, 4]", "", origin, isUsed), chain); }
  std::string plain() const {
    return withScores("attn.pattern @p() " + origin + " {\n%m = attn.window [9, 4]\nattn.softmax union(%m)\n}", chain);
  }
};

/// Every document of a call against a call of it alone.
void checkDocumentsAlone(const Scored &scored, const Layout &layout) {
  const Outcome together(scored.packed(), layout);
  for (size_t s = 0; s + 1 < layout.queries.size(); ++s) {
    const int32_t firstQ = layout.queries[s], queries = layout.queries[s + 1] - firstQ, firstK = layout.keys[s];
    const int32_t keys = scored.isUsed ? layout.used[s] : layout.keys[s + 1] - firstK;
    if (queries == 0 || keys == 0)
      continue;
    const Outcome alone(scored.plain(), layoutOf({queries}, {keys}), [&](AttentionCase &attention) {
      const AttentionCase &source = together.attention;
      for (int row = 0; row < queries; ++row)
        copyRow(attention.q, row, source.q, firstQ + row, 2, source.shape.headDim);
      for (int key = 0; key < keys; ++key) {
        copyRow(attention.k, key, source.k, firstK + key, 1, source.shape.headDim);
        copyRow(attention.v, key, source.v, firstK + key, 1, source.shape.valueDim);
      }
    });
    double worst = 0;
    for (int head = 0; head < 2; ++head)
      for (int row = 0; row < queries; ++row)
        if (!std::isinf(alone.lse(head, row)) || !std::isinf(together.lse(head, firstQ + row)))
          worst = std::max(worst, std::abs(together.lse(head, firstQ + row) - alone.lse(head, row)));
    CAPTURE(s);
    CHECK(worst <= 4e-6);
  }
}

/// Of every pair of the call, kept or not, for this machine and in the text of a kernel.
void checkScores(const std::string &text) {
  CAPTURE(text);
  auto file = parsed(text);
  Compiled compiled(*file);
  double worst = 0;
  for (const Layout &layout : layouts()) {
    const oracle::Problem problem = problemOf(*file, layout, 2);
    const JitContext c = contextOf(problem);
    const oracle::ScoreOracle definition(file->pattern(), problem), ofLowered(file->lowered(), problem);
    for (int q = c.qOrigin; q < c.qOrigin + c.seqlenQ; ++q)
      for (int k = 0; k < c.seqlenK; ++k) {
        const double expected = definition.score({0, c.head, q, k}, 1.25);
        worst = std::max(worst, std::abs(compiled.jit->score(c, q, k, 1.25f) - expected));
        worst = std::max(worst, std::abs(compiled.text->score(c, q, k, 1.25f) - expected));
        worst = std::max(worst, std::abs(ofLowered.score({0, c.head, q, k}, 1.25) - expected));
      }
  }
  CHECK(worst <= 1e-4);
}

} // namespace

TEST_CASE("scores count positions inside documents: each is what it is alone") {
  for (const char *chain : kChains)
    for (const char *origin : {"", "q_origin(end)"})
      for (bool isUsed : {false, true})
        for (const Layout &layout :
             {layoutOf({10, 0, 23, 1, 7}, {12, 4, 23, 1, 9}), layoutOf({3, 50, 9}, {20, 50, 3})}) {
          CAPTURE(chain);
          CAPTURE(origin);
          CAPTURE(isUsed);
          checkDocumentsAlone({chain, origin, isUsed}, layout);
        }
}

TEST_CASE("scores of every pair are those of the definition, also of keys in no document of the query") {
  for (const char *chain : kChains)
    for (const char *origin : {"", "q_origin(end)"})
      checkScores(Scored{chain, origin, *origin != 0}.packed());
  for (const char *outside : {"%g = attn.cols [3, 0] %m = attn.or %d, %g", "%m = attn.not %d",
                              "%f = attn.full %m = attn.or %d, %f"}) // of which the canonical form leaves no documents
    checkScores(withScores(patternText("%i = attn.causal", outside), kChains[0]));
}

TEST_CASE("documents whose starts make no difference to scores are not looked up") {
  const std::string one = "attn.pattern @p(%cu: memref<?xi32>) {\n%i = attn.causal\n"
                          "%m = attn.documents %i at %cu : memref<?xi32>\nattn.softmax union(%m)\n}";
  const std::string two = patternText("%i = attn.causal"), capped = "%t = attn.softcap %s by 5.0";
  const auto looksUp = [](const std::string &text) {
    auto file = parsed(text);
    auto functions = functionsOf(*file);
    REQUIRE(functions.isOk());
    return bool(functions->module->lookupSymbol("pattern_score_document"));
  };
  CHECK_FALSE(looksUp(withScores(one, kChains[0])));
  CHECK_FALSE(looksUp(withScores(one, kChains[1])));
  CHECK(looksUp(withScores(one, kChains[2])));
  CHECK(looksUp(withScores(two, kChains[0])));
  CHECK_FALSE(looksUp(withScores(two, capped)));
}
