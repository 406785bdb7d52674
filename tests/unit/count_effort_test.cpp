//===- count_effort_test.cpp - what counts take -----------------------------===//
// Counts over long sequences and many heads are exact within few evaluations, also of what two patterns keep, heads that
// are alike are counted once, and a count that takes more than it may says so.
//===----------------------------------------------------------------------===//
#include "dialect/Analysis/PatternAnalysis.h"
#include "dialect/Geometry/Counts.h"
#include "dialect/Geometry/RowRuns.h"
#include "dialect/Geometry/Variant.h"
#include "dialect/Geometry/Period.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <doctest/doctest.h>

#include <set>

using namespace heddle;
using namespace heddle::attn;

namespace {

struct Parsed {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  PatternAnalysis analysis;
};

std::unique_ptr<Parsed> parse(const std::string &body, const std::string &arguments = "") {
  auto parsed = std::make_unique<Parsed>();
  parsed->context.loadDialect<AttnDialect>();
  parsed->module =
      mlir::parseSourceString<mlir::ModuleOp>("attn.pattern @p(" + arguments + ") {" + body + "}", &parsed->context);
  REQUIRE(parsed->module);
  parsed->analysis = analyze(*parsed->module->getOps<PatternOp>().begin());
  return parsed;
}

ProblemSizes sizesOf(int64_t heads, int64_t length, int64_t mostEvaluations = kMostEvaluations) {
  ProblemSizes sizes{heads, length, length, 0, 0, {}};
  sizes.mostEvaluations = mostEvaluations;
  return sizes;
}

WideInt triangle(WideInt n) { return n * (n + 1) / 2; }

/// Pairs of two patterns, over all heads, of which `both` keeps every one.
struct Compared {
  WideInt first = 0, second = 0, both = 0;
  int64_t evaluations = 0;
};

std::optional<Compared> compare(const Parsed &first, const Parsed &second, const ProblemSizes &sizes) {
  std::optional<RowRuns> runs = RowRuns::create({first.analysis, sizes}, {second.analysis, sizes});
  REQUIRE(runs.has_value());
  Compared sum;
  for (const HeadGroup &alike : headGroups({{first.analysis, sizes}, {second.analysis, sizes}})) {
    auto use = [&](const AlikeRows &rows) {
      for (const KeyStretch &stretch : rows.stretches) {
        const WideInt pairs = rows.pairsOf(stretch) * alike.heads;
        sum.first += pairs * stretch.copies[0];
        sum.second += pairs * stretch.copies[1];
        sum.both += stretch.copies[0] && stretch.copies[1] ? pairs : 0;
      }
    };
    if (!runs->visit(alike.first, {0, sizes.seqlenQ}, use))
      return std::nullopt;
  }
  sum.evaluations = runs->evaluations();
  return sum;
}

constexpr int64_t kBillion = int64_t(1) << 30;
constexpr const char *kBlocksInSegments =
    "%c = attn.causal %b = attn.blocks %c by [128] %s = attn.segment %b by [1073741824] "
    "attn.softmax union(%s, %b)";

} // namespace

TEST_CASE("blocks and long segments of them, over a billion positions, take few evaluations") {
  auto parsed = parse(kBlocksInSegments);
  const ProblemSizes sizes = sizesOf(1, kBillion, 4096);
  CHECK(countPairs(parsed->analysis, sizes) == std::optional<WideInt>(128 * 128 * triangle(kBillion / 128)));
  for (Direction direction : {Direction::Forward, Direction::Transposed}) {
    const TileCounts tiles = countTiles(parsed->analysis, sizes, {128, 128}, direction);
    CHECK(!tiles.isBound);
    CHECK(tiles.visited == triangle(kBillion / 128));
    CHECK(tiles.full == tiles.visited);
  }
}

TEST_CASE("segments of a length that no block divides take evaluations by the segment, not by the block") {
  auto parsed =
      parse("%c = attn.causal %b = attn.blocks %c by [128] %s = attn.segment %b by [100003] attn.softmax union(%s)");
  WideInt whole = 0; // pairs of one segment
  for (int64_t row = 0; row < 100003; ++row)
    whole += std::min<int64_t>((row / 128 + 1) * 128, 100003);
  const int64_t segments = 5000;
  CHECK(countPairs(parsed->analysis, sizesOf(1, segments * 100003, int64_t(1) << 18)) ==
        std::optional<WideInt>(segments * whole));
}

TEST_CASE("tiles that cross thousands of cells take evaluations by the cells that differ, in sums too") {
  struct Counted {
    const char *body;
    int64_t pairs, visited, full, transposedVisited, transposedFull; ///< as counted tile by tile
  };
  const Counted cases[] = {
      {"%f = attn.full %a = attn.dilate %f by 2 rule(block) %b = attn.dilate %f by 4 rule(block) "
       "%c = attn.dilate %b by 8 rule(block) %d = attn.dilate %f by 16 rule(block) %s0 = attn.segment %f by [64] "
       "%s1 = attn.segment %a by [128] %s2 = attn.segment %b by [256] %s3 = attn.segment %c by [3] "
       "%s4 = attn.segment %d by [1] attn.softmax lse(%s0, %s1, %s2, %s3, %s4)",
       44214955, 132096, 0, 132096, 0},
      {"%c = attn.causal %a = attn.dilate %c by 2 rule(block) %b = attn.dilate %c by 4 rule(block) "
       "%d = attn.dilate %c by 7 rule(block) %e = attn.dilate %c by 12 rule(block) %s0 = attn.segment %c by [2048] "
       "%s1 = attn.segment %a by [3] %s2 = attn.segment %b by [8192] %s3 = attn.segment %d by [16384] "
       "%s4 = attn.segment %e by [32768] attn.softmax lse(%s0, %s1, %s2, %s3, %s4)",
       614426089, 195012, 4974, 277746, 4737}};
  for (const Counted &counted : cases) {
    CAPTURE(counted.body);
    auto parsed = parse(counted.body);
    const ProblemSizes sizes = sizesOf(3, 131072, int64_t(1) << 15);
    CHECK(countPairs(parsed->analysis, sizes) == std::optional<WideInt>(counted.pairs));
    const TileCounts forward = countTiles(parsed->analysis, sizes, {128, 128}, Direction::Forward);
    const TileCounts transposed = countTiles(parsed->analysis, sizes, {128, 128}, Direction::Transposed);
    CHECK(!forward.isBound);
    CHECK(!transposed.isBound);
    CHECK(forward.visited == counted.visited);
    CHECK(forward.full == counted.full);
    CHECK(transposed.visited == counted.transposedVisited);
    CHECK(transposed.full == counted.transposedFull);
  }
}

TEST_CASE("dilations by rates whose common multiple is large have a closed form") {
  auto parsed = parse(
      "%f = attn.full %a = attn.dilate %f by 7 at 0 %b = attn.dilate %f by 11 at 3 %c = attn.dilate %f by 13 at 1 "
      "attn.softmax union(%a, %b, %c)");
  const int64_t length = 600, rates[] = {7, 11, 13}, offsets[] = {0, 3, 1};
  int64_t pairs = 0;
  for (int64_t q = 0; q < length; ++q)
    for (int64_t k = 0; k < length; ++k) {
      bool kept = false;
      for (int i = 0; i < 3; ++i)
        kept |= q % rates[i] == offsets[i] && k % rates[i] == offsets[i];
      pairs += kept;
    }
  CHECK(countPairs(parsed->analysis, sizesOf(1, length)) == std::optional<WideInt>(pairs));
  CHECK(countPairs(parsed->analysis, sizesOf(1, kBillion)).has_value());
}

TEST_CASE("two patterns are compared in evaluations by their bends, not by their rows") {
  auto causal = parse("%m = attn.causal attn.softmax union(%m)");
  auto window = parse("%m = attn.window [99, 7] attn.softmax union(%m)");
  const auto compared = compare(*causal, *window, sizesOf(64, kBillion));
  REQUIRE(compared.has_value());
  CHECK(compared->evaluations < 64);
  CHECK(compared->both == 64 * (WideInt(100) * kBillion - 4950));
  CHECK(compared->first == 64 * triangle(kBillion));
}

TEST_CASE("lists, lattices and branches that meet are compared as they are counted one by one") {
  constexpr const char *kBodies[] = {
      "%w = attn.window [191, 191] %r = attn.rows [64, 0] %c = attn.cols [64, 0] %d = attn.random count 3 seed 1 "
      "per_head "
      "%b = attn.blocks %d by [64] %m = attn.or %w, %r, %c, %b attn.softmax union(%m)",
      "%w = attn.window [256, 256] %r = attn.rows [64, 0] %c = attn.cols [64, 0] %m = attn.or %w, %r, %c "
      "attn.softmax union(%m)",
      "%f = attn.full %a = attn.dilate %f by 7 at 0 %b = attn.dilate %f by 11 at 3 %c = attn.dilate %f by 13 at 1 "
      "attn.softmax union(%a, %b, %c)",
      "%c = attn.causal %d = attn.dilate %c by 3 rule(modulo) %s = attn.segment %d by [97] attn.softmax lse(%c, %s)"};
  std::vector<std::unique_ptr<Parsed>> patterns;
  for (const char *body : kBodies)
    patterns.push_back(parse(body));
  const ProblemSizes sizes = sizesOf(6, 4096);
  for (size_t i = 0; i < patterns.size(); ++i) {
    CAPTURE(kBodies[i]);
    const Parsed &first = *patterns[i], &second = *patterns[(i + 1) % patterns.size()];
    const auto compared = compare(first, second, sizes);
    REQUIRE(compared.has_value());
    CHECK(std::optional<WideInt>(compared->first) == countPairs(first.analysis, sizes));
    CHECK(std::optional<WideInt>(compared->second) == countPairs(second.analysis, sizes));
  }
  CHECK(compare(*patterns[0], *patterns[1], sizes)->evaluations < 6 * 64 * 64);
  CHECK(!compare(*patterns[0], *patterns[1], sizesOf(6, 4096, 100)).has_value());
}

TEST_CASE("heads that are alike are one group") {
  auto groupsOf = [](const std::string &body, int64_t heads) {
    auto parsed = parse(body);
    return headGroups(parsed->analysis, sizesOf(heads, 4096)).size();
  };
  const int64_t heads = int64_t(1) << 20;
  CHECK(groupsOf("%c = attn.causal attn.softmax union(%c)", heads) == 1);
  CHECK(groupsOf("%c = attn.causal %d = attn.dilate %c by 6 rule(modulo) attn.softmax union(%d)", heads) == 6);
  CHECK(groupsOf("%c = attn.causal %d = attn.dilate %c by 6 rule(block) %e = attn.dilate %c by 4 rule(modulo) "
                 "attn.softmax lse(%d, %e)",
                 heads) == 24);
  CHECK(groupsOf("%c = attn.causal %w = attn.window [5, 0] %d = attn.dilate %c by 2 rule(group) %h = attn.heads %c, "
                 "%d, %w attn.softmax union(%h)",
                 heads) == 3);
}

TEST_CASE("groups hold every head once, with its variant, and count like its heads one by one") {
  for (const char *body :
       {"%c = attn.causal %d = attn.dilate %c by 3 rule(block) %e = attn.dilate %c by 4 rule(modulo) attn.softmax "
        "lse(%d, %e)",
        "%c = attn.causal %w = attn.window [5, 0] %d = attn.dilate %c by 3 rule(modulo) %h = attn.heads %c, %d, %w "
        "attn.softmax union(%h)",
        "%r = attn.random count 2 seed 3 per_head %b = attn.blocks %r by [8] attn.softmax union(%b)"})
    for (int64_t heads : {1, 2, 3, 5, 7, 12, 31, 64}) {
      CAPTURE(body);
      CAPTURE(heads);
      auto parsed = parse(body);
      const ProblemSizes sizes = sizesOf(heads, 90);
      int64_t inGroups = 0;
      for (const HeadGroup &group : headGroups(parsed->analysis, sizes)) {
        inGroups += group.heads;
        CHECK(group.variant == variantOf(parsed->analysis, sizes, group.first));
      }
      CHECK(inGroups == heads);
      TileCounts oneByOne;
      for (int64_t head = 0; head < heads; ++head)
        oneByOne.add(countTilesOfHead(parsed->analysis, sizes, head, {16, 8}, Direction::Forward));
      const TileCounts together = countTiles(parsed->analysis, sizes, {16, 8}, Direction::Forward);
      CHECK(together.visited == oneByOne.visited);
      CHECK(together.full == oneByOne.full);
    }
}

TEST_CASE("a count that takes more evaluations than it may is a bound, or unknown") {
  auto parsed =
      parse("%c = attn.causal %a = attn.segment %c by [997] %b = attn.segment %c by [1009] attn.softmax union(%a, %b)");
  const ProblemSizes enough = sizesOf(3, 100000), few = sizesOf(3, 100000, 10);
  bool isCutShort = false;
  CHECK(countPairs(parsed->analysis, enough, &isCutShort).has_value());
  CHECK(!isCutShort);
  CHECK(!countPairs(parsed->analysis, few, &isCutShort).has_value());
  CHECK(isCutShort);
  const TileCounts exact = countTiles(parsed->analysis, enough, {64, 64}, Direction::Forward);
  const TileCounts bound = countTiles(parsed->analysis, few, {64, 64}, Direction::Forward);
  CHECK(!exact.isBound);
  CHECK(bound.isBound);
  CHECK(bound.isCutShort);
  CHECK(bound.visited >= exact.visited);
  CHECK(bound.full <= exact.full);
}

TEST_CASE("a count over many branches and heads takes no more than a count of one may, also where cells lie in cells") {
  auto parsed = parse("%f = attn.full %d = attn.dilate %f by 4 rule(block) %a = attn.segment %d by [256] "
                      "%b = attn.segment %a by [1] %c = attn.segment %f by [3] attn.softmax lse(%a, %b, %c)");
  const int64_t most = int64_t(1) << 12;
  const TileCounts cut = countTiles(parsed->analysis, sizesOf(16, 65536, most), {256, 64}, Direction::Forward);
  CHECK(cut.isCutShort);
  CHECK(cut.evaluations > most);
  CHECK(cut.evaluations < 2 * most); // each branch and head may begin before it sees that nothing is left
}

TEST_CASE("rectangles cover every number once") {
  for (int64_t count : {0, 1, 7, 30, 31})
    for (int64_t period : {1, 3, 7, 40}) {
      std::multiset<int64_t> covered;
      const int64_t turn = std::min(period, std::max<int64_t>(count, 1));
      coverByRectangles(count, period, [&](const Rectangle &all) {
        const Rectangle done{all.step, all.turn, (all.steps + 1) / 2, (all.turns + 2) / 3};
        for (int64_t i = 0; i < done.steps; ++i)
          for (int64_t j = 0; j < done.turns; ++j)
            covered.insert(done.step + i + (done.turn + j) * turn);
        return done;
      });
      CHECK(int64_t(covered.size()) == count);
      CHECK(int64_t(std::set<int64_t>(covered.begin(), covered.end()).size()) == count);
    }
}

TEST_CASE("a period holds what is met often, and leaves out what is met seldom") {
  CHECK(choosePeriod({128, kBillion}, 1, kBillion) == 128);
  CHECK(choosePeriod({2048, 4096}, 1, kBillion) == 4096);
  CHECK(choosePeriod({2048, 4096}, 128, kBillion) == 32);
  CHECK(choosePeriod({}, 1, 1000) == 1000);
  CHECK(choosePeriod({128}, 128, 1280) == 10);
  CHECK(choosePeriod({7}, 1, 0) == 1);
}
