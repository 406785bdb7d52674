// attn.tree: compiled functions and emitted text against the bits of the tensor, also at the 32nd and the 64th token,
// what tiles of the prefix are, and trees that are refused.
#include "codegen/Emit/EmitPattern.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Pattern/PatternFunctions.h"
#include "compiler/Oracle/PatternOracle.h"
#include "support/AnalysisChecks.h"
#include "support/CompiledPattern.h"
#include "support/HostPattern.h"
#include "support/RangeCheck.h"
#include <doctest/doctest.h>
#include <random>

using namespace heddle;
using namespace heddle::test;

namespace {

using Ancestors = std::vector<int64_t>;

std::string patternText(const std::string &more = "%m = attn.or %t, %t", const std::string &origin = "q_origin(end)") {
  return "attn.pattern @p(%ancestors: memref<?xi64>) " + origin + " {\n%t = attn.tree %ancestors : memref<?xi64>\n" +
         more + "\nattn.softmax union(%m)\n}";
}

std::unique_ptr<PatternFile> parsed(const std::string &text) {
  auto file = PatternFile::parse(text, "tree.mlir");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  return file.take();
}

/// Any bits, those beyond the last token too.
Ancestors randomBits(int64_t tokens, unsigned seed) {
  std::mt19937_64 random(seed);
  Ancestors ancestors;
  for (int64_t i = 0; i < tokens; ++i)
    ancestors.push_back(int64_t(random()));
  return ancestors;
}

struct Case {
  std::unique_ptr<PatternFile> file;
  oracle::Problem problem;
  Case(const std::string &text, const Ancestors &ancestors, int64_t seqlenQ, int64_t seqlenK) : file(parsed(text)) {
    problem = {2, seqlenQ, seqlenK, 0, 0, {int64_t(ancestors.size())}};
    attn::PatternOp pattern = file->pattern();
    if (pattern.getQOrigin() == attn::Origin::end)
      problem.qOrigin = seqlenK - seqlenQ;
    problem.operands = {OperandTensor::wideIntegers({int64_t(ancestors.size())}, ancestors)};
  }
};

void checkFunctions(const Compiled &compiled, const Case &one, const std::function<bool(int64_t, int64_t)> &isKept) {
  const JitPattern &jit = *compiled.jit;
  const HostPattern &host = *compiled.text;
  const oracle::Problem &problem = one.problem;
  oracle::PatternOracle definition(one.file->pattern(), problem);
  JitContext c;
  c.heads = int32_t(problem.heads), c.seqlenQ = int32_t(problem.seqlenQ), c.seqlenK = int32_t(problem.seqlenK);
  c.qOrigin = int32_t(problem.qOrigin);
  c.params[0] = int32_t(problem.parameters[0]);
  c.operands[0] = problem.operands[0].address();
  long wrong = 0;
  for (int i = 0; i < c.seqlenQ; ++i)
    for (int j = 0; j < c.seqlenK; ++j) {
      const bool kept = isKept(i, j);
      wrong += jit.keep(c, 0, c.qOrigin + i, j) != kept || host.keep(c, 0, c.qOrigin + i, j) != kept ||
               definition.keeps(0, 0, i, j) != kept;
    }
  CHECK(wrong == 0);
  HandPattern rule{
      compiled.info, "", [&](const JitContext &at, int, int q, int k) { return isKept(q - at.qOrigin, k); }, {}};
  for (test::TileShape shape : {test::TileShape{1, 1}, {5, 3}, {16, 8}, {64, 64}}) {
    CHECK(checkRanges(host, rule, c, shape).error == "");
    CHECK(checkRanges(jit, rule, c, shape).error == "");
  }
}

} // namespace

TEST_CASE("every bit of up to 64 tokens, behind a prefix or alone") {
  for (const char *origin : {"q_origin(end)", ""}) {
    const std::string text = patternText("%m = attn.or %t, %t", origin);
    const Compiled compiled(*parsed(text));
    for (int64_t tokens : {1, 2, 31, 32, 33, 64})
      for (auto [seqlenQ, seqlenK] :
           {std::pair<int64_t, int64_t>{tokens, tokens}, {tokens, tokens + 70}, {tokens + 9, tokens + 40}}) {
        CAPTURE(tokens);
        const Ancestors ancestors = randomBits(tokens, unsigned(tokens));
        const int64_t queries = seqlenQ - tokens, keys = seqlenK - tokens;
        checkFunctions(compiled, Case(text, ancestors, seqlenQ, seqlenK), [&](int64_t i, int64_t j) {
          return j < keys || (i >= queries && (uint64_t(ancestors[size_t(i - queries)]) >> (j - keys) & 1) != 0);
        });
      }
  }
}

TEST_CASE("alone, negated and with other masks: tiles cover what is kept, and are full only where all is") {
  for (const char *more :
       {"%m = attn.or %t, %t", "%m = attn.not %t", "%c = attn.causal %m = attn.and %t, %c",
        "%w = attn.window [3, 3] %n = attn.not %t %m = attn.or %w, %n", "%c = attn.causal %m = attn.heads %t, %c"})
    for (const char *origin : {"q_origin(end)", ""})
      for (auto [tokens, seqlenQ, seqlenK] :
           {std::tuple<int64_t, int64_t, int64_t>{7, 7, 60}, {20, 33, 45}, {1, 1, 1}}) {
        Case one(patternText(more, origin), randomBits(tokens, 3), seqlenQ, seqlenK);
        for (attn::TileShape shape : {attn::TileShape{1, 1}, {7, 3}, {16, 8}, {64, 64}}) {
          std::string account = oracle::checkPattern(one.file->lowered(), one.file->analysis(), one.problem, shape);
          CHECK_MESSAGE(account.empty(), account);
        }
      }
}

TEST_CASE("a tile of draft tokens visits the prefix without a mask, and the square of the tokens") {
  Case one(patternText(), randomBits(64, 1), 64, 64 + 8192);
  const attn::Variant &variant = one.file->analysis().variants[0];
  const attn::TileVisit visit =
      attn::TileVisitor(variant.forward, 0, attn::Direction::Forward, oracle::toSizes(one.problem))
          .visit(0, {0, 0, 64}, 64);
  CHECK(visit.visited == std::vector<attn::TileRun>{{0, 129}});
  CHECK(visit.full == std::vector<attn::TileRun>{{0, 128}});
}

TEST_CASE("trees that are made fit the call, and each token sees itself and one branch") {
  auto file = parsed(patternText());
  for (auto [seqlenQ, seqlenK] : {std::pair<int64_t, int64_t>{0, 0}, {1, 9}, {40, 90}, {500, 700}}) {
    ProblemShape shape;
    shape.seqlenQ = seqlenQ, shape.seqlenK = seqlenK;
    shape.parameters = {0};
    Status bound = bindOperands(*file, {{}, {}, OperandSources::Missing::make, 5}, shape);
    REQUIRE_MESSAGE(bound.isOk(), bound.message());
    const OperandTensor &tensor = shape.operands[0];
    CHECK(tensor.elements() == std::max<int64_t>(1, std::min<int64_t>(seqlenQ, 64)));
    for (int64_t i = 0; i < tensor.elements(); ++i)
      CHECK((uint64_t(tensor.integer(i)) >> i) == 1);
  }
}

TEST_CASE("a tree of no tokens, or of more than there can be, is refused") {
  auto file = parsed(patternText());
  auto refusal = [&](int64_t tokens, int64_t seqlenQ) {
    ProblemShape shape;
    shape.seqlenQ = seqlenQ, shape.seqlenK = 1000;
    shape.parameters = {0};
    return checkOperands(*file, {OperandTensor::wideIntegers({tokens}, randomBits(tokens, 1))}, shape).message();
  };
  CHECK(refusal(64, 64) == "");
  CHECK(refusal(65, 100) == "tensor 'ancestors': expected 1 to 64 draft tokens, at most 64 and no more than the call "
                            "has queries or keys, got 65");
  CHECK(refusal(9, 8) == "tensor 'ancestors': expected 1 to 8 draft tokens, at most 64 and no more than the call has "
                         "queries or keys, got 9");
  CHECK(refusal(0, 8) == "tensor 'ancestors': expected 1 to 8 draft tokens, at most 64 and no more than the call has "
                         "queries or keys, got 0");
}
