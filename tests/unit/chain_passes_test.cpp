//===- chain_passes_test.cpp - passes over row lattices against the definition ---===//
// What the passes of a pattern keep together is what the pattern keeps, each pair as often; no pass splits rows more
// than its masks need; tiles of passes are exact; and the softmax that one pass hands to the next, computed on the CPU,
// is that of the pattern.
#include "support/Places.h"
#include "codegen/Cpu/CpuAttention.h"
#include "codegen/Cpu/JitPattern.h"
#include "codegen/Emit/PatternInfo.h"
#include "codegen/Schedule/AttentionSchedule.h"
#include "compiler/Pattern/PatternFunctions.h"
#include "compiler/Session/CompileForCpu.h"
#include "compiler/Oracle/AttentionOracle.h"
#include "support/AnalysisChecks.h"
#include "support/PatternFiles.h"
#include "support/RandomPattern.h"
#include "support/VerifyRows.h"

#include <doctest/doctest.h>

using namespace heddle;
using namespace heddle::test;

namespace {

struct Passes {
  explicit Passes(const PatternFile &file) : list(file.passes(whyNone)) {}
  std::string whyNone;
  std::vector<PatternFile::Pass> list;

  /// The classes of rows of each pass in one variant.
  std::vector<int64_t> rowRates(unsigned variant = 0) const {
    std::vector<int64_t> rates;
    for (const PatternFile::Pass &pass : list)
      rates.push_back(pass.analysis.variants[variant].forward.rowRate);
    return rates;
  }
};

using Rates = std::vector<int64_t>;

/// Masks on row lattices of many rates, each of them %x.
const char *const kMasks[] = {
    "%x = attn.window [20, 0]",
    "%x = attn.window [3, 5]",
    "%a = attn.cols [4, 0] %b = attn.causal %x = attn.and %a, %b",
    "%x = attn.rows [2, 3]",
    "%a = attn.causal %x = attn.dilate %a by 2 rule(every)",
    "%a = attn.full %x = attn.dilate %a by 4 at 1",
    "%a = attn.causal %x = attn.dilate %a by 4 rule(block)",
    "%a = attn.window [9, 0] %x = attn.dilate %a by 3 rule(modulo)",
    "%a = attn.stride q by 6 at 5 %b = attn.causal %x = attn.and %a, %b",
    "%a = attn.full %b = attn.dilate %a by 2 rule(block) %x = attn.segment %b by [16]",
    "%a = attn.stride k by 8 at 3 %b = attn.causal %x = attn.and %a, %b",
    "%a = attn.causal %b = attn.dilate %a by 2 rule(every) %x = attn.heads %a, %b",
};

/// The values of one op list, renamed so that several can stand in one pattern.
std::string named(std::string ops, const std::string &suffix) {
  for (size_t at = 0; (at = ops.find('%', at)) != std::string::npos; at += 2)
    ops.insert(at + 2, suffix);
  return ops + " ";
}

/// Pairs that the passes keep more or less often than the pattern.
int64_t wrongPairs(const PatternFile &file, const Passes &passes, int64_t heads, int64_t seqlenQ, int64_t seqlenK,
                   int64_t origin) {
  oracle::Problem problem{heads, seqlenQ, seqlenK, origin, 0, sizesFrom(file, 7)};
  problem.operands = maskOperands(file, heads, seqlenQ, seqlenK, problem.parameters);
  auto copies = [](const oracle::PatternOracle &definition, int64_t head, int64_t row, int64_t key) {
    int sum = 0;
    for (unsigned branch = 0; branch < definition.branchCount(); ++branch)
      sum += definition.keeps(branch, head, row, key);
    return sum;
  };
  oracle::PatternOracle whole(file.pattern(), problem);
  std::vector<oracle::PatternOracle> parts;
  for (const PatternFile::Pass &pass : passes.list)
    parts.emplace_back(pass.pattern, problem);
  int64_t wrong = 0;
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t row = 0; row < seqlenQ; ++row)
      for (int64_t key = 0; key < seqlenK; ++key) {
        int sum = 0;
        for (const oracle::PatternOracle &part : parts)
          sum += copies(part, head, row, key);
        wrong += sum != copies(whole, head, row, key);
      }
  return wrong;
}

void checkTiles(const PatternFile &file, const Passes &passes, int64_t heads, int64_t seqlen) {
  oracle::Problem problem{heads, seqlen, seqlen, 0, 0, sizesFrom(file, 7)};
  problem.operands = maskOperands(file, heads, seqlen, seqlen, problem.parameters);
  for (const PatternFile::Pass &pass : passes.list)
    for (attn::TileShape shape : {attn::TileShape{1, 1}, {5, 3}, {16, 8}})
      CHECK(oracle::checkPattern(pass.pattern, pass.analysis, problem, shape) == "");
}

/// Every row of one call, passes one after the other on the CPU, against the definition of the whole pattern.
void checkChainOnCpu(const PatternFile &file, const Passes &passes, const AttentionSizes &sizes) {
  AttentionInputs inputs = *randomAttentionInputs(sizes, DType::fp32, 3);
  oracle::Problem problem{sizes.heads, sizes.seqlenQ, sizes.seqlenK, 0, 0, sizesFrom(file, 7)};
  const float scale = 0.25f;
  HostTensor out = HostTensor::zeros(DType::fp32, {sizes.batch, sizes.seqlenQ, sizes.heads, sizes.valueDim});
  HostTensor lse = HostTensor::zeros(DType::fp32, {sizes.batch, sizes.heads, sizes.seqlenQ}), carryOut = out,
             carryLse = lse;
  for (size_t i = 0; i < passes.list.size(); ++i) {
    auto schedule = file.schedule(passes.list[i]);
    REQUIRE(schedule.isOk());
    auto jit = JitPattern::create(*schedule->functions, patternInfoOf(*schedule));
    REQUIRE(succeeded(jit));
    CpuCall args;
    for (Role role : {Role::q, Role::k, Role::v})
      args.give(role, inputs.of(role).data.data());
    args.give(Role::out, out.data.data());
    args.give(Role::lse, lse.data.data());
    if (i > 0) {
      args.give(Role::carryOut, carryOut.data.data());
      args.give(Role::carryLse, carryLse.data.data());
    }
    setSizes(sizes, args);
    args.scale = scale, args.blockM = 16, args.blockN = 8;
    args.params.assign(problem.parameters.begin(), problem.parameters.end());
    args.pattern = &*jit;
    REQUIRE(runAttention(args).isOk());
    carryOut = out, carryLse = lse;
  }
  oracle::AttentionOracle definition(file.pattern(), problem, inputs, scale);
  oracle::VerifyReport report = oracle::verifyRows(definition, out, lse, oracle::sampleRows(sizes, 100000));
  CHECK(report.maxError <= 2e-5);
  CHECK(report.maxLseError <= 1e-4);
}

} // namespace

TEST_CASE("a window and a dilated mask are two passes, the coarser first") {
  auto file =
      parsed(unionText("%w = attn.window [20, 0] %c = attn.causal %d = attn.dilate %c by 4 at 1 %m = attn.or %d, %w"));
  Passes passes(*file);
  CHECK(passes.whyNone == "");
  CHECK(passes.rowRates() == Rates{4, 1});
  CHECK(file->analysis().variants[0].forward.rowRate == 4);
  CHECK(passes.list[0].analysis.variants[0].forward.branches[0].columnRate == 4);
  // what the dilated mask keeps in the window stays here
  CHECK(passes.list[1].analysis.variants[0].branches[0].size() == 1);
}

TEST_CASE("passes keep what the pattern keeps, and their tiles are exact") {
  int64_t chained = 0;
  for (size_t a = 0; a < std::size(kMasks); ++a)
    for (size_t b = a + 1; b < std::size(kMasks); ++b)
      for (const char *end : {"%m = attn.or %xa, %xb attn.softmax union(%m) }", "attn.softmax union(%xa, %xb) }",
                              "attn.softmax lse(%xa, %xb) }"}) {
        const std::string text = "attn.pattern @p() { " + named(kMasks[a], "a") + named(kMasks[b], "b") + end;
        CAPTURE(text);
        auto file = parsed(text);
        Passes passes(*file);
        CHECK(passes.list.empty() == !passes.whyNone.empty());
        if (passes.list.empty())
          continue;
        ++chained;
        CHECK(wrongPairs(*file, passes, 3, 43, 43, 0) == 0);
        CHECK(wrongPairs(*file, passes, 2, 20, 50, 30) == 0);
        if (text.find("lse") == std::string::npos)
          checkTiles(*file, passes, 2, 37);
      }
  CHECK(chained > 100);
}

TEST_CASE("three lattices are three passes, unions below segment and heads are told apart") {
  const std::string three =
      named(kMasks[0], "a") + named(kMasks[4], "b") + named(kMasks[5], "c") + "%u = attn.or %xa, %xc, %xb ";
  for (const std::string &ops :
       {three + "%m = attn.or %u, %u", three + "%m = attn.segment %u by [24]", three + "%m = attn.heads %u, %xa, %u"}) {
    CAPTURE(ops);
    auto file = parsed(unionText(ops));
    Passes passes(*file);
    CHECK(passes.rowRates() == Rates{4, 2, 1});
    CHECK(wrongPairs(*file, passes, 4, 51, 51, 0) == 0);
    checkTiles(*file, passes, 3, 37);
  }
}

TEST_CASE("library patterns: the passes of those that have them") {
  int64_t chained = 0;
  for (const std::string &path : libraryPatterns()) {
    CAPTURE(path);
    auto file = loaded(path);
    Passes passes(*file);
    if (passes.list.empty()) {
      CHECK(passes.whyNone == "all rows lie on one lattice");
      continue;
    }
    ++chained;
    CHECK(wrongPairs(*file, passes, 6, 70, 70, 0) == 0);
    for (size_t i = 1; i < passes.list.size(); ++i)
      CHECK(passes.rowRates()[i] < passes.rowRates()[i - 1]);
  }
  CHECK(chained >= 2); // those of LongNet and LongViT
}

TEST_CASE("random compositions as passes") {
  int64_t chained = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    RandomCase made = randomCase(random, 3);
    std::vector<int64_t> parameters;
    auto file = PatternFile::parse(made.text(parameters), "random.mlir");
    if (!file)
      continue;
    Passes passes(**file);
    chained += !passes.list.empty();
    if (!passes.list.empty())
      CHECK_MESSAGE(wrongPairs(**file, passes, 2, 33, 33, 0) == 0, made.describe());
  }
  CHECK(chained > 20);
}

TEST_CASE("the softmax goes from pass to pass on the CPU") {
  const char *masks =
      "%w = attn.window [5, 0] %f = attn.full %d = attn.dilate %f by 4 at 1 %s = attn.segment %d by [24] ";
  for (const char *end :
       {"%m = attn.or %w, %s attn.softmax union(%m) }", "attn.softmax lse(%w, %s) }",
        "attn.softmax lse(%s, %w) sink 0.5 }",
        "%t = attn.scaled %u = attn.softcap %t by 2.0 attn.softmax lse(%w, %s) of %u }",
        "%n = attn.not %w %c = attn.window [2, 0] %e = attn.and %c, %n attn.softmax lse(%s, %e, %w) }"}) {
    auto file = parsed(std::string("attn.pattern @p() { ") + masks + end);
    Passes passes(*file);
    REQUIRE(passes.list.size() == 2);
    checkChainOnCpu(*file, passes, {2, 67, 67, 4, 2, 16, 24});
  }
  for (const char *name : {"/longnet.mlir", "/longnet_tiny.mlir"}) {
    auto file = loaded(test::places().patterns + name);
    checkChainOnCpu(*file, Passes(*file), {1, 130, 130, 4, 4, 8, 8});
  }
}

TEST_CASE("patterns of one pass say why") {
  auto whyNone = [](const std::string &text) { return Passes(*parsed(text)).whyNone; };
  CHECK(whyNone(unionText("%m = attn.causal")) == "all rows lie on one lattice");
  CHECK(whyNone(unionText(
            "%a = attn.full %b = attn.dilate %a by 4 at 1 %c = attn.dilate %a by 4 at 2 %m = attn.or %b, %c")) ==
        "all rows lie on one lattice");
  std::string many = "attn.pattern @p() { %t = attn.stride q by 2 at 0 ", branches;
  for (int rate = 2; rate <= 10; ++rate) {
    many += "%d" + std::to_string(rate) + " = attn.stride q by " + std::to_string(rate) + " at 0 ";
    branches += (rate > 2 ? ", %d" : "%d") + std::to_string(rate);
  }
  CHECK(whyNone(many + "attn.softmax lse(" + branches + ") }") ==
        "at least 9 row lattices, at most 8 passes are chained");
  CHECK(whyNone(unionText("%r = attn.random count 2 seed 1 %b = attn.blocks %r by [8] %t = attn.stride q by 2 at 0 "
                          "%m = attn.or %b, %t"))
            .find("a pass would be evaluated pair by pair") == 0);
}
