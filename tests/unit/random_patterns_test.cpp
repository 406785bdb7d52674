//===- random_patterns_test.cpp - random compositions against the definition -===//
// Pieces, ranges and counts of random patterns over every op, forward and transposed, at odd lengths and tile shapes.
// 500 patterns, and 250 with blocks that are kept whole; 10,000 and 5000 with HEDDLE_TEST_ALL=1; HEDDLE_TEST_SEED=n
// starts elsewhere. A failure is shrunk first.
//===----------------------------------------------------------------------===//
#include "dialect/Geometry/Grain.h"
#include "support/ManyCases.h"
#include "tests/unit/support/AnalysisChecks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <doctest/doctest.h>

using namespace heddle;
using heddle::test::checkMany;
using heddle::test::Outcome;
using heddle::test::RandomCase;
using heddle::test::shrunk;

namespace {

/// `check` of the pattern, its analysis and its problem.
template <class Check> Outcome checkWith(const RandomCase &made, Check check) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<attn::AttnDialect, mlir::arith::ArithDialect>();
  mlir::ScopedDiagnosticHandler quiet(&context, [](mlir::Diagnostic &) { return mlir::success(); });
  std::vector<int64_t> parameters;
  auto module = mlir::parseSourceString<mlir::ModuleOp>(made.text(parameters), &context);
  if (!module)
    return {};
  attn::PatternOp pattern = *module->getOps<attn::PatternOp>().begin();
  oracle::Problem problem{made.heads, made.seqlenQ, made.seqlenK, made.qOrigin, made.kOrigin, parameters};
  return check(pattern, attn::analyze(pattern), problem);
}

Outcome checkCase(const RandomCase &made) {
  return checkWith(made,
                   [&](attn::PatternOp pattern, const attn::PatternAnalysis &analysis, const oracle::Problem &problem) {
                     return Outcome{true, oracle::checkPattern(pattern, analysis, problem, {made.blockM, made.blockN})};
                   });
}

/// Applies to patterns that have a grain.
Outcome checkGrain(const RandomCase &made) {
  return checkWith(
      made, [](attn::PatternOp pattern, const attn::PatternAnalysis &analysis, const oracle::Problem &problem) {
        const int64_t grain = attn::grainOf(analysis);
        for (int64_t side = 2; side <= grain; ++side)
          if (grain % side == 0)
            if (std::string account = oracle::checkWholeTiles(pattern, analysis, problem, side); !account.empty())
              return Outcome{true, "grain " + std::to_string(grain) + ": " + account};
        return Outcome{grain > 1, ""};
      });
}

/// Applies to patterns that have a banded grain.
Outcome checkBandedGrain(const RandomCase &made) {
  return checkWith(made, [](attn::PatternOp pattern, const attn::PatternAnalysis &analysis,
                            const oracle::Problem &problem) {
    const attn::BandedGrain banded = attn::bandedGrainOf(analysis);
    for (int64_t side = 2; side <= banded.grain; ++side)
      if (banded.grain % side == 0)
        if (std::string account = oracle::checkTilesInBand(pattern, analysis, banded, problem, side); !account.empty())
          return Outcome{true, "banded grain " + std::to_string(banded.grain) + ": " + account};
    return Outcome{banded.grain > 1, ""};
  });
}

} // namespace

TEST_CASE("random compositions agree with the definition") {
  int64_t wanted = test::fromEnvironment("HEDDLE_TEST_ALL", 0) ? 10000 : 500;
  checkMany(
      wanted, 2 * wanted + 100, [](std::mt19937 &random, int64_t) { return test::randomCase(random, 4); }, checkCase);
}

TEST_CASE("unions over several lattices in segments agree with the definition") {
  int64_t wanted = test::fromEnvironment("HEDDLE_TEST_ALL", 0) ? 5000 : 200;
  auto make = [](std::mt19937 &random, int64_t) { return test::latticesCase(random); };
  checkMany(wanted, 2 * wanted + 100, make, checkCase);
}

TEST_CASE("random compositions with sizes as large as 32 bits hold agree with the definition") {
  int64_t wanted = test::fromEnvironment("HEDDLE_TEST_ALL", 0) ? 5000 : 300;
  auto extreme = [](std::mt19937 &random, int64_t) { return test::extremeCase(random, 3); };
  checkMany(wanted, 3 * wanted + 100, extreme, checkCase);
}

TEST_CASE("tiles inside the grain of random compositions are kept whole") {
  int64_t wanted = test::fromEnvironment("HEDDLE_TEST_ALL", 0) ? 5000 : 250;
  auto coarse = [](std::mt19937 &random, int64_t tried) { return test::coarseCase(random, 4, 2 + tried % 7); };
  checkMany(wanted, 6 * wanted + 100, coarse, checkGrain);
}

TEST_CASE("what tiles inside the banded grain of random compositions keep is what lies in the band") {
  int64_t wanted = test::fromEnvironment("HEDDLE_TEST_ALL", 0) ? 3000 : 120;
  auto banded = [](std::mt19937 &random, int64_t tried) { return test::bandedCase(random, 3, 2 + tried % 7); };
  checkMany(wanted, 30 * wanted + 100, banded, checkBandedGrain);
}

TEST_CASE("a disagreement is found") {
  // The checks themselves are tested on a wrong analysis: that of a causal pattern, for a full one.
  mlir::MLIRContext context;
  context.loadDialect<attn::AttnDialect>();
  auto parse = [&](const char *text) { return mlir::parseSourceString<mlir::ModuleOp>(text, &context); };
  auto causal = parse("attn.pattern @p() { %m = attn.causal attn.softmax union(%m) }");
  auto full = parse("attn.pattern @p() { %m = attn.full attn.softmax union(%m) }");
  attn::PatternOp one = *causal->getOps<attn::PatternOp>().begin(), other = *full->getOps<attn::PatternOp>().begin();
  CHECK(oracle::checkPattern(other, attn::analyze(one), {1, 5, 5, 0, 0, {}}, {2, 2}) != "");
  CHECK(oracle::checkPattern(one, attn::analyze(one), {1, 5, 5, 0, 0, {}}, {2, 2}) == "");
}

TEST_CASE("a failing case is shrunk to its core") {
  auto fails = [](const RandomCase &made) {
    std::vector<int64_t> parameters;
    std::string text = made.text(parameters);
    return text.find("attn.segment") != std::string::npos && text.find("attn.cols") != std::string::npos &&
           made.seqlenK > 6;
  };
  int64_t found = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    RandomCase made = test::randomCase(random, 4);
    if (!fails(made))
      continue;
    ++found;
    RandomCase smallest = shrunk(made, fails);
    std::vector<int64_t> parameters;
    std::string text = smallest.text(parameters);
    CAPTURE(text);
    CHECK(smallest.seqlenK == 7);
    CHECK(smallest.seqlenQ == 0);
    CHECK(smallest.heads == 1);
    CHECK(std::count(text.begin(), text.end(), '=') <= 4); // the two ops, an operand, and what joins them
  }
  CHECK(found > 3);
}
