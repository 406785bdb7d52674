//===- split_union_test.cpp - branches of a union keep what the union keeps ----===//
// Also that tiles of these branches visit what they keep, of random unions over several lattices: 200, and 5,000 with
// HEDDLE_TEST_ALL=1; HEDDLE_TEST_SEED=n starts elsewhere.
#include "compiler/Oracle/PatternOracle.h"
#include "support/AnalysisChecks.h"
#include "support/ManyCases.h"
#include "support/PatternFiles.h"

#include <doctest/doctest.h>

using namespace heddle;
using namespace heddle::test;

namespace {

attn::BranchRanges branchOf(const PatternFile &file, unsigned branch, unsigned variant = 0) {
  return file.analysis().variants[variant].forward.branches[branch];
}

/// Pairs that what is compiled keeps more or less often, in all branches together, than what is written.
int64_t wrongPairs(const PatternFile &file, const oracle::Problem &problem) {
  oracle::PatternOracle written(file.pattern(), problem), compiled(file.lowered(), problem);
  int64_t wrong = 0;
  for (int64_t head = 0; head < problem.heads; ++head)
    for (int64_t row = 0; row < problem.seqlenQ; ++row)
      for (int64_t key = 0; key < problem.seqlenK; ++key) {
        auto copies = [&](const oracle::PatternOracle &definition) {
          int sum = 0;
          for (unsigned branch = 0; branch < definition.branchCount(); ++branch)
            sum += definition.keeps(branch, head, row, key);
          return sum;
        };
        wrong += copies(compiled) != copies(written);
      }
  return wrong;
}

void checkSamePairs(const PatternFile &file, int64_t heads, int64_t seqlenQ, int64_t seqlenK, int64_t origin) {
  oracle::Problem problem{heads, seqlenQ, seqlenK, origin, 0, sizesFrom(file, 7)};
  problem.operands = maskOperands(file, heads, seqlenQ, seqlenK, problem.parameters);
  CHECK(wrongPairs(file, problem) == 0);
}

Outcome checkTiles(const PatternFile &file, const oracle::Problem &problem, attn::TileShape shape) {
  if (wrongPairs(file, problem) != 0)
    return {true, "other pairs than those of the text"};
  return {true, oracle::checkPattern(file.lowered(), file.analysis(), problem, shape)};
}

Outcome checkCase(const RandomCase &made) {
  std::vector<int64_t> parameters;
  auto file = PatternFile::parse(made.text(parameters), "union.mlir");
  if (!file)
    return {};
  return checkTiles(**file, {made.heads, made.seqlenQ, made.seqlenK, made.qOrigin, made.kOrigin, parameters},
                    {made.blockM, made.blockN});
}

constexpr const char *kFarStride =
    "%w = attn.window [20, 0] %c = attn.causal %s = attn.stride k by 8 at 3 %f = attn.and %s, %c ";

} // namespace

TEST_CASE("a window and keys at a stride are two branches, each at its own stride") {
  auto file = parsed(unionText(std::string(kFarStride) + "%m = attn.or %f, %w"));
  REQUIRE(file->analysis().variants[0].branches.size() == 2);
  CHECK(branchOf(*file, 0).columnRate == 1);
  CHECK(branchOf(*file, 1).columnRate == 8);
  CHECK(file->analysis().isStructural());
  checkSamePairs(*file, 1, 61, 61, 0);
  checkSamePairs(*file, 1, 30, 75, 45);
}

TEST_CASE("masks on one lattice stay one branch") {
  for (const char *ops :
       {"%a = attn.window [3, 0] %b = attn.cols [4, 0] %m = attn.or %a, %b",
        "%a = attn.stride k by 4 at 1 %b = attn.stride q by 3 at 0 %c = attn.and %a, %b %m = attn.or %a, %c"})
    CHECK(parsed(unionText(ops))->analysis().variants[0].branches.size() == 1);
}

TEST_CASE("unions below segment, dilate and heads are told apart") {
  const std::string stride = kFarStride;
  for (const std::string &ops :
       {stride + "%u = attn.or %f, %w %m = attn.segment %u by [40]",
        stride + "%u = attn.or %f, %w %m = attn.dilate %u by 2 at 1",
        stride + "%u = attn.or %f, %w %m = attn.heads %w, %u, %f",
        stride + "%t = attn.stride k by 6 at 5 %g = attn.and %t, %c %m = attn.or %f, %w, %g",
        std::string(
            "%c = attn.causal %d = attn.dilate %c by 4 rule(block) %w = attn.window [2, 0] %m = attn.or %d, %w")}) {
    INFO(ops);
    auto file = parsed(unionText(ops));
    for (int64_t heads : {1, 3, 5})
      checkSamePairs(*file, heads, 67, 67, 0);
    checkSamePairs(*file, 3, 20, 90, 70);
  }
}

TEST_CASE("every library pattern keeps its pairs") {
  for (const std::string &path : libraryPatterns()) {
    INFO(path);
    checkSamePairs(*loaded(path), 6, 70, 70, 0);
  }
}

TEST_CASE("what is left of a segment beside other lattices is more pieces than are kept apart") {
  for (const char *ops :
       {"%f = attn.full %a = attn.dilate %f by 2 at 0 %b = attn.segment %a by [1] %r = attn.rows [0, 1] "
        "%s = attn.stride k by 5 at 0 %t = attn.segment %s by [2] %m = attn.or %b, %r, %t",
        "%x = attn.box [0, 1, 0, 1] %y = attn.segment %x by [2] %f = attn.full "
        "%a = attn.dilate %f by 2 at 0 %b = attn.dilate %f by 3 at 0 %c = attn.segment %b by [1] "
        "%r = attn.rows [0, 1] %m = attn.or %y, %a, %c, %r",
        "%f = attn.full %a = attn.dilate %f by 2 at 0 %b = attn.segment %a by [64] "
        "%c = attn.cols [1, 0] %s = attn.stride k by 5 at 0 %t = attn.segment %s by [128] "
        "%m = attn.or %b, %c, %t"}) {
    CAPTURE(ops);
    auto file = parsed(unionText(ops));
    for (attn::TileShape shape : {attn::TileShape{1, 1}, {5, 3}, {16, 8}})
      for (int64_t origin : {0, 70})
        CHECK(checkTiles(*file, {1, 150, 150 + origin, origin, 0, {}}, shape).account == "");
  }
}

TEST_CASE("random unions over several lattices keep their pairs in tiles that visit them") {
  const int64_t wanted = fromEnvironment("HEDDLE_TEST_ALL", 0) ? 5000 : 200;
  checkMany(wanted, 2 * wanted + 100, [](std::mt19937 &random, int64_t) { return latticesCase(random); }, checkCase);
}
