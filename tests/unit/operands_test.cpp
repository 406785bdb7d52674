// Tensors that patterns read: the emitted text, the compiled functions and whole rows against the definition, and the
// values that --operand refuses.
#include "codegen/Config/PatternRates.h"
#include "codegen/Cpu/JitPattern.h"
#include "codegen/Emit/EmitPattern.h"
#include "codegen/Emit/PatternInfo.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Pattern/PatternFunctions.h"
#include "compiler/Session/PreparedPattern.h"
#include "compiler/Io/Safetensors.h"
#include "compiler/Oracle/ScoreOracle.h"
#include "support/AttentionCase.h"
#include "support/HostPattern.h"
#include <doctest/doctest.h>
#include <filesystem>
#include <unistd.h>

using namespace heddle;
using namespace heddle::test;

namespace {

// Two operands, a size between them, and scores that use both.
std::string scoresText(const std::string &biasType, const std::string &tableType) {
  return "attn.pattern @p(%bias: " + biasType + ", %reach: i32 {attn.default = 5 : i32}, %table: " + tableType +
         ") {\n%m = attn.causal\n%s = attn.scaled\n%u = attn.bias %s, %bias : " + biasType +
         "\n%t = attn.relative %u, %table at [%reach] : " + tableType + "\nattn.softmax union(%m) of %t\n}";
}

struct TypeCase {
  const char *bias, *table;
};
const std::vector<TypeCase> kTypes = {
    {"memref<?x?x?x?xf32>", "memref<?x?xf32>"},   {"memref<1x?x?x?xbf16>", "memref<?x9xf16>"},
    {"memref<?x1x?x?xf16>", "memref<1x?xbf16>"},  {"memref<1x1x1x?xf32>", "memref<1x1xf32>"},
    {"memref<?x?x?x1xbf16>", "memref<?x4xbf16>"}, {"memref<1x1x1x1xf32>", "memref<?x255xf32>"},
};

// One pattern with tensors in all its forms, for one call.
struct Bound {
  Bound(const std::string &text, ProblemShape given) : shape(std::move(given)) {
    auto parsed = PatternFile::parse(text, "test.mlir");
    REQUIRE_MESSAGE(parsed.isOk(), parsed.status().message());
    file = parsed.take();
    shape.parameters = *file->bindParameters({});
    Status bound = bindOperands(*file, {{}, {}, OperandSources::Missing::make}, shape);
    REQUIRE_MESSAGE(bound.isOk(), bound.message());
    auto built = functionsOf(*file);
    REQUIRE(built.isOk());
    info = built->info;
    functions = std::move(built->module);
    sizes = sizesOf(*file, shape);
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
  std::string text() const {
    auto emitted = emitPatternFunctions(*functions, *info);
    REQUIRE(succeeded(emitted));
    return *emitted;
  }
  oracle::Problem problem() const {
    return {sizes.heads, sizes.seqlenQ, sizes.seqlenK, sizes.qOrigin, sizes.kOrigin, shape.parameters, shape.operands};
  }
  JitContext context() const {
    JitContext context;
    context.heads = int32_t(sizes.heads);
    context.seqlenQ = int32_t(sizes.seqlenQ), context.seqlenK = int32_t(sizes.seqlenK);
    context.qOrigin = int32_t(sizes.qOrigin), context.kOrigin = int32_t(sizes.kOrigin);
    std::copy(shape.parameters.begin(), shape.parameters.end(), context.params.begin());
    size_t next = 0;
    for (const OperandTensor &tensor : shape.operands)
      if (tensor)
        context.operands[next++] = tensor.address();
    return context;
  }
  std::vector<const void *> pointers() const {
    const JitContext made = context();
    return std::vector<const void *>(made.operands.begin(), made.operands.begin() + int64_t(info->operands.size()));
  }

  ProblemShape shape;
  std::unique_ptr<PatternFile> file;
  std::shared_ptr<const PatternInfo> info;
  mlir::OwningOpRef<mlir::ModuleOp> functions;
  attn::ProblemSizes sizes;
};

ProblemShape shapeOf(int64_t batch, int64_t heads, int64_t kvHeads, int64_t seqlenQ, int64_t seqlenK,
                     int64_t kOrigin = 0) {
  ProblemShape shape;
  shape.batch = batch, shape.heads = heads, shape.kvHeads = kvHeads;
  shape.seqlenQ = seqlenQ, shape.seqlenK = seqlenK, shape.kOrigin = kOrigin;
  return shape;
}

// Calls check(context, place) for every pair of every head.
template <class Check> void forEachPair(const Bound &bound, Check check) {
  JitContext c = bound.context();
  for (c.batch = 0; c.batch < bound.shape.batch; ++c.batch)
    for (c.head = 0; c.head < c.heads; ++c.head)
      for (int q = 0; q < c.seqlenQ; ++q)
        for (int k = 0; k < c.seqlenK; ++k)
          check(c, oracle::ScorePlace{c.batch, c.head, c.qOrigin + q, c.kOrigin + k});
}

// A file of the process's own that is gone when this is.
struct TemporaryFile {
  std::string path =
      (std::filesystem::temp_directory_path() / ("heddle-operands-" + std::to_string(getpid()) + ".safetensors"))
          .string();
  ~TemporaryFile() { std::filesystem::remove(path); }
};

} // namespace

TEST_CASE("scores that tensors change, in the emitted text and in the compiled functions") {
  for (const TypeCase &types : kTypes) {
    CAPTURE(types.bias);
    Bound bound(scoresText(types.bias, types.table), shapeOf(2, 3, 3, 11, 14, 3));
    CHECK(bound.info->operands.size() == 2);
    HostPattern host(bound.text(), *bound.info);
    JitPattern jit = bound.compileBackward();
    oracle::ScoreOracle definition(bound.file->pattern(), bound.problem());
    int wrong = 0, changed = 0;
    forEachPair(bound, [&](const JitContext &c, oracle::ScorePlace at) {
      const double expected = definition.score(at, 0.75);
      wrong += !(std::abs(host.score(c, int(at.q), int(at.k), 0.75f) - expected) <= 1e-5);
      wrong += !(std::abs(jit.score(c, int(at.q), int(at.k), 0.75f) - expected) <= 1e-5);
      wrong += jit.scoreGradient(c, int(at.q), int(at.k), 0.75f) != 1.0f;
      wrong += !(std::abs(definition.slope(at, 0.75) - 1) <= 1e-9);
      changed += expected != 0.75;
    });
    CHECK(wrong == 0);
    CHECK(changed > 900);
  }
}

TEST_CASE("rows and keys beyond the ends, which kernels score as well, read elements that exist") {
  for (const TypeCase &types : kTypes) {
    Bound bound(scoresText(types.bias, types.table), shapeOf(1, 2, 2, 7, 5));
    JitPattern jit = bound.compile();
    JitContext c = bound.context();
    for (int beyond : {0, 1, 200, 1000000}) {
      CHECK(jit.score(c, 6 + beyond, 2, 0.5f) - 0.5f == doctest::Approx(jit.score(c, 6 + beyond, 2, 0.0f)));
      CHECK(std::isfinite(jit.score(c, 3, 4 + beyond, 0.5f)));
    }
  }
}

TEST_CASE("16-bit floats are widened exactly, whatever their bits") {
  for (const char *element : {"bf16", "f16"}) {
    CAPTURE(element);
    const bool isBf16 = std::string(element) == "bf16";
    const std::string type = std::string("memref<1x1x1x?x") + element + ">";
    ProblemShape shape = shapeOf(1, 1, 1, 1, 65536);
    Bound bound("attn.pattern @p(%bias: " + type +
                    ") {\n%m = attn.full\n%s = attn.scaled\n%t = attn.bias %s, %bias : " + type +
                    "\nattn.softmax union(%m) of %t\n}",
                shape);
    std::vector<std::byte> bytes(2 * 65536);
    for (uint32_t i = 0; i < 65536; ++i)
      bytes[2 * i] = std::byte(i & 255), bytes[2 * i + 1] = std::byte(i >> 8);
    bound.shape.operands[0].data = std::make_shared<const std::vector<std::byte>>(bytes);
    JitPattern jit = bound.compile();
    HostPattern host(bound.text(), *bound.info);
    const JitContext c = bound.context();
    int wrong = 0;
    for (int i = 0; i < 65536; ++i) {
      const float expected = isBf16 ? bf16ToFloat(uint16_t(i)) : fp16ToFloat(uint16_t(i));
      auto differs = [&](float got) { return std::isnan(expected) ? !std::isnan(got) : got != expected; };
      wrong += differs(jit.score(c, 0, i, 0.0f)) + differs(host.score(c, 0, i, 0.0f));
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("rows on the CPU are those of the definition: odd lengths, one key, no key, grouped heads") {
  for (const TypeCase &types : kTypes)
    for (ProblemShape sizes : {shapeOf(1, 1, 1, 1, 1), shapeOf(2, 6, 3, 67, 67), shapeOf(1, 4, 1, 20, 90),
                               shapeOf(2, 2, 2, 45, 30, 20), shapeOf(1, 2, 2, 5, 0)}) {
      CAPTURE(types.bias);
      CAPTURE(sizes.seqlenQ);
      Bound bound(scoresText(types.bias, types.table), sizes);
      CaseShape shape;
      shape.batch = int(sizes.batch), shape.heads = int(sizes.heads), shape.kvHeads = int(sizes.kvHeads);
      shape.seqlenQ = int(sizes.seqlenQ), shape.seqlenK = int(sizes.seqlenK), shape.kOrigin = int(sizes.kOrigin);
      AttentionCase attention(shape, 7);
      oracle::ScoreOracle definition(bound.file->pattern(), bound.problem());
      HandPattern rule{bound.info, "", [](const JitContext &, int, int q, int k) { return k <= q; }, {}};
      rule.scores = [&](const JitContext &c, int q, int k, double score) {
        return definition.score({c.batch, c.head, q, k}, score);
      };
      CpuCall args = attention.args();
      args.params.assign(bound.shape.parameters.begin(), bound.shape.parameters.end());
      args.operands = bound.pointers();
      args.blockM = 32, args.blockN = 24;
      Status ran = runAttention(bound.compile(), args).status();
      REQUIRE_MESSAGE(ran.isOk(), ran.message());
      AttentionCase::Errors errors = attention.compare(rule);
      CHECK(errors.out <= 1.0);
      CHECK(errors.lse <= 1e-4);
    }
}

TEST_CASE("sinks: a key without a value on the CPU and in the emitted text, also for rows without a key") {
  const std::string start = "%w = attn.window [9, 0]\n%own = attn.window [1, 0]\n%others = attn.not %own\n"
                            "%m = attn.and %w, %others\nattn.softmax union(%m) sink ";
  for (const std::string &text : {"attn.pattern @p() {\n" + start + "0.5\n}",
                                  "attn.pattern @p(%s: f32 {attn.default = -1.5 : f32}) {\n" + start + "%s\n}",
                                  "attn.pattern @p(%s: memref<?xf32>) {\n" + start + "%s : memref<?xf32>\n}",
                                  "attn.pattern @p(%s: memref<?xbf16>) {\n" + start + "%s : memref<?xbf16>\n}"})
    for (ProblemShape sizes : {shapeOf(1, 1, 1, 1, 1), shapeOf(2, 6, 3, 67, 67), shapeOf(1, 2, 2, 5, 0)}) {
      CAPTURE(text);
      CAPTURE(sizes.seqlenQ);
      Bound bound(text, sizes);
      oracle::ScoreOracle definition(bound.file->pattern(), bound.problem());
      HostPattern host(bound.text(), *bound.info);
      JitPattern jit = bound.compile();
      JitContext c = bound.context();
      for (c.head = 0; c.head < c.heads; ++c.head) {
        CHECK(jit.sink(c) == doctest::Approx(*definition.sink(c.head)));
        CHECK(host.sink(c) == doctest::Approx(*definition.sink(c.head)));
      }
      CaseShape shape;
      shape.batch = int(sizes.batch), shape.heads = int(sizes.heads), shape.kvHeads = int(sizes.kvHeads);
      shape.seqlenQ = int(sizes.seqlenQ), shape.seqlenK = int(sizes.seqlenK);
      AttentionCase attention(shape, 7);
      HandPattern rule{
          bound.info, "", [](const JitContext &, int, int q, int k) { return q - 9 <= k && k <= q - 2; }, {}};
      rule.sink = [&](int head) { return *definition.sink(head); };
      CpuCall args = attention.args();
      args.params.assign(bound.shape.parameters.begin(), bound.shape.parameters.end());
      args.operands = bound.pointers();
      args.blockM = 32, args.blockN = 24;
      Status ran = runAttention(jit, args).status();
      REQUIRE_MESSAGE(ran.isOk(), ran.message());
      AttentionCase::Errors errors = attention.compare(rule);
      CHECK(errors.out <= 1.0);
      CHECK(errors.lse <= 1e-4);
    }
}

TEST_CASE("the CPU target names a tensor that is missing or null") {
  Bound bound(scoresText(kTypes[0].bias, kTypes[0].table), shapeOf(1, 2, 2, 8, 8));
  AttentionCase attention(CaseShape{1, 2, 2, 8, 8}, 1);
  CpuCall args = attention.args();
  args.params.assign(bound.shape.parameters.begin(), bound.shape.parameters.end());
  JitPattern jit = bound.compile();
  CHECK(runAttention(jit, args).status().message() == "pattern 'p' reads 2 tensors, got 0");
  args.operands = {bound.pointers()[0], nullptr};
  CHECK(runAttention(jit, args).status().message() == "the tensor that is argument 2 of pattern 'p' must not be null");
}

TEST_CASE("tensors from files: by name, by assignment, and what does not fit") {
  auto parsed = PatternFile::parse(scoresText("memref<1x?x?x?xbf16>", "memref<?x9xf32>"), "test.mlir");
  REQUIRE(parsed.isOk());
  const PatternFile &file = **parsed;
  TemporaryFile stored;
  const OperandTensor bias = OperandTensor::randomNormal(DType::bf16, {1, 2, 4, 6}, 1, "bias");
  const OperandTensor wrong = OperandTensor::randomNormal(DType::fp32, {1, 2, 4, 6}, 1, "bias");
  const OperandTensor table = OperandTensor::randomNormal(DType::fp32, {2, 9}, 1, "table");
  const OperandTensor list = OperandTensor::integers({2, 9}, std::vector<int32_t>(18, 3));
  REQUIRE(writeSafetensors(stored.path, {}, {}, {{"bias", bias}, {"wrong", wrong}, {"table", table}, {"list", list}})
              .isOk());
  auto bind = [&](std::vector<std::string> assignments, bool withInputs, ProblemShape &shape) {
    shape = shapeOf(3, 2, 2, 4, 6);
    shape.parameters = *file.bindParameters({});
    return bindOperands(file, {std::move(assignments), withInputs ? stored.path : std::string()}, shape);
  };
  ProblemShape shape;
  CHECK(bind({}, true, shape).isOk());
  CHECK(shape.operands[2].real(13) == table.real(13));
  CHECK(bind({"bias=" + stored.path, "table=" + stored.path + ":table"}, false, shape).isOk());
  CHECK(shape.operands[0].real(47) == bias.real(47));

  auto refusal = [&](std::vector<std::string> assignments) {
    return bind(std::move(assignments), false, shape).message();
  };
  CHECK(refusal({}) == "tensor 'bias' of pattern 'p' is not given: give it with --operand bias=FILE:TENSOR");
  CHECK(refusal({"bias=" + stored.path + ":wrong"}) ==
        "tensor 'bias': expected bf16 [1, 2 (heads), 4 (seqlen_q), 6 (seqlen_k)], got f32 [1, 2, 4, 6]");
  CHECK(refusal({"bias=" + stored.path, "table=" + stored.path + ":list"}) ==
        "tensor 'table': expected f32 [2 (heads), 9], got i32 [2, 9]");
  CHECK(refusal({"reach=" + stored.path}).find("NAME one of bias, table") != std::string::npos);
  CHECK(refusal({"bias=" + stored.path + ":none"}).find("has no tensor 'none'") != std::string::npos);
  CHECK(file.bindParameters({"bias=3"}).status().message() ==
        "'bias' of pattern 'p' is a tensor: give it with --operand bias=FILE:TENSOR");
}

TEST_CASE("neither the digest of a pattern nor the key of a problem depends on what a tensor of scores holds") {
  const std::string text = scoresText("memref<1x?x?x?xbf16>", "memref<?x9xf32>");
  Bound one(text, shapeOf(1, 2, 2, 300, 300)), other(text, shapeOf(1, 2, 2, 300, 300));
  other.shape.operands[0] = OperandTensor::randomNormal(DType::bf16, {1, 2, 300, 300}, 99, "other");
  CHECK(*one.file->digest() == *other.file->digest());
  const ProblemBucket first = problemBucket(*one.file, one.shape, 132),
                      second = problemBucket(*other.file, other.shape, 132);
  CHECK(first.workPerSm == second.workPerSm);
  CHECK(first.tilesPerRow == second.tilesPerRow);
  CHECK(first.gqaRatio == second.gqaRatio);
  CHECK(exactProblem(one.shape).arguments == exactProblem(other.shape).arguments);
}

TEST_CASE("a tensor whose reader folds away is read nowhere, and asked for as before") {
  const std::string text = "attn.pattern @p(%cu: memref<?xi32>) {\n%c = attn.causal\n"
                           "%d = attn.documents %c at %cu, %cu : memref<?xi32>, memref<?xi32>\n%f = attn.full\n"
                           "%m = attn.or %d, %f\nattn.softmax union(%m)\n}";
  Bound bound(text, shapeOf(1, 2, 2, 40, 40));
  auto digest = bound.file->digest();
  REQUIRE_MESSAGE(digest.isOk(), digest.status().message());
  auto prepared = preparePattern(*bound.file);
  REQUIRE_MESSAGE(prepared.isOk(), prepared.status().message());
  CHECK(prepared->rates->operands.size() == 1);
  CHECK(prepared->rates->operands[0].hasLength);
  CHECK(bound.info->operands.size() == 1);
  const JitPattern jit = bound.compile();
  for (int q = 0; q < 40; ++q)
    for (int k = 0; k < 40; ++k)
      CHECK(jit.keep(bound.context(), 0, q, k));
}

TEST_CASE("a tensor that nothing reads as it is written is refused") {
  auto parsed = PatternFile::parse("attn.pattern @p(%x: memref<?xf32>) {\n%m = attn.causal\nattn.softmax union(%m)\n}",
                                   "test.mlir");
  REQUIRE_FALSE(parsed.isOk());
  CHECK(parsed.status().message().find(
            "test.mlir:1:1: error: 'attn.pattern' op expected an op that reads operand 'x', its "
            "shape has no meaning without one") != std::string::npos);
}
