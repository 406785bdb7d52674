//===- kept_columns_test.cpp - words of kept columns against the predicate --===//
// The emitted words of kept columns, run on the host, against the predicate of the same text, key by key, for every
// lane of a quad: library patterns, compositions at their borders and random ones, and which predicates have no words.
//===----------------------------------------------------------------------===//
#include "support/LibraryFiles.h"
#include "codegen/Emit/EmitPattern.h"
#include "codegen/Emit/PatternInfo.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Pattern/PatternFunctions.h"
#include "support/HostPattern.h"
#include "support/RandomPattern.h"

#include <cstdlib>
#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <memory>

using namespace heddle;
using namespace heddle::test;

namespace {

struct Sizes {
  int seqlenQ, seqlenK, qOrigin, kOrigin;
};

/// One pattern with its text loaded; the context holds the run-time sizes.
struct Loaded {
  std::string name;
  unsigned branchCount;
  std::unique_ptr<HostPattern> text;
  JitContext context;
  Operands operands = {}; ///< what the context points to: tensors that masks read

  void place(Sizes sizes, int head, int heads) {
    context.head = head;
    context.heads = heads;
    context.seqlenQ = sizes.seqlenQ;
    context.seqlenK = sizes.seqlenK;
    context.qOrigin = sizes.qOrigin;
    context.kOrigin = sizes.kOrigin;
  }
};

Loaded load(Result<std::unique_ptr<PatternFile>> file, const std::vector<std::string> &assignments = {}) {
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  auto functions = functionsOf(**file);
  REQUIRE_MESSAGE(functions.isOk(), functions.status().message());
  const PatternInfo &info = *functions->info;
  auto text = emitPatternFunctions(*functions->module, info);
  REQUIRE(succeeded(text));
  auto values = (*file)->bindParameters(assignments);
  REQUIRE_MESSAGE(values.isOk(), values.status().message());
  Loaded loaded{info.name, unsigned(info.branchCount), std::make_unique<HostPattern>(*text, info), {}};
  ProblemShape shape; // of the first problem, about: what lies beyond is in no document
  shape.seqlenQ = shape.seqlenK = 64;
  shape.heads = shape.kvHeads = 4;
  shape.parameters = *values;
  Status bound = bindOperands(**file, {{}, {}, OperandSources::Missing::makeForMasks}, shape);
  REQUIRE_MESSAGE(bound.isOk(), bound.message());
  std::copy(shape.parameters.begin(), shape.parameters.end(), loaded.context.params.begin());
  loaded.operands = shape.operands;
  for (size_t i = 0; i < info.operands.size(); ++i)
    if (const OperandTensor &tensor = loaded.operands[size_t(info.operands[i].argument)])
      loaded.context.operands[i] = tensor.address();
  return loaded;
}

Loaded parse(const std::string &body, const std::vector<std::string> &assignments = {}, const char *arguments = "") {
  return load(PatternFile::parse("attn.pattern @p(" + std::string(arguments) + ") {\n" + body + "\n}", "test"),
              assignments);
}

/// The word of a lane, by the predicate: bit 2 n + e is column 8 n + e.
uint32_t wordByPredicate(const Loaded &loaded, int branch, int q, int64_t firstKey, int rate) {
  uint32_t word = 0;
  const JitContext &c = loaded.context;
  for (int bit = 0; bit < 32; ++bit) {
    int64_t key = firstKey + int64_t(rate) * (bit / 2 * 8 + bit % 2);
    if (key < int64_t(c.kOrigin) + c.seqlenK && loaded.text->keep(c, branch, q, int(key)))
      word |= 1u << bit;
  }
  return word;
}

struct Tally {
  long words = 0, wrong = 0, bits = 0;
};

/// Rows [first, first + count) with all tiles of blockN columns of their key class, and the tile behind the last.
void compareRows(const Loaded &loaded, int branch, int first, int count, int blockN, Tally &tally) {
  const JitContext &c = loaded.context;
  int variant = loaded.text->variant(c), rate = loaded.text->keyRate(variant, branch);
  for (int q = first; q < first + count; ++q) {
    int residue = loaded.text->keyResidue(c, variant, branch, q);
    for (int64_t tile = residue; tile < c.seqlenK + int64_t(rate) * blockN; tile += int64_t(rate) * blockN)
      for (int quad = 0; quad < 4; ++quad) {
        int64_t firstKey = c.kOrigin + tile + rate * 2 * quad;
        uint32_t expected = wordByPredicate(loaded, branch, q, firstKey, rate);
        uint32_t word = loaded.text->keptColumns(c, branch, q, int(firstKey));
        ++tally.words;
        tally.wrong += word != expected;
        tally.bits += __builtin_popcount(expected);
      }
  }
}

/// Compares all branches that have words; true if all have.
bool compareAll(Loaded &loaded, const std::vector<Sizes> &problems, Tally &tally, int heads = 4) {
  bool hasAll = true;
  for (unsigned branch = 0; branch < loaded.branchCount; ++branch) {
    if (!loaded.text->hasKeptColumns(branch)) {
      hasAll = false;
      continue;
    }
    for (Sizes sizes : problems)
      for (int head = 0; head < heads; ++head) {
        loaded.place(sizes, head, heads);
        for (int blockN : {48, 128})
          compareRows(loaded, branch, sizes.qOrigin, sizes.seqlenQ, blockN, tally);
      }
  }
  return hasAll;
}

const std::vector<Sizes> problems = {{1, 1, 0, 0},   {3, 0, 0, 0},     {67, 67, 0, 0},  {20, 131, 70, 0},
                                     {45, 30, 0, 0}, {41, 150, -9, 0}, {60, 77, 3, 11}, {33, 90, 5, -20}};

void checkWords(Loaded loaded, const std::vector<Sizes> &sizes = problems) {
  Tally tally;
  CHECK(compareAll(loaded, sizes, tally));
  INFO(loaded.name);
  CHECK(tally.wrong == 0);
  CHECK(tally.bits > 0);
  CHECK(tally.words > 100);
}

} // namespace

/// attn.blocks compares floor(k / S), which is neither a line nor a bound: in partial tiles of these kernels ask pair
/// by pair.
const std::vector<std::string> kFilesWithoutWords = {"block_dilated_heads", "block_strided", "tree_decode", "trees"};

TEST_CASE("every pattern file has words, right at the ends of windows and segments") {
  for (const std::string &path : halfOfLibrary(1)) {
    const std::string name = std::filesystem::path(path).stem().string();
    if (std::find(kFilesWithoutWords.begin(), kFilesWithoutWords.end(), name) != kFilesWithoutWords.end()) {
      Loaded loaded = load(PatternFile::load(path));
      CHECK_FALSE(loaded.text->hasKeptColumns(0));
      continue;
    }
    checkWords(load(PatternFile::load(path)),
               {{37, 37, 0, 0}, {30, 60, 2030, 2000}, {9, 4500, 4090, 0}, {5, 1111, 1023, -60}});
  }
}

TEST_CASE("windows, edges and causal, alone and together") {
  checkWords(parse("%m = attn.causal\n attn.softmax union(%m)"));
  checkWords(parse("%m = attn.window [%l, %r]\n attn.softmax union(%m)", {"l=7", "r=0"}, "%l: i32, %r: i32"));
  checkWords(parse("%a = attn.rows [3, 2]\n %b = attn.cols [5, 4]\n %w = attn.window [6, 9]\n"
                   "%m = attn.or %a, %b, %w\n attn.softmax union(%m)"));
  checkWords(parse("%a = attn.cols [0, 4]\n %n = attn.not %a\n %c = attn.causal\n %m = attn.and %n, %c\n"
                   "attn.softmax union(%m)"));
  checkWords(parse("%a = attn.cols [%n, 0]\n attn.softmax union(%a)", {"n=70"}, "%n: i32"));
  checkWords(parse("%w = attn.window [2, 2]\n %o = attn.not %w\n attn.softmax union(%o)"));
}

TEST_CASE("segments and dilations, where divisions of the key are lines or bounds") {
  checkWords(parse("%c = attn.causal\n %m = attn.segment %c by [%w]\n attn.softmax union(%m)", {"w=13"}, "%w: i32"));
  checkWords(parse("%c = attn.causal\n %d = attn.dilate %c by 3 at 1\n %m = attn.segment %d by [24]\n"
                   "attn.softmax union(%m)"));
  checkWords(parse("%w = attn.window [3, 2]\n %m = attn.dilate %w by 8 rule(every)\n attn.softmax union(%m)"));
  checkWords(parse("%w = attn.window [3, 2]\n %m = attn.dilate %w by 5 rule(block)\n attn.softmax union(%m)"));
  checkWords(parse("%f = attn.full\n %s = attn.segment %f by [10]\n %m = attn.segment %s by [25]\n"
                   "attn.softmax union(%m)"));
  checkWords(parse("%f = attn.full\n %a = attn.dilate %f by 1 rule(group)\n %b = attn.dilate %f by 2 rule(group)\n"
                   "%c = attn.dilate %f by 4 rule(group)\n %x = attn.segment %a by [8]\n %y = attn.segment %b by [16]\n"
                   "%z = attn.segment %c by [32]\n %m = attn.heads %x, %y, %z\n attn.softmax union(%m)"));
}

TEST_CASE("bounds as far away as 32 bits reach") {
  const std::vector<std::string> most = {"l=2147483647", "r=2147483647"};
  const char *arguments = "%l: i32, %r: i32";
  const std::vector<Sizes> far = {
      {20, 60, 0, 0}, {20, 60, 2147000000, 2146999990}, {20, 60, -2147000000, -2146999990}, {9, 40, 1000, -30}};
  checkWords(parse("%m = attn.window [%l, 3]\n attn.softmax union(%m)", most, arguments), far);
  checkWords(parse("%m = attn.window [3, %r]\n attn.softmax union(%m)", most, arguments), far);
  checkWords(parse("%m = attn.window [%l, %r]\n attn.softmax union(%m)", most, arguments), far);
  checkWords(parse("%m = attn.cols [%l, %r]\n attn.softmax union(%m)", most, arguments), {{20, 60, 0, 0}});
  checkWords(parse("%w = attn.window [%l, 1]\n %m = attn.dilate %w by 4 rule(every)\n attn.softmax union(%m)", most,
                   arguments),
             far);
  checkWords(parse("%f = attn.full\n %m = attn.segment %f by [2147483647]\n attn.softmax union(%m)"), far);
}

TEST_CASE("blocks have words, lists too") {
  const std::vector<std::string> most = {"l=2147483647", "r=2147483647"};
  const char *arguments = "%l: i32, %r: i32";
  const std::vector<Sizes> far = {{20, 60, 0, 0}, {20, 60, 2147000000, 2146999990}, {20, 60, -2147000000, -2146999990}};
  for (const char *leaf : {"causal", "window [2, 1]", "window [%l, 1]", "window [0, %r]", "cols [2, 1]",
                           "cols [%l, %r]", "rows [1, 1]", "box [1, 3, 2, 5]", "box [0, %l, 1, %r]", "prefix [3]"})
    for (const char *size : {"4", "7", "1000000007"}) {
      std::string body =
          std::string("%a = attn.") + leaf + "\n%m = attn.blocks %a by [" + size + "]\n attn.softmax union(%m)";
      checkWords(parse(body, most, arguments), std::string(leaf).find("cols") == 0 ? problems : far);
    }
  for (const char *options : {"count 3 seed 4", "count 2 seed 9 per_head", "count %l seed %r"}) {
    const std::string random = std::string("%r0 = attn.random ") + options + "\n";
    for (const char *rest : {"%m = attn.blocks %r0 by [8]", "%m = attn.or %r0, %r0", "%m = attn.segment %r0 by [20]",
                             "%w = attn.window [1, 1] %u = attn.or %r0, %w %m = attn.blocks %u by [16]",
                             "%b = attn.blocks %r0 by [5] %c = attn.causal %n = attn.not %b %m = attn.and %n, %c"})
      checkWords(parse(random + rest + "\n attn.softmax union(%m)", most, arguments));
  }
}

/// In the tiles of `side` rows and keys that the rows visit, the words of the band against the predicate.
Tally compareBand(const Loaded &loaded, int side) {
  Tally tally;
  const JitContext &c = loaded.context;
  const uint32_t inTile = side / 4 < 32 ? (1u << side / 4) - 1 : 0xffffffff; // a lane has every fourth column
  for (int first = 0; first < c.seqlenQ; first += side) {
    const int last = std::min(first + side, c.seqlenQ) - 1;
    for (JitKeyRange run{0, 0, 0, 0, 0}; run.end < 0x7fffffff;) {
      run = loaded.text->nextRange(c, {0, 0, first, last, side}, run.end);
      for (int tile = run.begin; tile < run.end; ++tile)
        for (int q = first; q <= last; ++q)
          for (int quad = 0; quad < 4; ++quad) {
            const uint32_t expected = wordByPredicate(loaded, 0, q, int64_t(tile) * side + 2 * quad, 1) & inTile;
            tally.wrong += (loaded.text->bandColumns(c, 0, q, tile * side + 2 * quad) & inTile) != expected;
            tally.bits += __builtin_popcount(expected);
            ++tally.words;
          }
    }
  }
  return tally;
}

TEST_CASE("in visited tiles inside the banded grain, the words of the band are those of the predicate") {
  struct Case {
    const char *name;
    int side;
  };
  for (const Case &one : {Case{"random_blocks_causal", 128},
                          {"random_blocks_causal", 64},
                          {"bigbird_causal", 64},
                          {"bigbird_causal", 32},
                          {"block_topk", 64}}) {
    CAPTURE(one.name);
    Loaded loaded = load(PatternFile::load(test::places().patterns + "/" + one.name + ".mlir"));
    REQUIRE(loaded.text->hasBandColumns());
    loaded.place({700, 750, 0, 0}, 1, 4);
    const Tally tally = compareBand(loaded, one.side);
    CHECK(tally.wrong == 0);
    CHECK(tally.bits > 1000);
  }
  const std::string blocks = "%a = attn.random count 4 seed 5\n %b = attn.blocks %a by [32]\n";
  Loaded window = parse(blocks + "%c = attn.window [%l, %r]\n %m = attn.and %b, %c\n attn.softmax union(%m)",
                        {"l=70", "r=9"}, "%l: i32, %r: i32");
  window.place({300, 400, 0, 0}, 0, 1);
  CHECK(compareBand(window, 32).wrong == 0);
  CHECK(compareBand(window, 32).bits > 100);
  CHECK_FALSE(load(PatternFile::load(test::places().patterns + "/random_blocks.mlir")).text->hasBandColumns());
}

TEST_CASE("a predicate of comparisons has words, a hash of the key has none") {
  auto predicate = [](const std::string &ops) {
    return parse("%m = attn.predicate {\n^bb0(%b: i32, %h: i32, %q: i32, %k: i32):\n" + ops +
                 "attn.yield %t : i1\n}\nattn.softmax union(%m)");
  };
  checkWords(predicate("%c2 = arith.constant 2 : i32\n %x = arith.muli %k, %c2 : i32\n"
                       "%t = arith.cmpi sle, %x, %q : i32\n"));
  checkWords(predicate("%c3 = arith.constant 3 : i32\n %x = arith.muli %k, %c3 : i32\n %y = arith.subi %q, %x : i32\n"
                       "%c = arith.constant -40 : i32\n %t = arith.cmpi sgt, %y, %c : i32\n"));
  checkWords(predicate("%x = arith.subi %q, %k : i32\n %c = arith.constant 5 : i32\n"
                       "%y = arith.cmpi sge, %x, %c : i32\n %c4 = arith.constant -4 : i32\n"
                       "%z = arith.muli %k, %c4 : i32\n %u = arith.cmpi slt, %z, %q : i32\n"
                       "%t = arith.andi %y, %u : i1\n"));
  checkWords(predicate("%x = arith.cmpi slt, %q, %k : i32\n %y = arith.cmpi eq, %q, %k : i32\n"
                       "%z = arith.xori %x, %y : i1\n %u = arith.cmpi slt, %h, %q : i32\n"
                       "%t = arith.select %u, %z, %x : i1\n"));
  checkWords(
      predicate("%c = arith.constant 9 : i32\n %x = arith.cmpi ne, %k, %c : i32\n %y = arith.cmpi sge, %k, %q : i32\n"
                "%t = arith.select %y, %x, %y : i1\n"));
  for (const char *ops : {"%c7 = arith.constant 7 : i32\n %x = arith.andi %k, %c7 : i32\n"
                          "%t = arith.cmpi slt, %x, %h : i32\n",
                          "%x = arith.muli %k, %q : i32\n %t = arith.cmpi slt, %x, %h : i32\n",
                          "%c5 = arith.constant 5 : i32\n %x = arith.remsi %k, %c5 : i32\n"
                          "%t = arith.cmpi slt, %x, %h : i32\n",
                          "%t = arith.cmpi ult, %k, %q : i32\n"})
    CHECK(!predicate(ops).text->hasKeptColumns(0));
}

TEST_CASE("branches have words each for itself") {
  Loaded loaded = parse("%c = attn.causal\n %s = attn.stride k by 3 at 1\n %d = attn.cols [6, 0]\n"
                        "%n = attn.not %s\n attn.softmax lse(%c, %n, %d)");
  CHECK(loaded.text->hasKeptColumns(0));
  CHECK(!loaded.text->hasKeptColumns(1));
  CHECK(loaded.text->hasKeptColumns(2));
  Tally tally;
  CHECK(!compareAll(loaded, problems, tally));
  CHECK(tally.wrong == 0);
}

TEST_CASE("random compositions") {
  // Each is compiled by the host compiler: 12 patterns; 400 with HEDDLE_TEST_ALL=1.
  const char *all = std::getenv("HEDDLE_TEST_ALL");
  long wanted = all && *all != '0' ? 400 : 12, compared = 0;
  for (uint32_t seed = 1; compared < wanted; ++seed) {
    REQUIRE(seed < 100 * uint32_t(wanted));
    std::mt19937 random(seed);
    RandomCase made = randomCase(random, 4);
    std::vector<int64_t> parameters;
    auto file = PatternFile::parse(made.text(parameters), "random");
    if (!file.isOk())
      continue;
    std::vector<std::string> assignments;
    for (size_t i = 0; i < parameters.size(); ++i)
      assignments.push_back("p" + std::to_string(i) + "=" + std::to_string(parameters[i]));
    Loaded loaded = load(std::move(file), assignments);
    Tally tally;
    compareAll(loaded, {{int(made.seqlenQ), int(made.seqlenK), int(made.qOrigin), int(made.kOrigin)}}, tally,
               int(made.heads));
    compared += tally.bits > 0;
    CHECK_MESSAGE(tally.wrong == 0, made.describe());
  }
}
