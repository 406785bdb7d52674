// The generated functions of real patterns, as the GPU and the CPU run them, against the definition of
// the pattern pair by pair: every file in patterns/, and small relatives whose segments and lattices
// fit many times into a short sequence.
#include "support/LibraryFiles.h"
#include "codegen/Cpu/JitPattern.h"
#include "codegen/Emit/EmitPattern.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Pattern/PatternFunctions.h"
#include "compiler/Oracle/ScoreOracle.h"
#include "support/AttentionCase.h"
#include "support/HostPattern.h"
#include "support/RandomPattern.h"
#include "support/RangeCheck.h"
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

using namespace heddle;
using namespace heddle::test;

namespace {

// One pattern with its functions in both forms.
struct Compiled {
  std::unique_ptr<PatternFile> file;
  HandPattern pattern; // keeps is set per problem, module stays empty
  std::unique_ptr<HostPattern> text;
  std::unique_ptr<JitPattern> jit;
  ProblemShape shape; // of the tensors that the pattern reads
};

Compiled compile(Result<std::unique_ptr<PatternFile>> loaded) {
  INFO(loaded.status().message());
  REQUIRE(loaded.isOk());
  Compiled compiled;
  compiled.file = loaded.take();
  auto functions = functionsOf(*compiled.file);
  INFO(functions.status().message());
  REQUIRE(functions.isOk());
  compiled.pattern.info = functions->info;
  auto text = emitPatternFunctions(*functions->module, *functions->info);
  REQUIRE(succeeded(text));
  auto jit = JitPattern::create(*functions->module, *functions->info);
  REQUIRE(succeeded(jit));
  compiled.text = std::make_unique<HostPattern>(*text, *functions->info);
  compiled.jit = std::make_unique<JitPattern>(*jit);
  return compiled;
}

void bind(Compiled &compiled, const std::vector<std::string> &assignments) {
  auto values = compiled.file->bindParameters(assignments);
  INFO(values.status().message());
  REQUIRE(values.isOk());
  compiled.pattern.params.assign(values->begin(), values->end());
}

/// What `value` is a minimum or maximum of, at any depth.
bool isCutFrom(mlir::Value value, mlir::Value source) {
  mlir::Operation *op = value.getDefiningOp();
  if (!op || !mlir::isa<mlir::arith::MinSIOp, mlir::arith::MaxSIOp, mlir::arith::MinUIOp, mlir::arith::MaxUIOp>(op))
    return false;
  return llvm::any_of(op->getOperands(),
                      [&](mlir::Value operand) { return operand == source || isCutFrom(operand, source); });
}

/// Comparisons for equality of a value with what it was cut from, which ptxas gets wrong (docs/kernels.md).
int comparisonsWithTheUncut(mlir::ModuleOp functions) {
  int found = 0;
  functions.walk([&](mlir::arith::CmpIOp compare) {
    using Predicate = mlir::arith::CmpIPredicate;
    const bool isEquality = compare.getPredicate() == Predicate::eq || compare.getPredicate() == Predicate::ne;
    found +=
        isEquality && (isCutFrom(compare.getLhs(), compare.getRhs()) || isCutFrom(compare.getRhs(), compare.getLhs()));
  });
  return found;
}

struct Sizes {
  int seqlenQ, seqlenK, qOrigin, kOrigin;
};

// Tensors for four heads and these sizes.
void bindTensors(Compiled &compiled, Sizes sizes) {
  ProblemShape &shape = compiled.shape;
  shape.heads = 4, shape.kvHeads = 2;
  shape.seqlenQ = sizes.seqlenQ, shape.seqlenK = sizes.seqlenK;
  shape.qOrigin = sizes.qOrigin, shape.kOrigin = sizes.kOrigin;
  shape.parameters.assign(compiled.pattern.params.begin(), compiled.pattern.params.end());
  const OperandSources sources{{}, {}, OperandSources::Missing::make};
  if (!bindOperands(*compiled.file, sources, shape).isOk()) { // one tensor for both axes does not fit unequal lengths
    ProblemShape square = shape;
    square.seqlenQ = square.seqlenK = std::max(sizes.qOrigin + sizes.seqlenQ, sizes.kOrigin + sizes.seqlenK);
    square.kOrigin = 0;
    Status bound = bindOperands(*compiled.file, sources, square);
    REQUIRE_MESSAGE(bound.isOk(), bound.message());
    shape.parameters = square.parameters;
    shape.operands = square.operands;
  }
  compiled.pattern.params.assign(shape.parameters.begin(), shape.parameters.end());
}

std::vector<const void *> pointersOf(const Compiled &compiled) {
  std::vector<const void *> pointers;
  for (const OperandTensor &tensor : compiled.shape.operands)
    if (tensor)
      pointers.push_back(tensor.address());
  return pointers;
}

JitContext contextOf(const Compiled &compiled, Sizes sizes, int head) {
  JitContext context;
  context.head = head;
  context.heads = 4;
  context.seqlenQ = sizes.seqlenQ;
  context.seqlenK = sizes.seqlenK;
  context.qOrigin = sizes.qOrigin;
  context.kOrigin = sizes.kOrigin;
  std::copy(compiled.pattern.params.begin(), compiled.pattern.params.end(), context.params.begin());
  const std::vector<const void *> pointers = pointersOf(compiled);
  std::copy(pointers.begin(), pointers.end(), context.operands.begin());
  return context;
}

oracle::Problem problemOf(const Compiled &compiled, const JitContext &context) {
  oracle::Problem problem;
  problem.heads = context.heads;
  problem.seqlenQ = context.seqlenQ;
  problem.seqlenK = context.seqlenK;
  problem.qOrigin = context.qOrigin;
  problem.kOrigin = context.kOrigin;
  problem.parameters.assign(compiled.pattern.params.begin(), compiled.pattern.params.end());
  problem.operands = compiled.shape.operands;
  return problem;
}

// The rule of a problem: the definition, at positions instead of indices.
KeepRule ruleOf(const Compiled &compiled, const JitContext &context) {
  auto definition = std::make_shared<oracle::PatternOracle>(compiled.file->lowered(), problemOf(compiled, context));
  return [definition](const JitContext &c, int branch, int q, int k) {
    return definition->keeps(branch, c.head, q - c.qOrigin, k - c.kOrigin);
  };
}

ScoreRule scoresOf(const Compiled &compiled, const JitContext &context) {
  auto definition = std::make_shared<oracle::ScoreOracle>(compiled.file->lowered(), problemOf(compiled, context));
  return [definition](const JitContext &c, int q, int k, double score) {
    return definition->score({c.batch, c.head, q, k}, score);
  };
}

std::function<double(int)> sinkOf(const Compiled &compiled, const JitContext &context) {
  auto definition = std::make_shared<oracle::ScoreOracle>(compiled.file->lowered(), problemOf(compiled, context));
  if (!definition->sink(0))
    return nullptr;
  return [definition](int head) { return *definition->sink(head); };
}

void checkKeep(const Compiled &compiled, const JitContext &c) {
  long wrongText = 0, wrongJit = 0;
  for (int branch = 0; branch < compiled.pattern.branchCount(); ++branch)
    for (int q = c.qOrigin; q < c.qOrigin + c.seqlenQ; ++q)
      for (int k = c.kOrigin; k < c.kOrigin + c.seqlenK; ++k) {
        bool expected = compiled.pattern.keeps(c, branch, q, k);
        wrongText += compiled.text->keep(c, branch, q, k) != expected;
        wrongJit += compiled.jit->keep(c, branch, q, k) != expected;
      }
  CHECK(wrongText == 0);
  CHECK(wrongJit == 0);
}

void checkProblem(Compiled &compiled, const JitContext &context) {
  compiled.pattern.keeps = ruleOf(compiled, context);
  INFO(compiled.pattern.name() << " head " << context.head << " q " << context.seqlenQ << "+" << context.qOrigin
                               << " k " << context.seqlenK << "+" << context.kOrigin);
  checkKeep(compiled, context);
  for (TileShape shape : {TileShape{1, 1}, {5, 3}, {16, 20}, {48, 8}, {64, 64}}) {
    INFO("tile " << shape.blockM << "x" << shape.blockN);
    RangeReport fromText = checkRanges(*compiled.text, compiled.pattern, context, shape);
    RangeReport fromJit = checkRanges(*compiled.jit, compiled.pattern, context, shape);
    CHECK(fromText.error == "");
    CHECK(fromJit.error == "");
    CHECK(fromText.visitedTiles == fromJit.visitedTiles);
    CHECK(fromText.fullTiles == fromJit.fullTiles);
  }
}

void checkAttention(Compiled &compiled, Sizes sizes) {
  CaseShape shape;
  shape.heads = 4;
  shape.kvHeads = 2;
  shape.seqlenQ = sizes.seqlenQ;
  shape.seqlenK = sizes.seqlenK;
  shape.qOrigin = sizes.qOrigin;
  shape.kOrigin = sizes.kOrigin;
  AttentionCase attention(shape, 4);
  CpuCall args = attention.args();
  args.params = compiled.pattern.params;
  args.operands = pointersOf(compiled);
  args.blockN = 24;
  REQUIRE(runAttention(*compiled.jit, args).isOk());
  compiled.pattern.keeps = ruleOf(compiled, contextOf(compiled, sizes, 0));
  compiled.pattern.scores = scoresOf(compiled, contextOf(compiled, sizes, 0));
  compiled.pattern.sink = sinkOf(compiled, contextOf(compiled, sizes, 0));
  AttentionCase::Errors errors = attention.compare(compiled.pattern);
  INFO(compiled.pattern.name() << " q " << sizes.seqlenQ << " k " << sizes.seqlenK);
  CHECK(errors.out <= 1.0);
  CHECK(errors.lse <= 1e-4);
}

void checkAll(Compiled compiled, const std::vector<Sizes> &problems) {
  for (Sizes sizes : problems) {
    bindTensors(compiled, sizes);
    for (int head = 0; head < 4; ++head)
      checkProblem(compiled, contextOf(compiled, sizes, head));
    checkAttention(compiled, sizes);
  }
}

const std::vector<Sizes> shortProblems = {{1, 1, 0, 0}, {67, 67, 0, 0}, {20, 90, 70, 0}, {45, 30, 0, 0}};

Compiled parse(const char *text, const std::vector<std::string> &assignments = {}) {
  Compiled compiled = compile(PatternFile::parse(text, "test"));
  bind(compiled, assignments);
  return compiled;
}

} // namespace

TEST_CASE("every pattern file, at lengths around its first segment border") {
  for (const std::string &path : halfOfLibrary(0)) {
    Compiled compiled = compile(PatternFile::load(path));
    bind(compiled, {});
    checkAll(std::move(compiled), {{37, 37, 0, 0}, {30, 60, 2030, 2000}});
  }
}

/// The pattern with attn.causal for every attn.full, and the other way round; empty if it has neither.
std::string causalTwinOf(const std::string &path) {
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::string full = "= attn.full\n", causal = "= attn.causal\n";
  bool isFull = text.find(full) != std::string::npos;
  const std::string &from = isFull ? full : causal, &to = isFull ? causal : full;
  bool hasEither = text.find(from) != std::string::npos;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return hasEither ? text : "";
}

TEST_CASE("pattern files with causal for full, and the other way round") {
  int files = 0;
  for (const std::string &path : halfOfLibrary(1)) {
    std::string twin = causalTwinOf(path);
    if (twin.empty())
      continue;
    ++files;
    checkAll(parse(twin.c_str()), {{37, 37, 0, 0}, {30, 60, 2030, 2000}});
  }
  CHECK(files >= (takesAll() ? 20 : 8));
}

TEST_CASE("heads in groups of segments and rates") {
  checkAll(parse(R"(attn.pattern @groups() {
    %full = attn.full
    %near = attn.dilate %full by 1 rule(group)
    %middle = attn.dilate %full by 2 rule(group)
    %far = attn.dilate %full by 4 rule(group)
    %s0 = attn.segment %near by [8]
    %s1 = attn.segment %middle by [16]
    %s2 = attn.segment %far by [32]
    %m = attn.heads %s0, %s1, %s2
    attn.softmax union(%m)
  })"),
           shortProblems);
}

TEST_CASE("two branches under one softmax") {
  checkAll(parse(R"(attn.pattern @branches() {
    %c = attn.causal
    %far = attn.dilate %c by 2 rule(block)
    %b0 = attn.segment %c by [8]
    %b1 = attn.segment %far by [16]
    attn.softmax lse(%b0, %b1)
  })"),
           shortProblems);
}

TEST_CASE("a window on every residue, and a union with global rows and columns") {
  checkAll(parse(R"(attn.pattern @steps(%half: i32) {
    %w = attn.window [%half, %half]
    %m = attn.dilate %w by 4 rule(every)
    attn.softmax union(%m)
  })",
                 {"half=3"}),
           shortProblems);
  checkAll(parse(R"(attn.pattern @globals(%half: i32, %g: i32) {
    %w = attn.window [%half, %half]
    %r = attn.rows [%g, 0]
    %k = attn.cols [%g, 0]
    %m = attn.or %w, %r, %k
    attn.softmax union(%m)
  })",
                 {"half=5", "g=3"}),
           shortProblems);
}

TEST_CASE("random blocks, alone and in unions, for each head, inside segments and on lattices") {
  for (const char *mask :
       {"%m = attn.blocks %r by [8]", "%c = attn.causal %b = attn.blocks %r by [8] %m = attn.and %b, %c",
        "%w = attn.window [1, 1] %g = attn.cols [1, 0] %u = attn.or %r, %w, %g %m = attn.blocks %u by [6]",
        "%b = attn.blocks %r by [4] %m = attn.segment %b by [20]",
        "%b = attn.blocks %r by [4] %m = attn.dilate %b by 2 rule(every)", "%m = attn.and %r, %r"})
    for (const char *options : {"count 2 seed 3", "count %n seed %s per_head"})
      checkAll(parse(("attn.pattern @random(%n: i32, %s: i32) { %r = attn.random " + std::string(options) + " " + mask +
                      " attn.softmax union(%m) }")
                         .c_str(),
                     {"n=3", "s=4"}),
               shortProblems);
}

TEST_CASE("unions over several lattices in segments: more pieces than are kept apart") {
  for (const char *masks : {"%a = attn.dilate %f by 2 at 0 %b = attn.segment %a by [1] %c = attn.rows [0, 1] "
                            "%s = attn.stride k by 5 at 0 %d = attn.segment %s by [2]",
                            "%x = attn.box [0, 1, 0, 1] %b = attn.segment %x by [2] %c = attn.dilate %f by 2 at 0 "
                            "%e = attn.dilate %f by 3 at 0 %d = attn.segment %e by [1]",
                            "%a = attn.dilate %f by 2 at 0 %b = attn.segment %a by [64] %c = attn.cols [1, 0] "
                            "%s = attn.stride k by 5 at 0 %d = attn.segment %s by [128]"})
    checkAll(parse(("attn.pattern @lattices() { %f = attn.full " + std::string(masks) +
                    " %r = attn.rows [0, 1] attn.softmax union(%b, %c, %d, %r) }")
                       .c_str()),
             shortProblems);
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    std::mt19937 random(seed);
    std::vector<int64_t> parameters;
    checkAll(parse(latticesCase(random).text(parameters).c_str()), {{67, 67, 0, 0}, {20, 90, 70, 0}});
  }
}

TEST_CASE("a tile that one piece keeps whole is full, also where another piece keeps more tiles whole") {
  Compiled compiled = parse(R"(attn.pattern @globals() {
    %w = attn.window [40, 40]
    %k = attn.cols [8, 0]
    %m = attn.or %w, %k
    attn.softmax union(%m)
  })");
  const JitContext context = contextOf(compiled, {200, 200, 0, 0}, 0);
  compiled.pattern.keeps = ruleOf(compiled, context);
  const RangeReport report = checkRanges(*compiled.jit, compiled.pattern, context, {8, 8});
  CHECK(report.error == "");
  CHECK(report.fullTiles == report.trulyFullTiles);
  CHECK(report.trulyFullTiles > 25); // the global columns alone
}

TEST_CASE("no function asks whether a value equals what it was cut from") {
  for (const std::string &path : libraryPatterns()) {
    CAPTURE(path);
    auto file = PatternFile::load(path);
    REQUIRE(file.isOk());
    auto functions = functionsOf(**file);
    REQUIRE(functions.isOk());
    CHECK(comparisonsWithTheUncut(*functions->module) == 0);
  }
  auto file = PatternFile::parse(
      "attn.pattern @p() { %m = attn.predicate {\n^bb0(%b: i32, %h: i32, %q: i32, %k: i32):\n"
      "%zero = arith.constant 0 : i32 %low = arith.minsi %q, %k : i32 %cut = arith.maxsi %low, %zero : i32\n"
      "%t = arith.cmpi eq, %cut, %q : i32 attn.yield %t : i1 } attn.softmax union(%m) }",
      "cut.mlir");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  auto functions = functionsOf(**file);
  REQUIRE(functions.isOk());
  CHECK(comparisonsWithTheUncut(*functions->module) > 0); // the question finds what it looks for
}
