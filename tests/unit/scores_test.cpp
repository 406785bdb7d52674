// Chains of score ops: the emitted text and the compiled functions against the definition, derivatives against finite
// differences of the definition, whole rows on the CPU, and what a pattern without a chain must not notice.
#include "codegen/Cpu/JitPattern.h"
#include "codegen/Emit/EmitPattern.h"
#include "codegen/Emit/PatternInfo.h"
#include "codegen/Nvrtc/Compiler.h"
#include "codegen/Nvrtc/NvrtcLibrary.h"
#include "codegen/Skeletons/Shared/Skeleton.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Pattern/PatternFunctions.h"
#include "compiler/Session/PreparedPattern.h"
#include "compiler/Oracle/ScoreOracle.h"
#include "support/AttentionCase.h"
#include "support/FirstSource.h"
#include "support/HostPattern.h"
#include "support/ServedShapes.h"
#include <doctest/doctest.h>
#include <memory>

using namespace heddle;
using namespace heddle::test;

namespace {

std::unique_ptr<PatternFile> parsed(const std::string &text) {
  auto file = PatternFile::parse(text, "test.mlir");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  return file.take();
}

// A causal pattern whose scores are %t.
std::string chainText(const std::string &chain, const std::string &arguments = "") {
  return "attn.pattern @p(" + arguments + ") {\n%m = attn.causal\n%s = attn.scaled\n" + chain +
         "\nattn.softmax union(%m) of %t\n}";
}

struct ChainCase {
  const char *name, *chain, *arguments;
  double textError; // of the text for a device, absolute, beside the rounding of fp32: of caps, 6e-7 of the cap
};

const std::vector<ChainCase> &chains() {
  static const std::vector<ChainCase> cases = {
      {"softcap", "%t = attn.softcap %s by 20.0", "", 1.2e-5},
      {"usual softcap", "%t = attn.softcap %s by 50.0", "", 3e-5},
      {"largest fast softcap", "%t = attn.softcap %s by 512.0", "", 3.1e-4},
      {"large softcap", "%t = attn.softcap %s by 1000.0", "", 0},
      {"run-time softcap", "%t = attn.softcap %s by %cap", "%cap: f32 {attn.default = 7.5 : f32, attn.min = 0.1 : f32}",
       0},
      {"bounded softcap", "%t = attn.softcap %s by %cap",
       "%half: i32 {attn.default = 3 : i32}, %cap: f32 {attn.default = 7.5 : f32, attn.min = 0.1 : f32, attn.max = 8.0 "
       ": f32}",
       5e-6},
      {"alibi", "%t = attn.alibi %s", "", 0},
      {"softcap, then alibi", "%u = attn.softcap %s by 5.0 %t = attn.alibi %u", "", 3e-6},
      {"alibi, then softcap", "%u = attn.alibi %s %t = attn.softcap %u by 5.0", "", 3e-6},
  };
  return cases;
}

// A score_map of %s with this body; %y is what it yields.
std::string mapText(const std::string &body) {
  return "%t = attn.score_map %s {\n^bb0(%x: f32, %b: i32, %h: i32, %q: i32, %k: i32):\n" + body +
         "\nattn.yield %y : f32\n}";
}

// Scores for which every function below is smooth and has a value.
const std::string kPositive =
    "%two = arith.constant 2.0 : f32\n%c = arith.constant 0.01 : f32\n%w = arith.mulf %x, %c : f32\n"
    "%v = math.tanh %w : f32\n%p = arith.addf %v, %two : f32\n";

// name, the op or ops that make %z of %p, which lies in [1, 3], and %w.
const std::vector<std::pair<const char *, const char *>> kFunctions = {
    {"absf", "%z = math.absf %p : f32"},
    {"cos", "%z = math.cos %p : f32"},
    {"sin", "%z = math.sin %p : f32"},
    {"erf", "%z = math.erf %v : f32"},
    {"exp", "%z = math.exp %v : f32"},
    {"exp2", "%z = math.exp2 %v : f32"},
    {"expm1", "%z = math.expm1 %v : f32"},
    {"floor", "%n = math.floor %two : f32 %z = arith.addf %n, %v : f32"},
    {"ceil", "%n = math.ceil %two : f32 %z = arith.subf %v, %n : f32"},
    {"fma", "%z = math.fma %p, %v, %p : f32"},
    {"log", "%z = math.log %p : f32"},
    {"log1p", "%z = math.log1p %p : f32"},
    {"log2", "%z = math.log2 %p : f32"},
    {"powf", "%z = math.powf %p, %v : f32"},
    {"rsqrt", "%z = math.rsqrt %p : f32"},
    {"sqrt", "%z = math.sqrt %p : f32"},
    {"divf", "%z = arith.divf %v, %p : f32"},
    {"negf", "%z = arith.negf %p : f32"},
    {"maximumf", "%z = arith.maximumf %p, %c : f32"},
    {"minimumf", "%z = arith.minimumf %p, %c : f32"},
    {"select", "%less = arith.cmpf olt, %p, %c : f32 %z = arith.select %less, %c, %p : f32"},
    {"positions", "%d = arith.subi %q, %k : i32 %seven = arith.constant 7 : i32 %r = arith.remsi %d, %seven : i32 "
                  "%f = arith.sitofp %r : i32 to f32 %z = arith.mulf %f, %v : f32"},
    {"heads",
     "%f = arith.sitofp %h : i32 to f32 %e = arith.negf %f : f32 %g = math.exp2 %e : f32 %z = arith.mulf %g, %p : f32"},
};

// One chain in all its forms.
struct Chain {
  explicit Chain(const std::string &text) : file(parsed(text)) {
    auto built = functionsOf(*file);
    REQUIRE(built.isOk());
    info = built->info;
    functions = std::move(built->module);
    auto values = file->bindParameters({});
    REQUIRE_MESSAGE(values.isOk(), values.status().message());
    parameters = *values;
  }
  JitPattern compile() const {
    auto jit = JitPattern::create(*functions, *info);
    REQUIRE(succeeded(jit));
    return *jit;
  }
  JitPattern compileBackward() const {
    auto backward = functionsOf(*file, Walk::both);
    REQUIRE(backward.isOk());
    auto jit = JitPattern::create(*backward->module, *backward->info);
    REQUIRE(succeeded(jit));
    return *jit;
  }
  oracle::Problem problem(int64_t heads) const { return {heads, 64, 64, 0, 0, parameters}; }
  JitContext context(int heads) const {
    JitContext context;
    context.heads = heads;
    context.seqlenQ = context.seqlenK = 64;
    std::copy(parameters.begin(), parameters.end(), context.params.begin());
    return context;
  }

  std::unique_ptr<PatternFile> file;
  std::shared_ptr<const PatternInfo> info;
  mlir::OwningOpRef<mlir::ModuleOp> functions;
  std::vector<int64_t> parameters;
};

const std::vector<float> kScores = {-300, -40.5f, -8, -2.25f, -0.5f, -1e-3f, 0, 1e-3f, 0.3f, 1, 3.75f, 11, 64, 900};
struct Pair {
  int q, k;
};
const std::vector<Pair> kPairs = {{0, 0}, {9, 4}, {4, 9}, {63, 0}, {1000000, 17}};

// Calls `check(context, problem, pair, score)` for many numbers of heads, heads, pairs and scores.
template <class Check> void forEachScore(const Chain &chain, Check check) {
  for (int heads : {1, 2, 3, 6, 8, 12, 40}) {
    oracle::ScoreOracle definition(chain.file->pattern(), chain.problem(heads));
    JitContext context = chain.context(heads);
    for (context.head = 0; context.head < heads; ++context.head)
      for (Pair pair : kPairs)
        for (float score : kScores)
          check(context, definition, oracle::ScorePlace{0, context.head, pair.q, pair.k}, score);
  }
}

// A handful of roundings of the largest numbers on the way.
double roundingOf(double score, double changed, Pair pair) {
  return 8 * 0x1p-24 * (std::abs(score) + std::abs(changed) + std::abs(pair.q - pair.k));
}

} // namespace

TEST_CASE("scores in the emitted text and in the compiled functions are those of the definition") {
  for (const ChainCase &each : chains()) {
    CAPTURE(each.name);
    Chain chain(chainText(each.chain, each.arguments));
    REQUIRE(chain.info->hasScore);
    auto text = emitPatternFunctions(*chain.functions, *chain.info);
    REQUIRE(succeeded(text));
    HostPattern host(*text, *chain.info);
    JitPattern jit = chain.compile();
    CHECK(host.counts().hasScore);
    int wrong = 0, seen = 0;
    forEachScore(chain,
                 [&](const JitContext &c, const oracle::ScoreOracle &definition, oracle::ScorePlace at, float score) {
                   const double expected = definition.score(at, double(score));
                   const double rounding = roundingOf(score, expected, {int(at.q), int(at.k)});
                   wrong += !(std::abs(host.score(c, at.q, at.k, score) - expected) <= each.textError + rounding);
                   wrong += !(std::abs(jit.score(c, at.q, at.k, score) - expected) <= rounding);
                   seen += definition.score(at, double(score)) != double(score);
                 });
    CHECK(wrong == 0);
    CHECK(seen > 100);
  }
}

TEST_CASE("derivatives are the slopes of the definition") {
  for (const ChainCase &each : chains()) {
    CAPTURE(each.name);
    Chain chain(chainText(each.chain, each.arguments));
    JitPattern jit = chain.compileBackward();
    double worst = 0;
    forEachScore(chain, [&](const JitContext &c, const oracle::ScoreOracle &definition, oracle::ScorePlace at,
                            float score) {
      // A slope lies in [0, 1]; fp32 gives each factor to 2^-21; the central difference is off by step^2
      // and by 2^-53 of what it subtracts, over the step.
      const double step = 1e-5 * std::max(1.0, std::abs(double(score)));
      const double subtracted = std::abs(definition.score(at, double(score)));
      const double allowed =
          0x1p-20 + roundingOf(score, subtracted, {int(at.q), int(at.k)}) + step * step + 0x1p-51 * subtracted / step;
      const double error = std::abs(jit.scoreGradient(c, at.q, at.k, score) - definition.slope(at, double(score)));
      worst = std::max(worst, error / allowed);
    });
    CHECK(worst <= 1);
  }
}

TEST_CASE("derivatives in the emitted text are those of the compiled functions, and only texts of backward passes have "
          "them") {
  for (const ChainCase &each : chains()) {
    CAPTURE(each.name);
    Chain chain(chainText(each.chain, each.arguments));
    auto forward = emitPatternFunctions(*chain.functions, *chain.info);
    REQUIRE(succeeded(forward));
    CHECK(forward->find("radient") == std::string::npos);
    auto backward = functionsOf(*chain.file, Walk::both);
    REQUIRE(backward.isOk());
    auto text = emitPatternFunctions(*backward->module, *backward->info);
    REQUIRE(succeeded(text));
    HostPattern host(*text, *backward->info);
    JitPattern jit = chain.compileBackward();
    double worst = 0;
    forEachScore(chain, [&](const JitContext &c, const oracle::ScoreOracle &, oracle::ScorePlace at, float score) {
      worst = std::max(
          worst, double(std::abs(host.scoreGradient(c, at.q, at.k, score) - jit.scoreGradient(c, at.q, at.k, score))));
    });
    CHECK(worst <= 0x1p-20);
  }
  const std::string branches = "attn.pattern @p() { %a = attn.causal %b = attn.window [3, 0] attn.softmax lse(%a, %b) ";
  for (bool isDetached : {false, true}) {
    auto file = parsed(branches + (isDetached ? "gradient(detached) }" : "}"));
    auto functions = functionsOf(*file, Walk::both);
    REQUIRE(functions.isOk());
    auto text = emitPatternFunctions(*functions->module, *functions->info);
    REQUIRE(succeeded(text));
    HostPattern host(*text, *functions->info);
    CHECK(host.isDetached() == isDetached);
    CHECK(host.scoreGradient(JitContext(), 3, 2, 0.5f) == 1.0f);
  }
}

TEST_CASE("a softcap keeps the digits of small scores, its slope those of large ones") {
  for (const double cap : {50.0, 1000.0}) {
    CAPTURE(cap);
    Chain chain(chainText("%t = attn.softcap %s by " + std::to_string(cap)));
    JitPattern jit = chain.compileBackward();
    for (double part = 1e-6; part < 20; part *= 1.1) { // of the cap; exp(-40) is no subnormal number yet
      const float score = static_cast<float>(part * cap);
      const double exact = double(score) / cap, tangent = std::tanh(exact), slope = 1 / std::pow(std::cosh(exact), 2);
      CHECK(std::abs(jit.score(chain.context(1), 0, 0, score) - cap * tangent) <= 6 * 0x1p-24 * cap * tangent);
      CHECK(std::abs(jit.scoreGradient(chain.context(1), 0, 0, score) - slope) <= (8 + 4 * exact) * 0x1p-24 * slope);
    }
  }
}

TEST_CASE("every op of a score_map: its value and its derivative") {
  for (const auto &function : kFunctions) {
    CAPTURE(function.first);
    Chain chain(chainText(mapText(kPositive + function.second + "\n%y = arith.addf %z, %w : f32")));
    JitPattern jit = chain.compileBackward();
    double worst = 0, worstSlope = 0;
    forEachScore(chain, [&](const JitContext &c, const oracle::ScoreOracle &definition, oracle::ScorePlace at,
                            float score) {
      // Numbers on the way are below 32, slopes below 1; a handful of roundings of each.
      const double step = 1e-5 * std::max(1.0, std::abs(double(score)));
      const double value = definition.score(at, double(score));
      worst = std::max(worst, std::abs(jit.score(c, at.q, at.k, score) - value) / (16 * 0x1p-24 * 32));
      worstSlope =
          std::max(worstSlope, std::abs(jit.scoreGradient(c, at.q, at.k, score) - definition.slope(at, double(score))) /
                                   (16 * 0x1p-24 + step * step + 0x1p-51 * 32 / step));
    });
    CHECK(worst <= 1);
    CHECK(worstSlope <= 1);
  }
}

TEST_CASE("a region takes run-time numbers of the pattern") {
  Chain chain(chainText("%t = attn.score_map %s with %heat, %far : f32, i32 {\n"
                        "^bb0(%x: f32, %b: i32, %h: i32, %q: i32, %k: i32, %temperature: f32, %n: i32):\n"
                        "%y = arith.divf %x, %temperature : f32\n%f = arith.sitofp %n : i32 to f32\n"
                        "%z = arith.addf %y, %f : f32\nattn.yield %z : f32\n}",
                        "%far: i32 {attn.default = 3 : i32}, %heat: f32 {attn.default = -0.5 : f32}"));
  CHECK(chain.compile().score(chain.context(2), 5, 2, 8.0f) == doctest::Approx(-13));
  oracle::ScoreOracle definition(chain.file->pattern(), chain.problem(2));
  CHECK(definition.score({0, 0, 5, 2}, 8.0) == doctest::Approx(-13));
  auto text = emitPatternFunctions(*chain.functions, *chain.info);
  REQUIRE(succeeded(text));
  CHECK(HostPattern(*text, *chain.info).score(chain.context(2), 5, 2, 8.0f) == doctest::Approx(-13));
}

TEST_CASE("a region that gives -inf is a mask; a row of nothing else is an empty row") {
  // Keeps keys at even distances of even queries.
  Chain chain(
      chainText(mapText("%d = arith.subi %q, %k : i32\n%one = arith.constant 1 : i32\n%o = arith.ori %d, %q : i32\n"
                        "%r = arith.andi %o, %one : i32\n%zero = arith.constant 0 : i32\n"
                        "%odd = arith.cmpi ne, %r, %zero : i32\n%never = arith.constant 0xFF800000 : f32\n"
                        "%y = arith.select %odd, %never, %x : f32")));
  CaseShape shape;
  shape.seqlenQ = shape.seqlenK = 53;
  AttentionCase attention(shape, 5);
  HandPattern rule{
      chain.info, "", [](const JitContext &, int, int q, int k) { return k <= q && (q | (q - k)) % 2 == 0; }, {}};
  REQUIRE(runAttention(chain.compile(), attention.args()).isOk());
  AttentionCase::Errors errors = attention.compare(rule);
  CHECK(errors.out <= 1.0);
  CHECK(errors.lse <= 1e-4);
  CHECK(attention.lse[1] == -INFINITY);
}

TEST_CASE("slopes of ALiBi for heads that are a power of two and for others") {
  CHECK(oracle::alibiSlopes(8)[0] == doctest::Approx(0.5));
  CHECK(oracle::alibiSlopes(8)[7] == doctest::Approx(1.0 / 256));
  const std::vector<double> twelve = oracle::alibiSlopes(12);
  CHECK(twelve[8] == doctest::Approx(0.70710678));
  CHECK(twelve[11] == doctest::Approx(0.08838835));
}

TEST_CASE("rows on the CPU are those of the definition: odd lengths, one key, no key, grouped heads, far positions") {
  struct Sizes {
    int batch, heads, kvHeads, seqlenQ, seqlenK, qOrigin, kOrigin;
  };
  for (const ChainCase &each : chains()) {
    Chain chain(chainText(each.chain, each.arguments));
    JitPattern jit = chain.compile();
    for (Sizes s : {Sizes{1, 1, 1, 1, 1, 0, 0},
                    {2, 6, 3, 67, 67, 0, 0},
                    {1, 4, 1, 20, 90, 70, 0},
                    {1, 3, 3, 45, 30, 0, 20},
                    {1, 2, 2, 5, 0, 0, 0}}) {
      CAPTURE(each.name);
      CAPTURE(s.seqlenQ);
      CaseShape shape;
      shape.batch = s.batch, shape.heads = s.heads, shape.kvHeads = s.kvHeads;
      shape.seqlenQ = s.seqlenQ, shape.seqlenK = s.seqlenK, shape.qOrigin = s.qOrigin, shape.kOrigin = s.kOrigin;
      AttentionCase attention(shape, 11);
      oracle::Problem problem{s.heads, s.seqlenQ, s.seqlenK, s.qOrigin, s.kOrigin, chain.parameters};
      oracle::ScoreOracle definition(chain.file->pattern(), problem);
      HandPattern rule{chain.info, "", [](const JitContext &, int, int q, int k) { return k <= q; }, {}};
      rule.scores = [&](const JitContext &c, int q, int k, double score) {
        return definition.score({c.batch, c.head, q, k}, score);
      };
      CpuCall args = attention.args();
      args.params.assign(chain.parameters.begin(), chain.parameters.end());
      args.blockM = 32, args.blockN = 24;
      REQUIRE(runAttention(jit, args).isOk());
      AttentionCase::Errors errors = attention.compare(rule);
      CHECK(errors.out <= 1.0);
      CHECK(errors.lse <= 1e-4);
    }
  }
}

TEST_CASE("values of one give one under any chain") {
  for (const ChainCase &each : chains()) {
    CAPTURE(each.name);
    Chain chain(chainText(each.chain, each.arguments));
    CaseShape shape;
    shape.seqlenQ = shape.seqlenK = 61;
    AttentionCase attention(shape, 3);
    attention.fillValues(1);
    CpuCall args = attention.args();
    args.params.assign(chain.parameters.begin(), chain.parameters.end());
    REQUIRE(runAttention(chain.compile(), args).isOk());
    for (int row = 0; row < shape.seqlenQ; ++row)
      for (int head = 0; head < shape.heads; ++head)
        CHECK(attention.out.get(0, row, head, 0) == doctest::Approx(1).epsilon(1e-6));
  }
}

TEST_CASE("scaled scores alone are no chain: the same functions, and the same digest") {
  auto plain = parsed("attn.pattern @p() { %m = attn.causal attn.softmax union(%m) }");
  auto scaled = parsed("attn.pattern @p() { %m = attn.causal %s = attn.scaled attn.softmax union(%m) of %s }");
  auto first = preparePattern(*plain), second = preparePattern(*scaled);
  REQUIRE(first.isOk());
  REQUIRE(second.isOk());
  CHECK(first->functions == second->functions);
  CHECK(first->functions.usual.find("pattern_score") == std::string::npos);
  CHECK(first->digest == second->digest);
  auto capped = preparePattern(*parsed(chainText("%t = attn.softcap %s by 20.0")));
  REQUIRE(capped.isOk());
  CHECK(capped->digest != first->digest);
  CHECK(capped->functions.usual.find("pattern_score") != std::string::npos);
}

TEST_CASE("kernels without a chain take nothing from score_chain.cuh") {
  if (!NvrtcLibrary::shared()) {
    MESSAGE("skipped: no NVRTC");
    return;
  }
  auto prepared = preparePattern(*parsed("attn.pattern @p() { %m = attn.causal attn.softmax union(%m) }"));
  REQUIRE(prepared.isOk());
  for (const char *name : {"sm90_forward", "portable_forward"})
    for (int64_t headDim : {64, 128}) {
      KernelShape shape = test::shapeServedBy(name);
      shape.headDim = shape.valueDim = headDim;
      auto source = test::firstSource(*prepared, shape, std::string("skeleton=") + name);
      REQUIRE_MESSAGE(source.isOk(), source.status().message());
      KernelSource bare = *source;
      int replaced = 0;
      for (SourceHeader &header : bare.headers)
        if (header.name == "Forward/score_chain.cuh") {
          header.text = "#pragma once\n#include \"Forward/score_mask.cuh\"\nnamespace heddle {\n"
                        "template <class K> DEV float weightScale(float scale) { return scale; }\n"
                        "template <class K>\n"
                        "DEV void applyScores(Scores<K> &, const MaskScope<K> &, const KeyTile &, int, float) {}\n}\n";
          ++replaced;
        }
      CHECK(replaced == 1);
      auto with = compile(*source, shape.archName()), without = compile(bare, shape.archName());
      REQUIRE_MESSAGE(with.isOk(), with.status().message());
      REQUIRE_MESSAGE(without.isOk(), without.status().message());
      CHECK(with->ptx == without->ptx);
    }
}
