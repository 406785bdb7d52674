//===- row_rate_test.cpp - classes of rows beyond a common multiple of 64 ---===//
// Tiles of lattices of rows at any rate: exact where all are kept, and never a cliff above those of smaller rates.
//===----------------------------------------------------------------------===//
#include "tests/unit/support/AnalysisChecks.h"

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
  PatternAnalysis analysis;
};

std::unique_ptr<Parsed> parse(const std::string &body) {
  auto parsed = std::make_unique<Parsed>();
  parsed->context.loadDialect<AttnDialect>();
  parsed->module = mlir::parseSourceString<mlir::ModuleOp>("attn.pattern @p() {" + body + "}", &parsed->context);
  REQUIRE(parsed->module);
  parsed->pattern = *parsed->module->getOps<PatternOp>().begin();
  parsed->analysis = analyze(parsed->pattern);
  return parsed;
}

int64_t tilesOf(const std::string &body, Direction direction, int64_t length) {
  return int64_t(countTiles(parse(body)->analysis, {1, length, length, 0, 0, {}}, {128, 128}, direction).visited);
}

std::string dilatedWindow(int64_t rate) {
  return "%w = attn.window [127, 0] %m = attn.dilate %w by " + std::to_string(rate) +
         " rule(every) attn.softmax union(%m)";
}

constexpr Direction kDirections[] = {Direction::Forward, Direction::Transposed};

} // namespace

TEST_CASE("tiles grow smoothly with the rate of a lattice of rows") {
  constexpr int64_t kLong = 1 << 20; // the ends of classes do not count
  for (Direction direction : kDirections) {
    const int64_t known = tilesOf(dilatedWindow(64), direction, kLong);
    for (int64_t rate : {65, 67, 71, 127, 128, 131, 251}) {
      CAPTURE(rate);
      CHECK(tilesOf(dilatedWindow(rate), direction, kLong) * 4 <= known * 5);
    }
  }
}

TEST_CASE("lattices that cost more than they save are given up") {
  const std::string bands = "%w = attn.window [127, 0] %a = attn.dilate %w by 3 rule(every) "
                            "%b = attn.dilate %w by 5 rule(every) %c = attn.dilate %w by 7 rule(every) "
                            "attn.softmax lse(%a, %b, %c)";
  std::string strides = "%c = attn.causal ", terms; // all but the finest pieces of the union are one, of every row
  for (int64_t rate : {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71}) {
    const std::string name = "%s" + std::to_string(rate);
    strides += name + " = attn.stride k by " + std::to_string(rate) + " at 0 ";
    terms += (terms.empty() ? "" : ", ") + name;
  }
  strides += "%u = attn.or " + terms + " %m = attn.and %c, %u attn.softmax union(%m)";
  for (Direction direction : kDirections) {
    CHECK(tilesOf(bands, direction, 32768) < 5000); // 8,205 in the 15 classes of the first two
    CHECK(tilesOf(strides, direction, 32768) < 36000);
  }
}

TEST_CASE("lattices of rows beyond a common multiple of 64 visit what they must") {
  for (const char *body :
       {"%w = attn.window [3, 0] %m = attn.dilate %w by 67 rule(every) attn.softmax union(%m)",
        "%c = attn.causal %m = attn.dilate %c by 67 at 5 attn.softmax union(%m)",
        "%c = attn.causal %a = attn.dilate %c by 7 at 1 %b = attn.dilate %c by 11 rule(every) attn.softmax lse(%a, %b)",
        "%w = attn.window [2, 1] %a = attn.dilate %w by 9 rule(every) %b = attn.dilate %w by 8 at 3 "
        "attn.softmax union(%a, %b)",
        "%s = attn.stride q by 13 at 3 %t = attn.stride k by 17 at 2 %m = attn.or %s, %t attn.softmax union(%m)",
        "%c = attn.causal %m = attn.dilate %c by 4099 at 5 attn.softmax union(%m)"}) {
    CAPTURE(body);
    const auto parsed = parse(body);
    for (const oracle::Problem &problem : {oracle::Problem{1, 150, 150, 0, 0, {}},
                                           {2, 23, 160, 137, 0, {}},
                                           {1, 90, 40, 0, 0, {}},
                                           {1, 81, 93, 7, 3, {}}})
      for (TileShape shape : {TileShape{1, 1}, {7, 3}, {16, 8}, {64, 48}}) {
        const std::string account = oracle::checkPattern(parsed->pattern, parsed->analysis, problem, shape);
        CHECK_MESSAGE(account.empty(), account);
      }
  }
}

TEST_CASE("a dilation by a large prime is as dense on its lattice as any") {
  const auto parsed = parse("%c = attn.causal %m = attn.dilate %c by 67 at 5 attn.softmax union(%m)");
  for (Direction direction : kDirections) {
    const VariantRanges &ranges = parsed->analysis.variants[0].ranges(direction);
    CHECK(ranges.rowRate == 67);
    CHECK(ranges.branches[0].columnRate == 67);
    CHECK(!ranges.branches[0].masked);
  }
}

TEST_CASE("head groups that share keys have a common multiple that kernels count with") {
  CHECK(rowRateLimits(1).most == 4096);
  CHECK(rowRateLimits(2).most == 2048);
  CHECK(rowRateLimits(3).most == 161);
  CHECK(rowRateLimits(4).most == 64);
  CHECK(rowRateLimits(100).most == 64);
}
