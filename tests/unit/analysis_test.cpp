//===- analysis_test.cpp - tiles and counts against the definition --------===//
// Every op alone, conjunctions on one lattice, unions and pullbacks, at odd lengths and tile shapes.
//===----------------------------------------------------------------------===//
#include "dialect/Geometry/Piece.h"
#include "dialect/Geometry/Lattice.h"
#include "tests/unit/support/AnalysisChecks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <doctest/doctest.h>

using namespace heddle;
using namespace heddle::attn;

namespace {

struct Parsed {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  PatternOp pattern;
};

std::unique_ptr<Parsed> parse(const std::string &arguments, const std::string &body) {
  auto parsed = std::make_unique<Parsed>();
  parsed->context.loadDialect<AttnDialect, mlir::arith::ArithDialect>();
  parsed->module =
      mlir::parseSourceString<mlir::ModuleOp>("attn.pattern @p(" + arguments + ") {" + body + "}", &parsed->context);
  REQUIRE(parsed->module);
  parsed->pattern = *parsed->module->getOps<PatternOp>().begin();
  return parsed;
}

const std::vector<TileShape> kShapes = {{1, 1}, {4, 4}, {7, 3}, {16, 8}, {48, 64}, {64, 48}, {128, 128}};

std::vector<oracle::Problem> problems(std::vector<int64_t> parameters) {
  std::vector<oracle::Problem> result;
  auto add = [&](int64_t heads, int64_t q, int64_t k, int64_t qOrigin, int64_t kOrigin) {
    result.push_back({heads, q, k, qOrigin, kOrigin, parameters});
  };
  add(1, 0, 5, 0, 0);
  add(1, 5, 0, 0, 0);
  add(2, 1, 1, 0, 0);
  add(3, 37, 37, 0, 0);
  add(2, 23, 41, 18, 0);
  add(2, 40, 19, 0, 0);
  add(1, 19, 40, 0, 0);
  add(2, 30, 12, -18, 0);
  add(1, 21, 33, 7, 3);
  add(1, 70, 70, 0, 0);
  return result;
}

void check(const std::string &body, const std::string &arguments = "", std::vector<int64_t> parameters = {}) {
  CAPTURE(body);
  auto parsed = parse(arguments, body);
  PatternAnalysis analysis = analyze(parsed->pattern);
  for (const oracle::Problem &problem : problems(parameters))
    for (TileShape shape : kShapes) {
      CAPTURE(shape.rows);
      CAPTURE(shape.columns);
      std::string account = oracle::checkPattern(parsed->pattern, analysis, problem, shape);
      CHECK_MESSAGE(account.empty(), account);
      if (!account.empty())
        return;
    }
}

std::string unionOf(const std::string &ops) { return ops + "\n attn.softmax union(%m)"; }

} // namespace

TEST_CASE("leaves alone") {
  check(unionOf("%m = attn.full"));
  check(unionOf("%m = attn.causal"));
  check(unionOf("%m = attn.window [3, 2]"));
  check(unionOf("%m = attn.window [0, 0]"));
  check(unionOf("%m = attn.window [50, 0]"));
  check(unionOf("%m = attn.window [%a, %b]"), "%a: i32, %b: i32", {5, 9});
  check(unionOf("%m = attn.rows [3, 0]"));
  check(unionOf("%m = attn.rows [0, 5]"));
  check(unionOf("%m = attn.rows [4, 6]"));
  check(unionOf("%m = attn.cols [3, 2]"));
  check(unionOf("%m = attn.cols [%g, 0]"), "%g: i32", {17});
  check(unionOf("%m = attn.box [3, 20, 5, 31]"));
  check(unionOf("%m = attn.box [0, 70, 0, 1]"));
  check(unionOf("%m = attn.box [%a, %b, 0, %c]"), "%a: i32, %b: i32, %c: i32", {8, 25, 17});
  check(unionOf("%m = attn.prefix [0]"));
  check(unionOf("%m = attn.prefix [11]"));
  check(unionOf("%m = attn.prefix [%p]"), "%p: i32", {26});
  check(unionOf("%m = attn.stride q by 3 at 1"));
  check(unionOf("%m = attn.stride k by 4 at 3"));
  check(unionOf("%m = attn.stride k by 3 rule(modulo)"));
}

TEST_CASE("complements of leaves") {
  check(unionOf("%a = attn.full  %m = attn.not %a"));
  check(unionOf("%a = attn.causal  %m = attn.not %a"));
  check(unionOf("%a = attn.window [3, 2]  %m = attn.not %a"));
  check(unionOf("%a = attn.rows [4, 6]  %m = attn.not %a"));
  check(unionOf("%a = attn.cols [4, 6]  %m = attn.not %a"));
  check(unionOf("%a = attn.box [3, 20, 5, 31]  %m = attn.not %a"));
  check(unionOf("%a = attn.box [%a0, %b0, 5, 31]  %m = attn.not %a"), "%a0: i32, %b0: i32", {20, 3});
  check(unionOf("%a = attn.prefix [11]  %m = attn.not %a"));
  check(unionOf("%a = attn.stride q by 3 at 1  %m = attn.not %a"));
  check(unionOf("%a = attn.stride k by 4 at 1  %m = attn.not %a"));
}

TEST_CASE("a prefix is full wherever it keeps every pair") {
  // Two pieces, and yet every full tile is known: one of them keeps all of it.
  auto parsed = parse("", unionOf("%m = attn.prefix [21]"));
  PatternAnalysis analysis = analyze(parsed->pattern);
  ProblemSizes sizes{1, 64, 64, 0, 0, {}};
  for (TileShape shape : kShapes) {
    int64_t full = 0;
    for (int64_t row = 0; row < 64; row += shape.rows)
      for (int64_t column = 0; column < 64; column += shape.columns)
        full += std::min<int64_t>(column + shape.columns, 64) - 1 <= std::max<int64_t>(row, 20);
    CHECK(countTiles(analysis, sizes, shape, Direction::Forward).full == full);
  }
}

TEST_CASE("what keeps nothing") {
  const std::string arguments = "%a: i32, %b: i32";
  const std::vector<int64_t> inverted = {9, 4};
  for (const char *body : {"%m = attn.box [4, 4, 0, 9]", "%m = attn.box [0, 9, 7, 7]", "%m = attn.box [%a, %b, 0, 9]",
                           "%f = attn.prefix [0] %c = attn.causal %n = attn.not %c %m = attn.and %f, %n"}) {
    check(unionOf(body), arguments, inverted);
    auto parsed = parse(arguments, unionOf(body));
    PatternAnalysis analysis = analyze(parsed->pattern);
    ProblemSizes sizes{2, 40, 40, 0, 0, inverted};
    CHECK(countPairs(analysis, sizes) == std::optional<WideInt>(0));
    CHECK(countTiles(analysis, sizes, {8, 8}, Direction::Forward).visited == 0);
  }
}

TEST_CASE("segments") {
  check(unionOf("%a = attn.full  %m = attn.segment %a by [8]"));
  check(unionOf("%a = attn.causal  %m = attn.segment %a by [7]"));
  check(unionOf("%a = attn.window [2, 1]  %m = attn.segment %a by [10]"));
  check(unionOf("%a = attn.rows [2, 1]  %m = attn.segment %a by [10]"));
  check(unionOf("%a = attn.cols [2, 1]  %m = attn.segment %a by [9]"));
  check(unionOf("%a = attn.causal  %m = attn.segment %a by [%w]"), "%w: i32", {13});
  check(unionOf("%a = attn.box [2, 5, 0, 7]  %m = attn.segment %a by [10]"));
  check(unionOf("%a = attn.prefix [3]  %m = attn.segment %a by [10]"));
  check(unionOf("%a = attn.causal  %m = attn.segment %a by [1]"));
  check(unionOf("%a = attn.causal %b = attn.segment %a by [4] %m = attn.segment %b by [10]"));
  check(unionOf("%a = attn.causal %b = attn.segment %a by [10] %m = attn.segment %b by [4]"));
  check(unionOf("%a = attn.causal %b = attn.segment %a by [8] %m = attn.not %b"));
}

TEST_CASE("dilation") {
  check(unionOf("%a = attn.full  %m = attn.dilate %a by 4 at 0"));
  check(unionOf("%a = attn.causal  %m = attn.dilate %a by 3 at 2"));
  check(unionOf("%a = attn.window [2, 1]  %m = attn.dilate %a by 4 rule(every)"));
  check(unionOf("%a = attn.window [0, 0]  %m = attn.dilate %a by 4 rule(every)"));
  check(unionOf("%a = attn.causal  %m = attn.dilate %a by 2 rule(block)"));
  check(unionOf("%a = attn.causal  %m = attn.dilate %a by 5 rule(modulo)"));
  check(unionOf("%a = attn.rows [1, 2]  %m = attn.dilate %a by 3 rule(every)"));
  check(unionOf("%a = attn.cols [1, 2]  %m = attn.dilate %a by 3 at 1"));
  check(unionOf("%a = attn.box [1, 6, 2, 9]  %m = attn.dilate %a by 3 at 1"));
  check(unionOf("%a = attn.prefix [4]  %m = attn.dilate %a by 4 rule(every)"));
  check(unionOf("%a = attn.causal %b = attn.dilate %a by 2 at 1 %m = attn.dilate %b by 3 at 1"));
  check(unionOf("%a = attn.causal %b = attn.dilate %a by 2 rule(every) %m = attn.not %b"));
  check(unionOf("%a = attn.causal %b = attn.dilate %a by 3 at 1 %m = attn.not %b"));
}

TEST_CASE("segments and dilation nested") {
  check(unionOf("%a = attn.full %b = attn.dilate %a by 2 at 1 %m = attn.segment %b by [8]"));
  check(unionOf("%a = attn.causal %b = attn.dilate %a by 3 at 1 %m = attn.segment %b by [8]"));
  check(unionOf("%a = attn.causal %b = attn.dilate %a by 3 rule(every) %m = attn.segment %b by [8]"));
  check(unionOf("%a = attn.causal %b = attn.segment %a by [5] %m = attn.dilate %b by 3 at 1"));
  check(unionOf("%a = attn.window [1, 1] %b = attn.segment %a by [5] %m = attn.dilate %b by 2 rule(every)"));
  check(unionOf("%a = attn.stride k by 3 at 1 %m = attn.segment %a by [6]"));
  check(unionOf("%a = attn.stride k by 3 at 1 %m = attn.segment %a by [7]"));
  check(unionOf("%a = attn.stride q by 3 at 1 %m = attn.segment %a by [7]"));
  check(unionOf("%a = attn.full %b = attn.dilate %a by 8 at 5 %m = attn.segment %b by [4]"));
}

TEST_CASE("blocks") {
  auto blocks = [](const std::string &inner, const std::string &by = "4") {
    return unionOf(inner + " %m = attn.blocks %a by [" + by + "]");
  };
  for (const char *size : {"1", "4", "7", "64"}) {
    check(blocks("%a = attn.full", size));
    check(blocks("%a = attn.causal", size));
    check(blocks("%a = attn.window [2, 1]", size));
    check(blocks("%a = attn.window [0, 0]", size));
    check(blocks("%a = attn.rows [1, 2]", size));
    check(blocks("%a = attn.cols [2, 1]", size));
    check(blocks("%a = attn.box [1, 3, 0, 2]", size));
    check(blocks("%a = attn.prefix [2]", size));
    check(blocks("%a = attn.stride q by 3 at 1", size));
    check(blocks("%a = attn.stride k by 3 at 1", size));
  }
  check(unionOf("%a = attn.window [%l, 0] %m = attn.blocks %a by [%s]"), "%l: i32, %s: i32", {2, 5});
  for (const char *leaf : {"causal", "window [1, 1]", "rows [1, 1]", "cols [1, 1]", "box [1, 3, 2, 4]", "prefix [2]",
                           "stride q by 2 rule(modulo)"})
    check(unionOf(std::string("%a = attn.") + leaf + " %b = attn.blocks %a by [5] %m = attn.not %b"));
}

TEST_CASE("random cells") {
  check(unionOf("%m = attn.random count 0 seed 1"));
  check(unionOf("%m = attn.random count 3 seed 1"));
  check(unionOf("%m = attn.random count 2 seed 9 per_head"));
  check(unionOf("%m = attn.random count 1000 seed 4"));
  check(unionOf("%m = attn.random count %c seed %s"), "%c: i32, %s: i32", {4, 123456789});
  check(unionOf("%a = attn.random count 3 seed 2 %m = attn.segment %a by [10]"));
  check(unionOf("%a = attn.random count 2 seed 2 per_head %m = attn.dilate %a by 3 at 1"));
  check(unionOf("%a = attn.random count 2 seed 2 %m = attn.dilate %a by 2 rule(every)"));
  check(unionOf("%a = attn.random count 2 seed 2 %b = attn.dilate %a by 2 rule(every) %m = attn.segment %b by [9]"));
  check(unionOf("%a = attn.random count 9 seed 2 %b = attn.stride k by 3 at 1 %m = attn.and %a, %b"));
  check(unionOf("%a = attn.random count 9 seed 2 %b = attn.stride q by 3 at 1 %m = attn.and %a, %b"));
  check(unionOf("%a = attn.random count 4 seed 2 %b = attn.random count 4 seed 3 %m = attn.and %a, %b"));
  check(unionOf("%a = attn.random count 4 seed 2 %b = attn.random count 4 seed 3 %m = attn.or %a, %b"));
  check(unionOf("%a = attn.random count 4 seed 2 %b = attn.causal %c = attn.and %a, %b %m = attn.and %c, %a"));
  check(unionOf("%a = attn.random count 4 seed 2 %m = attn.not %a"));
}

TEST_CASE("random blocks") {
  for (const char *size : {"1", "3", "7", "16", "64"}) {
    auto blocks = [&](const std::string &inner) {
      check(unionOf(inner + " %m = attn.blocks %a by [" + std::string(size) + "]"));
    };
    blocks("%a = attn.random count 2 seed 5");
    blocks("%a = attn.random count 2 seed 5 per_head");
    blocks("%r = attn.random count 3 seed 6 %c = attn.causal %a = attn.and %r, %c");
    blocks("%r = attn.random count 1 seed 6 %w = attn.window [1, 1] %g = attn.cols [1, 0] %h = attn.rows [1, 0] "
           "%a = attn.or %r, %w, %g, %h");
  }
  const std::string random = "%r = attn.random count 4 seed 8 ";
  check(unionOf(random + "%b = attn.blocks %r by [%s] %c = attn.causal %m = attn.and %b, %c"), "%s: i32", {5});
  check(unionOf(random + "%b = attn.blocks %r by [4] %w = attn.window [6, 0] %m = attn.and %b, %w"));
  check(unionOf(random + "%b = attn.blocks %r by [4] %m = attn.segment %b by [18]"));
  check(unionOf(random + "%b = attn.segment %r by [3] %m = attn.blocks %b by [4]"));
  check(unionOf(random + "%b = attn.blocks %r by [3] %m = attn.dilate %b by 2 at 1"));
  check(unionOf(random + "%b = attn.blocks %r by [3] %m = attn.dilate %b by 3 rule(every)"));
  check(unionOf(random + "%b = attn.blocks %r by [3] %c = attn.stride k by 2 at 0 %m = attn.and %b, %c"));
  check(unionOf(random + "%b = attn.blocks %r by [3] %c = attn.stride k by 5 at 2 %m = attn.and %b, %c"));
  check(unionOf(random + "%b = attn.blocks %r by [6] %c = attn.box [3, 50, 8, 44] %m = attn.and %b, %c"));
  check(unionOf("%r = attn.random count 2 seed 8 %t = attn.random count 2 seed 8 per_head %h = attn.heads %r, %t "
                "%m = attn.blocks %h by [4]"));
}

TEST_CASE("full tiles of random blocks are all found where tiles divide blocks") {
  auto parsed = parse("", unionOf("%r = attn.random count 2 seed 5 %m = attn.blocks %r by [16]"));
  PatternAnalysis analysis = analyze(parsed->pattern);
  ProblemSizes sizes{2, 100, 100, 0, 0, {}};
  for (Direction direction : {Direction::Forward, Direction::Transposed})
    for (TileShape shape : {TileShape{1, 1}, {4, 8}, {8, 4}, {16, 16}}) {
      TileCounts counts = countTiles(analysis, sizes, shape, direction);
      CHECK(counts.visited > 0);
      CHECK(counts.full == counts.visited);
    }
}

TEST_CASE("lists that are too long to be read give bounds") {
  auto parsed =
      parse("", unionOf("%r = attn.random count 3 seed 5 %b = attn.blocks %r by [16] %w = attn.window [64, 0] "
                        "%m = attn.or %b, %w"));
  PatternAnalysis analysis = analyze(parsed->pattern);
  ProblemSizes few{1, 16 * 40000, 16 * 40000, 0, 0, {}}, many{1, 16 * 400000, 16 * 400000, 0, 0, {}};
  CHECK_FALSE(hasLongLists(analysis, few));
  CHECK(countPairs(analysis, few).has_value());
  CHECK(hasLongLists(analysis, many));
  CHECK_FALSE(countPairs(analysis, many).has_value());
  TileCounts exact = countTiles(analysis, few, {64, 64}, Direction::Forward);
  TileCounts bound = countTiles(analysis, many, {64, 64}, Direction::Forward);
  CHECK_FALSE(exact.isBound);
  CHECK(bound.isBound);
  CHECK(bound.visited > exact.visited);
  CHECK(bound.full <= exact.full + exact.full / 4 + 1);
}

TEST_CASE("blocks composed") {
  check(unionOf("%a = attn.window [1, 1] %b = attn.blocks %a by [4] %c = attn.causal %m = attn.and %b, %c"));
  check(unionOf("%a = attn.window [2, 2] %b = attn.window [1, 1] %n = attn.not %b %c = attn.and %a, %n "
                "%m = attn.blocks %c by [4]"));
  check(unionOf("%a = attn.causal %b = attn.blocks %a by [3] %m = attn.segment %b by [10]"));
  check(unionOf("%a = attn.window [1, 0] %b = attn.segment %a by [3] %m = attn.blocks %b by [4]"));
  check(unionOf("%a = attn.causal %b = attn.blocks %a by [3] %m = attn.dilate %b by 2 at 1"));
  check(unionOf("%a = attn.window [1, 0] %b = attn.blocks %a by [3] %m = attn.dilate %b by 3 rule(every)"));
  check(unionOf("%a = attn.window [1, 1] %b = attn.blocks %a by [3] %m = attn.blocks %b by [2]"));
  check(unionOf("%a = attn.window [1, 1] %b = attn.blocks %a by [6] %c = attn.blocks %a by [4] %m = attn.and %b, %c"));
  check(unionOf("%a = attn.full %b = attn.dilate %a by 2 rule(every) %m = attn.blocks %b by [4]"));
  check(
      unionOf("%a = attn.window [0, 0] %s = attn.stride k by 3 at 1 %b = attn.and %a, %s %m = attn.blocks %b by [4]"));
}

TEST_CASE("tiles across many segments") {
  check(unionOf("%a = attn.causal %m = attn.segment %a by [1]"));
  check(unionOf("%a = attn.full %m = attn.segment %a by [2]"));
  check(unionOf("%a = attn.rows [1, 1] %m = attn.segment %a by [3]"));
  check(unionOf("%a = attn.box [1, 3, 2, 4] %m = attn.segment %a by [5]"));
  check(unionOf("%a = attn.cols [1, 0] %m = attn.segment %a by [16]")); // more than a tile between cells
  check(unionOf("%a = attn.full %d = attn.dilate %a by 2 at 1 %m = attn.segment %d by [3]"));
  check(unionOf("%a = attn.full %d = attn.dilate %a by 3 rule(every) %m = attn.segment %d by [4]"));
  check(unionOf("%a = attn.causal %b = attn.segment %a by [2] %m = attn.segment %b by [5]"));
  check(unionOf("%a = attn.window [3, 0] %b = attn.blocks %a by [2] %m = attn.segment %b by [%s]"), "%s: i32", {7});
  check(unionOf("%a = attn.full %b = attn.segment %a by [2] %n = attn.not %b %m = attn.segment %n by [8]"));
}

TEST_CASE("blocks thinned out") {
  for (const char *size : {"1", "3", "7", "16"}) {
    auto blocks = [&](const std::string &inner) {
      check(unionOf(inner + " %m = attn.blocks %a by [" + std::string(size) + "]"));
    };
    blocks("%w = attn.window [2, 1] %a = attn.dilate %w by 2 rule(every)");
    blocks("%w = attn.window [0, 3] %a = attn.dilate %w by 3 rule(every)");
    blocks("%w = attn.window [4, 4] %v = attn.window [1, 0] %n = attn.not %v %b = attn.and %w, %n %a = attn.dilate %b "
           "by 2 rule(every)");
    blocks("%w = attn.window [2, 2] %d = attn.dilate %w by 2 rule(every) %e = attn.dilate %w by 3 rule(every) %a = "
           "attn.heads %w, %d, %e");
    blocks("%w = attn.window [1, 1] %d = attn.dilate %w by 2 rule(every) %a = attn.not %d");
    blocks("%c = attn.causal %a = attn.dilate %c by 2 rule(every)");
    blocks("%w = attn.window [2, 2] %a = attn.dilate %w by 2 rule(modulo)");
    blocks("%w = attn.window [2, 2] %s = attn.dilate %w by 2 rule(every) %a = attn.dilate %s by 2 rule(every)");
  }
  const std::string thinned =
      "%w = attn.window [2, 1] %d = attn.dilate %w by 2 rule(every) %b = attn.blocks %d by [3] ";
  check(unionOf(thinned + "%c = attn.causal %m = attn.and %b, %c"));
  check(unionOf(thinned + "%m = attn.segment %b by [20]"));
  check(unionOf(thinned + "%m = attn.dilate %b by 2 at 1"));
  check(unionOf(thinned + "%c = attn.stride k by 2 at 1 %m = attn.and %b, %c"));
  check(unionOf(thinned + "%c = attn.cols [5, 0] %m = attn.or %b, %c"));
  check(unionOf("%w = attn.window [%l, %r] %d = attn.dilate %w by 2 rule(every) %m = attn.blocks %d by [%s]"),
        "%l: i32, %r: i32, %s: i32", {1, 2, 5});
  check(unionOf("%w = attn.window [%l, %r] %d = attn.dilate %w by 5 rule(every) %m = attn.blocks %d by [4]"),
        "%l: i32, %r: i32", {2000000000, 2147483647});
}

TEST_CASE("blocks have closed forms") {
  auto isExact = [](const std::string &inner, Direction direction) {
    auto parsed = parse("", unionOf(inner + " %m = attn.blocks %a by [4]"));
    PatternAnalysis analysis = analyze(parsed->pattern);
    const Variant &variant = analysis.variants[0];
    return !(direction == Direction::Forward ? variant.forward : variant.transposed).branches[0].masked;
  };
  for (const char *leaf :
       {"full", "causal", "window [2, 1]", "rows [1, 2]", "cols [2, 1]", "box [1, 3, 0, 2]", "prefix [2]"})
    for (Direction direction : {Direction::Forward, Direction::Transposed})
      CHECK(isExact(std::string("%a = attn.") + leaf, direction));
  for (const char *axis : {"q", "k"})
    for (Direction direction : {Direction::Forward, Direction::Transposed})
      CHECK(isExact(std::string("%a = attn.stride ") + axis + " by 3 at 1", direction));
  CHECK(isExact("%w = attn.window [0, 0] %s = attn.stride k by 3 at 1 %a = attn.and %w, %s", Direction::Forward));
  for (Direction direction : {Direction::Forward, Direction::Transposed}) {
    CHECK(isExact("%w = attn.window [5, 3] %a = attn.dilate %w by 3 rule(every)", direction));
    CHECK(isExact("%c = attn.causal %a = attn.dilate %c by 3 rule(every)", direction));
    CHECK(!isExact("%c = attn.cols [2, 0] %a = attn.dilate %c by 3 rule(every)", direction));
    CHECK(!isExact("%w = attn.window [5, 3] %a = attn.dilate %w by 3 at 1", direction));
  }
}

TEST_CASE("bands that sizes make empty") {
  for (std::vector<int64_t> sizes : {std::vector<int64_t>{5, 3}, {3, 3}, {3, 5}, {0, 0}, {40, 1}}) {
    check(unionOf("%w = attn.window [0, %a] %v = attn.window [0, %b] %n = attn.not %w %m = attn.and %n, %v"),
          "%a: i32, %b: i32", sizes);
    check(unionOf("%w = attn.window [%a, 9] %v = attn.window [%b, 9] %n = attn.not %w %i = attn.and %n, %v %m = "
                  "attn.dilate %i by 3 rule(every)"),
          "%a: i32, %b: i32", sizes);
    check(unionOf("%w = attn.window [0, %a] %v = attn.window [0, %b] %n = attn.not %w %i = attn.and %n, %v %m = "
                  "attn.segment %i by [17]"),
          "%a: i32, %b: i32", sizes);
  }
}

TEST_CASE("bands that no size makes empty are not asked whether they are") {
  for (const char *mask :
       {"%m = attn.window [%a, %b]", "%w = attn.window [%a, 0] %c = attn.causal %m = attn.and %w, %c",
        "%w = attn.window [%a, %b] %m = attn.dilate %w by 4 rule(every)",
        "%w = attn.window [7, %b] %m = attn.segment %w by [100]"}) {
    auto parsed = parse("%a: i32, %b: i32", unionOf(mask));
    const PatternAnalysis analysis = analyze(parsed->pattern);
    for (const Piece &piece : analysis.variants[0].branches[0])
      CHECK(isNeverEmpty(piece.diagonal));
  }
}

TEST_CASE("conjunctions") {
  check(unionOf("%a = attn.causal %b = attn.window [5, 5] %m = attn.and %a, %b"));
  check(unionOf("%a = attn.causal %b = attn.cols [4, 0] %m = attn.and %a, %b"));
  check(unionOf("%a = attn.causal %b = attn.rows [0, 5] %m = attn.and %a, %b"));
  check(unionOf("%a = attn.causal %b = attn.stride k by 4 at 2 %m = attn.and %a, %b"));
  check(unionOf("%a = attn.stride q by 2 at 1 %b = attn.stride k by 3 at 2 %m = attn.and %a, %b"));
  check(unionOf("%a = attn.stride k by 2 at 1 %b = attn.stride k by 3 at 2 %m = attn.and %a, %b"));
  check(unionOf("%a = attn.stride k by 4 at 1 %b = attn.stride k by 6 at 3 %m = attn.and %a, %b"));
  check(unionOf("%a = attn.stride k by 4 at 1 %b = attn.stride k by 6 at 2 %m = attn.and %a, %b"));
  check(unionOf("%a = attn.causal %s = attn.segment %a by [12] %b = attn.window [4, 0] %m = attn.and %s, %b"));
  check(unionOf("%a = attn.causal %s = attn.segment %a by [12] %t = attn.segment %a by [5] %m = attn.and %s, %t"));
  check(unionOf(
      "%f = attn.full %a = attn.dilate %f by 2 rule(every) %b = attn.dilate %f by 3 at 1 %m = attn.and %a, %b"));
}

TEST_CASE("classes of keys stay within the rates that kernels count with") {
  const std::string mask =
      unionOf("%a = attn.stride k by 4194303 at 7 %b = attn.stride k by 4194301 at 7 %m = attn.and %a, %b");
  check(mask);
  auto parsed = parse("", mask);
  const PatternAnalysis analysis = analyze(parsed->pattern);
  const BranchRanges &branch = analysis.variants[0].forward.branches[0];
  CHECK(branch.columnRate <= kMaxRate);
  CHECK(branch.masked);
}

TEST_CASE("unions") {
  check(unionOf("%a = attn.window [4, 4] %b = attn.rows [3, 0] %c = attn.cols [3, 0] %m = attn.or %a, %b, %c"));
  check(unionOf("%a = attn.window [2, 2] %b = attn.cols [0, 3] %m = attn.or %a, %b"));
  check(unionOf("%a = attn.causal %b = attn.not %a %m = attn.or %a, %b"));
  check(unionOf("%a = attn.window [1, 0] %b = attn.stride k by 4 at 3 %c = attn.or %a, %b %d = attn.causal %m = "
                "attn.and %c, %d"));
  check(unionOf("%a = attn.window [2, 2] %b = attn.dilate %a by 4 rule(every) %m = attn.or %a, %b"));
}

TEST_CASE("heads and branches") {
  const char *partition = R"(
    %f = attn.full
    %d0 = attn.dilate %f by 1 at 0
    %d1 = attn.dilate %f by 2 rule(group)
    %d2 = attn.dilate %f by 4 rule(group)
    %s0 = attn.segment %d0 by [8]
    %s1 = attn.segment %d1 by [16]
    %s2 = attn.segment %d2 by [32]
    %m = attn.heads %s0, %s1, %s2)";
  check(unionOf(partition));
  check("%c = attn.causal %d = attn.dilate %c by 2 rule(block) %a = attn.segment %c by [4] %b = attn.segment %d by [8] "
        "attn.softmax lse(%a, %b) gradient(detached)");
  check("%c = attn.causal %w = attn.window [3, 3] %d = attn.dilate %w by 2 rule(every) attn.softmax lse(%c, %d, %c)");
}

TEST_CASE("predicates are masked, not wrong") {
  check(unionOf(R"(%p = attn.predicate {
    ^bb0(%b: i32, %h: i32, %q: i32, %k: i32):
      %c7 = arith.constant 7 : i32
      %x = arith.remsi %k, %c7 : i32
      %y = arith.cmpi eq, %x, %h : i32
      attn.yield %y : i1
    }
    %c = attn.causal
    %m = attn.and %p, %c)"));
}

TEST_CASE("a billion tokens are counted exactly") {
  auto parsed = parse("", unionOf("%m = attn.causal"));
  PatternAnalysis analysis = analyze(parsed->pattern);
  int64_t n = int64_t(1) << 30;
  ProblemSizes sizes{16, n, n, 0, 0, {}};
  CHECK(countPairs(analysis, sizes) == std::optional<WideInt>(WideInt(16) * n * (n + 1) / 2));
  TileCounts counts = countTiles(analysis, sizes, {128, 128}, Direction::Forward);
  WideInt tiles = n / 128;
  CHECK(counts.visited == 16 * tiles * (tiles + 1) / 2);
  CHECK(counts.full == 16 * tiles * (tiles - 1) / 2);
}

TEST_CASE("key blocks at a stride are counted exactly at a billion tokens, tiles by way of the other axis") {
  auto parsed = parse("", unionOf("%s = attn.stride k by 4 at 0 %w = attn.window [1, 1] %a = attn.or %s, %w "
                                  "%m = attn.blocks %a by [128]"));
  PatternAnalysis analysis = analyze(parsed->pattern);
  const int64_t n = int64_t(1) << 30, blocks = n / 128;
  ProblemSizes sizes{1, n, n, 0, 0, {}};
  // A quarter of the keys; of the query's block and the two beside it those that the quarter lacks. Two are beyond the
  // ends, of which one is of the quarter.
  const WideInt tiles = WideInt(blocks) * (blocks / 4) + WideInt(3) * blocks / 4 * 3 - 1;
  CHECK(countPairs(analysis, sizes) == std::optional<WideInt>(tiles * 128 * 128));
  for (Direction direction : {Direction::Forward, Direction::Transposed}) {
    TileCounts counts = countTiles(analysis, sizes, {128, 128}, direction);
    CHECK_FALSE(counts.isBound);
    CHECK(counts.visited == tiles);
    CHECK(counts.full == tiles);
  }
}

TEST_CASE("lengths without a common period take few evaluations") {
  auto parsed =
      parse("", unionOf("%c = attn.causal\n %d = attn.dilate %c by 16 at 3\n %m = attn.segment %d by [1000000007]"));
  PatternAnalysis analysis = analyze(parsed->pattern);
  int64_t n = int64_t(1) << 30, cell = 1000000007;
  auto triangle = [](int64_t positions) {
    WideInt rows = (positions - 3 + 15) / 16;
    return rows * (rows + 1) / 2;
  };
  ProblemSizes sizes{1, n, n, 0, 0, {}};
  sizes.mostEvaluations = 4096;
  CHECK(countPairs(analysis, sizes) == std::optional<WideInt>(triangle(cell) + triangle(n - cell)));
  TileCounts counts = countTiles(analysis, sizes, {128, 128}, Direction::Forward);
  CHECK_FALSE(counts.isBound);
  CHECK(counts.visited > counts.full);
}
