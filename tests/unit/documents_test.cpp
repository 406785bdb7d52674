// attn.documents: tiles and counts, compiled functions and emitted text against the definition for many offsets, whole
// rows on the CPU, and offsets that are refused.
#include "compiler/Pattern/ProblemKey.h"
#include "support/AnalysisChecks.h"
#include "support/CompiledPattern.h"
#include "support/DocumentCalls.h"
#include "support/LibraryFiles.h"
#include "support/RangeCheck.h"
#include <doctest/doctest.h>
#include <random>

using namespace heddle;
using namespace heddle::test;

namespace {

const std::vector<attn::TileShape> kShapes = {{1, 1}, {7, 3}, {16, 8}, {48, 64}};

/// Tiles and counts of every layout, both ways.
void checkTiles(const std::string &text, bool isStructural = true) {
  CAPTURE(text);
  auto file = parsed(text);
  CHECK(file->analysis().isStructural() == isStructural);
  for (const Layout &layout : layouts()) {
    oracle::Problem problem = problemOf(*file, layout, 3);
    for (attn::TileShape shape : kShapes) {
      std::string account = oracle::checkPattern(file->lowered(), file->analysis(), problem, shape);
      CHECK_MESSAGE(account.empty(), account);
      if (!account.empty())
        return;
    }
  }
}

const char *const kInside[] = {
    "%i = attn.full",
    "%i = attn.causal",
    "%i = attn.window [4, 2]",
    "%i = attn.cols [2, 3]",
    "%i = attn.rows [1, 2]",
    "%i = attn.box [1, 9, 2, 7]",
    "%i = attn.prefix [5]",
    "%c = attn.causal %i = attn.segment %c by [6]",
    "%w = attn.window [1, 1] %i = attn.blocks %w by [4]",
    "%a = attn.causal %b = attn.window [3, 9] %i = attn.and %a, %b",
};

void checkWords(const Compiled &compiled, const HandPattern &rule, const JitContext &c) {
  long wrong = 0;
  for (int branch = 0; branch < rule.branchCount(); ++branch) {
    REQUIRE(compiled.text->hasKeptColumns(branch));
    for (int q = 0; q < c.seqlenQ; ++q)
      for (int first = 0; first < c.seqlenK; first += 8) {
        const uint32_t word = compiled.text->keptColumns(c, branch, c.qOrigin + q, first);
        for (int bit = 0; bit < 32; ++bit) { // bit 2 n + e is column 8 n + e
          const int key = first + bit / 2 * 8 + bit % 2;
          wrong += (word >> bit & 1) != uint32_t(key < c.seqlenK && rule.keeps(c, branch, c.qOrigin + q, key));
        }
      }
  }
  CHECK(wrong == 0);
}

/// What is compiled for this machine, and the text of a kernel.
void checkFunctions(const std::string &text, bool hasWords = true) {
  CAPTURE(text);
  auto file = parsed(text);
  Compiled compiled(*file);
  for (const Layout &layout : layouts()) {
    const oracle::Problem problem = problemOf(*file, layout, 2);
    const JitContext c = contextOf(problem);
    oracle::PatternOracle definition(file->lowered(), problem);
    HandPattern rule{compiled.info,
                     "",
                     [&](const JitContext &at, int branch, int q, int k) {
                       return definition.keeps(branch, at.head, q - at.qOrigin, k - at.kOrigin);
                     },
                     {}};
    long wrong = 0;
    for (int branch = 0; branch < rule.branchCount(); ++branch)
      for (int q = c.qOrigin; q < c.qOrigin + c.seqlenQ; ++q)
        for (int k = 0; k < c.seqlenK; ++k)
          wrong += compiled.jit->keep(c, branch, q, k) != rule.keeps(c, branch, q, k) ||
                   compiled.text->keep(c, branch, q, k) != rule.keeps(c, branch, q, k);
    CHECK(wrong == 0);
    if (hasWords)
      checkWords(compiled, rule, c);
    for (test::TileShape shape : {test::TileShape{1, 1}, {5, 3}, {16, 8}, {64, 64}}) {
      const RangeReport ofText = checkRanges(*compiled.text, rule, c, shape),
                        ofJit = checkRanges(*compiled.jit, rule, c, shape);
      CHECK(ofText.error == "");
      CHECK(ofJit.error == "");
      CHECK(ofText.visitedTiles == ofJit.visitedTiles);
      CHECK(ofText.visitedTiles == ofText.nonEmptyTiles);
    }
  }
}

} // namespace

TEST_CASE("tiles and pairs of documents equal brute force, forward and transposed") {
  for (const char *inside : kInside)
    for (const char *origin : {"", "q_origin(end)"})
      for (bool isUsed : {false, true})
        checkTiles(patternText(inside, "", origin, isUsed));
}

TEST_CASE("complements, conjunctions, unions and groups of heads of documents") {
  int number = 0;
  for (const char *inside :
       {"%i = attn.causal", "%i = attn.cols [2, 3]", "%c = attn.causal %i = attn.segment %c by [6]"})
    for (const char *outside :
         {"%m = attn.not %d", "%w = attn.window [9, 3] %m = attn.and %d, %w",
          "%g = attn.cols [3, 0] %m = attn.or %d, %g",
          "%n = attn.not %d %s = attn.window [2, 2] %t = attn.segment %s by [7] %m = attn.and %n, %t",
          "%w = attn.causal %m = attn.heads %d, %w"}) {
      const char *origins[] = {"", "q_origin(end)"};
      checkTiles(patternText(inside, outside, origins[number++ % 2], true));
      if (!takesAll())
        continue;
      checkTiles(patternText(inside, outside, origins[number % 2], true));
      for (const char *origin : origins) // documents whose keys are all used
        checkTiles(patternText(inside, outside, origin, false));
    }
}

TEST_CASE("lattices and lists inside documents") {
  // One tensor for both axes: a class of queries is one of keys.
  const std::string one = "attn.pattern @p(%cu: memref<?xi32>) {\n";
  for (const char *inside :
       {"%w = attn.window [2, 1] %i = attn.dilate %w by 3 rule(every)",
        "%c = attn.causal %i = attn.dilate %c by 2 at 1", "%r = attn.random count 2 seed 5 %i = attn.blocks %r by [4]"})
    for (const char *outside : {"%m = attn.or %d, %d", "%m = attn.not %d"}) {
      const std::string text =
          one + inside + "\n%d = attn.documents %i at %cu : memref<?xi32>\n" + outside + "\nattn.softmax union(%m)\n}";
      CAPTURE(text);
      auto file = parsed(text);
      for (Layout layout : layouts()) {
        layout.keys = layout.queries;
        for (attn::TileShape shape : kShapes) {
          std::string account =
              oracle::checkPattern(file->lowered(), file->analysis(), problemOf(*file, layout, 2), shape);
          CHECK_MESSAGE(account.empty(), account);
        }
      }
    }
  checkTiles(patternText("%w = attn.window [2, 1] %i = attn.dilate %w by 3 rule(every)"), false);
  checkTiles(patternText("%c = attn.causal %s = attn.stride k by 4 at 1 %i = attn.and %c, %s"), false);
  checkTiles(patternText("%s = attn.stride q by 4 at 1 %i = attn.and %s, %s"));
}

TEST_CASE("compiled functions and the text of kernels equal brute force") {
  for (const char *inside : {"%i = attn.causal", "%i = attn.window [4, 2]",
                             "%c = attn.causal %i = attn.segment %c by [6]", "%i = attn.cols [2, 3]"})
    for (const char *origin : {"", "q_origin(end)"})
      checkFunctions(patternText(inside, "", origin, *origin != 0));
  checkFunctions(patternText("%i = attn.causal", "%g = attn.cols [3, 0] %m = attn.or %d, %g"));
  checkFunctions(patternText("%i = attn.causal", "%m = attn.not %d", "q_origin(end)", true));
  std::string branches = patternText("%i = attn.causal", "%m = attn.window [3, 3]");
  branches.replace(branches.find("union(%m)"), 9, "lse(%m, %d)");
  checkFunctions(branches);
}

TEST_CASE("permuting documents permutes outputs, to the last bit") {
  const Entries lengths = {9, 0, 31, 1, 16};
  const std::vector<size_t> order = {3, 2, 4, 1, 0};
  Entries permuted;
  for (size_t s : order)
    permuted.push_back(lengths[s]);
  const std::string text = patternText("%i = attn.window [5, 1]");
  const Layout from = layoutOf(lengths, lengths), to = layoutOf(permuted, permuted);
  const Outcome original(text, from);
  std::vector<int> sourceOf;
  for (size_t s : order)
    for (int row = from.queries[s]; row < from.queries[s + 1]; ++row)
      sourceOf.push_back(row);
  const Outcome moved(text, to, [&](AttentionCase &attention) {
    const AttentionCase &source = original.attention;
    for (int row = 0; row < int(sourceOf.size()); ++row) {
      copyRow(attention.q, row, source.q, sourceOf[size_t(row)], 2, source.shape.headDim);
      copyRow(attention.k, row, source.k, sourceOf[size_t(row)], 1, source.shape.headDim);
      copyRow(attention.v, row, source.v, sourceOf[size_t(row)], 1, source.shape.valueDim);
    }
  });
  double worst = 0;
  for (int head = 0; head < 2; ++head)
    for (int row = 0; row < int(sourceOf.size()); ++row) {
      worst = std::max(worst, std::abs(moved.lse(head, row) - original.lse(head, sourceOf[size_t(row)])));
      for (int d = 0; d < original.attention.shape.valueDim; ++d)
        worst = std::max(worst, std::abs(moved.attention.out.get(0, row, head, d) -
                                         original.attention.out.get(0, sourceOf[size_t(row)], head, d)));
    }
  CHECK(worst <= 2e-6); // tiles begin elsewhere in a document, so sums are taken in another order
}

TEST_CASE("one document is the plain pattern") {
  const Layout layout = layoutOf({50}, {70});
  for (const char *origin : {"", "q_origin(end)"}) {
    const Outcome documents(patternText("%i = attn.causal", "", origin), layout);
    const Outcome plain("attn.pattern @p() " + std::string(origin) + " { %m = attn.causal attn.softmax union(%m) }",
                        layout);
    long differing = 0;
    for (int head = 0; head < 2; ++head)
      for (int row = 0; row < 50; ++row) {
        differing += documents.lse(head, row) != plain.lse(head, row);
        for (int d = 0; d < plain.attention.shape.valueDim; ++d)
          differing += documents.attention.out.get(0, row, head, d) != plain.attention.out.get(0, row, head, d);
      }
    CHECK(differing == 0);
  }
}

TEST_CASE("documents without keys give empty rows") {
  const Outcome outcome(patternText("%i = attn.full"), layoutOf({4, 3}, {0, 6}));
  for (int row = 0; row < 7; ++row) {
    CHECK(std::isinf(outcome.lse(0, row)) == (row < 4));
    if (row < 4)
      CHECK(outcome.attention.out.get(0, row, 0, 0) == 0);
  }
}

TEST_CASE("a billion tokens in many documents take evaluations by the document") {
  auto file = parsed(patternText("%i = attn.causal"));
  Entries lengths;
  std::mt19937 random(2);
  attn::WideInt kept = 0;
  for (int s = 0; s < 20000; ++s) {
    lengths.push_back(int32_t(random() % 100000));
    kept += attn::WideInt(lengths.back()) * (lengths.back() + 1) / 2;
  }
  const oracle::Problem problem = problemOf(*file, layoutOf(lengths, lengths), 1);
  attn::ProblemSizes sizes = oracle::toSizes(problem);
  sizes.mostEvaluations = 16 * int64_t(lengths.size());
  CHECK(attn::countPairs(file->analysis(), sizes) == std::optional<attn::WideInt>(kept));
  const attn::TileCounts tiles = attn::countTiles(file->analysis(), sizes, {128, 128}, attn::Direction::Forward);
  CHECK_FALSE(tiles.isBound);
  CHECK(tiles.visited * 128 * 128 >= kept);
}

TEST_CASE("without the tensors pairs are unknown and tiles a bound") {
  auto file = parsed(patternText("%i = attn.causal"));
  attn::ProblemSizes sizes{2, 1000, 1000, 0, 0, {0, 0}};
  CHECK(attn::lacksTensors(file->analysis(), sizes));
  CHECK_FALSE(attn::countPairs(file->analysis(), sizes).has_value());
  const attn::TileCounts tiles = attn::countTiles(file->analysis(), sizes, {128, 128}, attn::Direction::Forward);
  CHECK(tiles.isBound);
  CHECK(tiles.visited == 2 * 8 * 8);
  CHECK(tiles.full == 0);
}

namespace {

Status bindLayout(const PatternFile &file, ProblemShape &shape, const Layout &layout) {
  shape.parameters.assign(3, 0);
  shape.operands.clear();
  const oracle::Problem problem = problemOf(file, layout, 1);
  return checkOperands(file, problem.operands, shape);
}

} // namespace

TEST_CASE("offsets that are no documents are refused, and say what is expected") {
  auto file = parsed(patternText("%i = attn.causal", "", "", true));
  auto refusal = [&](Layout layout, int64_t seqlenQ = 20, int64_t seqlenK = 30) {
    ProblemShape shape;
    shape.seqlenQ = seqlenQ, shape.seqlenK = seqlenK;
    return bindLayout(*file, shape, layout).message();
  };
  const Layout good = layoutOf({5, 0, 15}, {10, 10, 10});
  CHECK(refusal(good) == "");
  Layout bad = good;
  bad.queries = {0, 5, 4, 20};
  CHECK(refusal(bad) == "tensor 'cu_q': expected entry 2 of 4 to be at least 5, the one before, got 4");
  bad = good;
  bad.keys = {1, 10, 20, 30};
  CHECK(refusal(bad) == "tensor 'cu_k': expected entry 0 of 4 to be 0, got 1");
  CHECK(refusal(good, 21) == "tensor 'cu_q': expected entry 3 of 4 to be 21, where the queries end, got 20");
  CHECK(refusal(good, 20, 29) == "tensor 'cu_k': expected entry 3 of 4 to be 29, where the keys end, got 30");
  bad = good;
  bad.keys = {0, 10, 30};
  CHECK(refusal(bad) == "tensor 'cu_k': expected 4 entries, as the offsets of the queries have, got 3");
  bad = good;
  bad.used = {10, 11, 0};
  CHECK(refusal(bad) == "tensor 'used': expected entry 1 of 3 to be 0 to 10, the keys of the document, got 11");
  bad = good;
  bad.used = {10, 10};
  CHECK(refusal(bad) == "tensor 'used': expected 3 entries, one for each document, got 2");
  bad.queries = {0};
  CHECK(refusal(bad) == "tensor 'cu_q': expected at least 2 entries, one more than there are documents, got 1");
}

TEST_CASE("offsets that are made have an empty document and one of one token, and fit") {
  for (bool isUsed : {false, true})
    for (const char *origin : {"", "q_origin(end)"})
      for (auto [seqlenQ, seqlenK] :
           {std::pair<int64_t, int64_t>{0, 0}, {1, 1}, {2, 9}, {100, 100}, {8192, 8192}, {100000, 3}}) {
        auto file = parsed(patternText("%i = attn.causal", "", origin, isUsed));
        ProblemShape shape;
        shape.seqlenQ = seqlenQ, shape.seqlenK = seqlenK;
        shape.parameters.assign(2 + isUsed, 0);
        Status bound = bindOperands(*file, {{}, {}, OperandSources::Missing::make, 3}, shape);
        CHECK_MESSAGE(bound.isOk(), bound.message());
        const OperandTensor &queries = shape.operands[0];
        CHECK(queries.integer(2) == queries.integer(1));
        CHECK(queries.integer(3) - queries.integer(2) == (seqlenQ > 0));
      }
}
