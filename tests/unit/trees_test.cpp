// attn.tree of a batch: compiled functions and emitted text against a tree for each element, with numbers of drafts and
// without; tiles and pairs, numbers that are refused, and that whatever they are nothing beyond the tensors is read.
#include "compiler/Oracle/PatternOracle.h"
#include "compiler/Pattern/ProblemKey.h"
#include "support/AnalysisChecks.h"
#include "support/CompiledPattern.h"
#include "support/RangeCheck.h"
#include <doctest/doctest.h>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

using namespace heddle;
using namespace heddle::test;

namespace {

struct Form {
  std::string ancestors = "memref<?x?xi64>", drafts = "memref<?xi32>"; ///< no drafts: all are
  std::string more = "%m = attn.or %t, %t", origin = "q_origin(end)";
};

std::string textOf(const Form &form) {
  const bool hasDrafts = !form.drafts.empty();
  return "attn.pattern @p(%ancestors: " + form.ancestors + (hasDrafts ? ", %drafts: " + form.drafts : "") + ") " +
         form.origin + " {\n%t = attn.tree %ancestors : " + form.ancestors +
         (hasDrafts ? " drafts %drafts : " + form.drafts : "") + "\n" + form.more + "\nattn.softmax union(%m)\n}";
}

std::unique_ptr<PatternFile> parsed(const Form &form) {
  auto file = PatternFile::parse(textOf(form), "trees.mlir");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  return file.take();
}

/// Trees of any bits, those of tokens that there are not too.
struct Trees {
  int64_t batch, tokens;
  std::vector<int64_t> ancestors;
  std::vector<int32_t> drafts; ///< empty: all tokens are

  Trees(int64_t batch, int64_t tokens, std::vector<int32_t> drafts)
      : batch(batch), tokens(tokens), drafts(std::move(drafts)) {
    std::mt19937_64 random{uint64_t(tokens)};
    for (int64_t i = 0; i < batch * tokens; ++i)
      ancestors.push_back(int64_t(random()));
  }

  /// By the formula of the op; i and j count from the first draft token.
  bool keeps(int64_t element, int64_t i, int64_t j) const {
    if (i < 0)
      return j <= i;
    return j < 0 || (uint64_t(ancestors[size_t(element % batch * tokens + i)]) >> j & 1) != 0;
  }
  int64_t draftsOf(int64_t element) const {
    return drafts.empty() ? tokens : std::clamp<int64_t>(drafts[size_t(element) % drafts.size()], 0, tokens);
  }
  /// In rows and keys of an element of so many.
  bool keepsRow(int64_t element, int64_t queries, int64_t keys, int64_t row, int64_t key) const {
    const int64_t first = draftsOf(element);
    return keeps(element, row - (queries - first), key - (keys - first));
  }

  oracle::Problem problem(int64_t queries, int64_t keys, bool areEndsAlike) const {
    oracle::Problem problem{2, queries, keys, areEndsAlike ? keys - queries : 0, 0, {tokens, int64_t(drafts.size())}};
    problem.operands = {OperandTensor::wideIntegers({batch, tokens}, ancestors)};
    if (!drafts.empty())
      problem.operands.push_back(OperandTensor::integers({int64_t(drafts.size())}, drafts));
    return problem;
  }
};

JitContext contextOf(const oracle::Problem &problem) {
  JitContext c;
  c.heads = int32_t(problem.heads), c.seqlenQ = int32_t(problem.seqlenQ), c.seqlenK = int32_t(problem.seqlenK);
  c.qOrigin = int32_t(problem.qOrigin);
  for (size_t i = 0; i < problem.operands.size(); ++i)
    c.params[i] = int32_t(problem.parameters[i]), c.operands[i] = problem.operands[i].address();
  return c;
}

void checkElement(const Compiled &compiled, const PatternFile &file, const Trees &trees, int64_t element,
                  const oracle::Problem &problem) {
  CAPTURE(element);
  oracle::PatternOracle definition(file.pattern(), problem);
  JitContext c = contextOf(problem);
  c.batch = int32_t(element);
  auto isKept = [&](int64_t row, int64_t key) { return trees.keepsRow(element, c.seqlenQ, c.seqlenK, row, key); };
  long wrong = 0;
  for (int i = 0; i < c.seqlenQ; ++i)
    for (int j = 0; j < c.seqlenK; ++j) {
      const bool kept = isKept(i, j);
      wrong += compiled.jit->keep(c, 0, c.qOrigin + i, j) != kept ||
               compiled.text->keep(c, 0, c.qOrigin + i, j) != kept || definition.keeps(0, 1, i, j, element) != kept;
    }
  CHECK(wrong == 0);
  HandPattern rule{
      compiled.info, "", [&](const JitContext &at, int, int q, int k) { return isKept(q - at.qOrigin, k); }, {}};
  for (test::TileShape shape : {test::TileShape{1, 1}, {5, 3}, {16, 8}, {64, 64}}) {
    CHECK(checkRanges(*compiled.text, rule, c, shape).error == "");
    CHECK(checkRanges(*compiled.jit, rule, c, shape).error == "");
  }
}

/// Memory that ends where no other page follows.
class Guarded {
public:
  Guarded(const void *data, size_t size) : page(size_t(sysconf(_SC_PAGESIZE))), size(size) {
    const size_t pages = (size + page - 1) / page;
    length = (pages + 2) * page;
    base = static_cast<char *>(mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(static_cast<void *>(base) != MAP_FAILED);
    REQUIRE(mprotect(base + page, pages * page, PROT_READ | PROT_WRITE) == 0);
    std::memcpy(atEnd(), data, size);
  }
  ~Guarded() { munmap(base, length); }
  Guarded(const Guarded &) = delete;
  Guarded &operator=(const Guarded &) = delete;
  char *atEnd() const { return base + length - page - size; }

private:
  size_t page, size, length;
  char *base;
};

const char *const kMasks[] = {"%m = attn.or %t, %t", "%m = attn.not %t", "%c = attn.causal %m = attn.and %t, %c",
                              "%w = attn.window [3, 3] %n = attn.not %t %m = attn.or %w, %n",
                              "%c = attn.causal %m = attn.heads %t, %c"};

} // namespace

TEST_CASE("a tree for each element, with as many drafts as its number says, behind causal rows or alone") {
  for (const Form &form : {Form(), Form{"memref<?x?xi64>", "memref<?xi32>", "%m = attn.or %t, %t", ""},
                           Form{"memref<?x33xi64>", "memref<?xi32>"}, Form{"memref<?x?xi64>", "memref<1xi32>"},
                           Form{"memref<1x?xi64>", "memref<?xi32>"}}) {
    auto file = parsed(form);
    const Compiled compiled(*file);
    const bool isOfEach = form.ancestors[7] == '?', hasEach = form.drafts != "memref<1xi32>";
    for (int64_t tokens : {33, 7, 64}) {
      if (form.ancestors == "memref<?x33xi64>" && tokens != 33)
        continue;
      const auto most = int32_t(tokens);
      const Trees trees(isOfEach ? 5 : 1, tokens,
                        hasEach ? std::vector<int32_t>{most, 0, 1, most / 2, most - 1}
                                : std::vector<int32_t>{most / 2});
      CAPTURE(textOf(form));
      for (auto [queries, keys] :
           {std::pair<int64_t, int64_t>{tokens, tokens}, {tokens + 9, tokens + 40}, {tokens, tokens + 70}})
        for (int64_t element = 0; element < 5; ++element)
          checkElement(compiled, *file, trees, element, trees.problem(queries, keys, !form.origin.empty()));
    }
  }
}

TEST_CASE("without numbers all ancestors are of draft tokens, and rows before them are causal") {
  for (const char *origin : {"q_origin(end)", ""}) {
    auto file = parsed({"memref<?x?xi64>", "", "%m = attn.or %t, %t", origin});
    const Compiled compiled(*file);
    const Trees trees(3, 12, {});
    for (auto [queries, keys] : {std::pair<int64_t, int64_t>{12, 12}, {12, 90}, {40, 60}, {60, 40}})
      for (int64_t element = 0; element < 3; ++element)
        checkElement(compiled, *file, trees, element, trees.problem(queries, keys, *origin != 0));
  }
}

TEST_CASE("no drafts are causal, with the tiles of causal") {
  auto file = parsed(Form());
  const Trees trees(1, 64, {0});
  const oracle::Problem problem = trees.problem(100, 500, true);
  auto causal =
      PatternFile::parse("attn.pattern @c() q_origin(end) {\n%m = attn.causal\nattn.softmax union(%m)\n}", "c");
  REQUIRE(causal.isOk());
  const oracle::Problem plain{2, 100, 500, 400, 0, {}};
  for (int64_t tile = 0; tile * 16 < 100; ++tile) {
    auto visitOf = [&](const PatternFile &of, const oracle::Problem &asked) {
      return attn::TileVisitor(of.analysis().variants[0].forward, 0, attn::Direction::Forward, oracle::toSizes(asked))
          .visit(0, {0, tile, 16}, 16);
    };
    const attn::TileVisit own = visitOf(*file, problem), other = visitOf(**causal, plain);
    CHECK(own.visited == other.visited);
    CHECK(own.full == other.full);
  }
}

TEST_CASE("a tile of a prompt and its drafts visits what is before both without a mask, and the square of the drafts") {
  auto file = parsed(Form());
  const Trees trees(1, 64, {32});
  const attn::TileVisit visit = attn::TileVisitor(file->analysis().variants[0].forward, 0, attn::Direction::Forward,
                                                  oracle::toSizes(trees.problem(64, 8192, true)))
                                    .visit(0, {0, 0, 64}, 64);
  CHECK(visit.visited == std::vector<attn::TileRun>{{0, 128}});
  CHECK(visit.full == std::vector<attn::TileRun>{{0, 127}});
}

TEST_CASE("alone, negated and with other masks: tiles cover what is kept, and are full only where all is") {
  for (const char *more : kMasks)
    for (const char *origin : {"q_origin(end)", ""})
      for (int32_t drafts : {0, 5, 20})
        for (auto [queries, keys] : {std::pair<int64_t, int64_t>{20, 60}, {33, 45}, {45, 33}}) {
          auto file = parsed({"memref<?x?xi64>", "memref<?xi32>", more, origin});
          const Trees trees(1, 20, {drafts});
          for (attn::TileShape shape : {attn::TileShape{1, 1}, {7, 3}, {16, 8}, {64, 64}}) {
            std::string account = oracle::checkPattern(file->lowered(), file->analysis(),
                                                       trees.problem(queries, keys, *origin != 0), shape);
            CHECK_MESSAGE(account.empty(), account);
          }
        }
}

TEST_CASE("whatever the numbers are, nothing beyond the tensors is read, and they are cut to the ancestors") {
  auto file = parsed(Form());
  const Compiled compiled(*file);
  for (int32_t number : {-1, INT32_MIN, 8, 65, 1000, INT32_MAX}) {
    CAPTURE(number);
    const Trees trees(2, 7, {0, number});
    const Guarded ancestors(trees.ancestors.data(), trees.ancestors.size() * sizeof(int64_t)),
        drafts(trees.drafts.data(), trees.drafts.size() * sizeof(int32_t));
    for (auto [queries, keys] : {std::pair<int64_t, int64_t>{20, 30}, {3, 2}, {1, 90}}) {
      JitContext c = contextOf(trees.problem(queries, keys, true));
      c.operands = {ancestors.atEnd(), drafts.atEnd()};
      c.batch = 1;
      long wrong = 0;
      for (int i = -3; i < queries + 80; ++i) // tiles have rows and keys beyond the ends
        for (int j = -3; j < keys + 80; ++j) {
          const bool own = compiled.jit->keep(c, 0, c.qOrigin + i, j),
                     text = compiled.text->keep(c, 0, c.qOrigin + i, j);
          const bool isPair = i >= 0 && i < queries && j >= 0 && j < keys;
          wrong += own != text || (isPair && own != trees.keepsRow(1, queries, keys, i, j));
        }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("trees and numbers that are made fit the call") {
  auto file = parsed(Form());
  for (auto [queries, keys] : {std::pair<int64_t, int64_t>{0, 0}, {1, 9}, {40, 90}, {500, 700}}) {
    ProblemShape shape;
    shape.batch = 6, shape.seqlenQ = queries, shape.seqlenK = keys;
    shape.parameters = {0, 0};
    Status bound = bindOperands(*file, {{}, {}, OperandSources::Missing::make, 5}, shape);
    REQUIRE_MESSAGE(bound.isOk(), bound.message());
    const int64_t tokens = std::clamp<int64_t>(queries, 1, 64), most = std::min<int64_t>(queries, 64);
    CHECK(shape.operands[0].shape == std::vector<int64_t>{6, tokens});
    for (int64_t i = 0; i < 6 * tokens; ++i)
      CHECK((uint64_t(shape.operands[0].integer(i)) >> (i % tokens)) == 1);
    CHECK(shape.operands[1].shape == std::vector<int64_t>{6});
    CHECK(shape.operands[1].integer(0) == (most + 1) / 2);
    CHECK(shape.operands[1].integer(1) == most);
    CHECK(shape.operands[1].integer(2) == 0);
  }
}

TEST_CASE("numbers that no element can have are refused, and more ancestors than an element needs are not") {
  auto file = parsed(Form());
  auto refusal = [&](int64_t tokens, std::vector<int32_t> numbers, int64_t queries, int64_t keys) {
    const Trees trees(int64_t(numbers.size()), tokens, numbers);
    ProblemShape shape;
    shape.batch = trees.batch, shape.seqlenQ = queries, shape.seqlenK = keys;
    shape.parameters = {0, 0};
    return checkOperands(*file, trees.problem(queries, keys, true).operands, shape).message();
  };
  const std::string why = ", no more draft tokens than have ancestors and than there are queries or keys, got ";
  CHECK(refusal(64, {0, 1, 1}, 1, 1000) == "");
  CHECK(refusal(64, {64, 0}, 64, 64) == "");
  CHECK(refusal(7, {0, 8}, 20, 50) == "tensor 'drafts': expected entry 1 to be 0 to 7" + why + "8");
  CHECK(refusal(7, {-1, 0}, 20, 50) == "tensor 'drafts': expected entry 0 to be 0 to 7" + why + "-1");
  CHECK(refusal(64, {0, 3}, 2, 50) == "tensor 'drafts': expected entry 1 to be 0 to 2" + why + "3");
  CHECK(refusal(64, {5}, 20, 4) == "tensor 'drafts': expected entry 0 to be 0 to 4" + why + "5");
  const Trees three(3, 7, {1, 2});
  ProblemShape shape;
  shape.batch = 3, shape.seqlenQ = 20, shape.seqlenK = 50;
  shape.parameters = {0, 0};
  CHECK(checkOperands(*file, three.problem(20, 50, true).operands, shape).message() ==
        "tensor 'drafts': expected 3 entries, one for each batch element, got 2");
  shape.batch = 1, shape.sequences = 3; // in rows
  CHECK(checkOperands(*file, three.problem(20, 50, true).operands, shape).message() ==
        "tensor 'drafts': expected 3 entries, one for each batch element, got 2");
  CHECK(refusal(65, {0}, 100, 100) == "tensor 'ancestors': expected 1 to 64 draft tokens, got 65");
}
