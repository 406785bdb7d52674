//===- diff_test.cpp - where two patterns disagree ------------------------------===//
// Counts of heddle diff, in closed form and pair by pair, and what its cells say, against every pair of the definition;
// how many pairs are asked for that.
//===----------------------------------------------------------------------===//
#include "support/Places.h"
#include "compiler/Oracle/PatternOracle.h"
#include "compiler/Views/PatternDiff.h"
#include "support/PatternFiles.h"

using namespace heddle;
using namespace heddle::test;
using namespace heddle::views;

namespace {

attn::ProblemSizes sizesOf(const PatternFile &file, int64_t heads, int64_t seqlenQ, int64_t seqlenK) {
  return {heads, seqlenQ, seqlenK, 0, 0, sizesFrom(file, 6)};
}

DiffSide sideOf(const PatternFile &file, int64_t heads, int64_t seqlenQ, int64_t seqlenK) {
  DiffSide side{file, sizesOf(file, heads, seqlenQ, seqlenK)};
  side.operands = maskOperands(file, heads, seqlenQ, seqlenK, side.sizes.parameters);
  side.sizes.tensors = tensorDataOf(side.operands);
  return side;
}

int64_t copiesOf(const oracle::PatternOracle &definition, int64_t head, int64_t i, int64_t j) {
  int64_t copies = 0;
  for (unsigned branch = 0; branch < definition.branchCount(); ++branch)
    copies += definition.keeps(branch, head, i, j);
  return copies;
}

struct Definitions {
  Definitions(const DiffSide &a, const DiffSide &b)
      : sizes(a.sizes), first(a.file.pattern(), problem(a)), second(b.file.pattern(), problem(b)) {}

  static oracle::Problem problem(const DiffSide &side) {
    const attn::ProblemSizes &s = side.sizes;
    return {s.heads, s.seqlenQ, s.seqlenK, s.qOrigin, s.kOrigin, s.parameters, side.operands};
  }

  DiffCounts counts(int64_t head, int64_t rowFrom, int64_t rowTo, int64_t columnFrom, int64_t columnTo) const {
    DiffCounts result;
    for (int64_t i = rowFrom; i < std::min(rowTo, sizes.seqlenQ); ++i)
      for (int64_t j = columnFrom; j < std::min(columnTo, sizes.seqlenK); ++j) {
        int64_t a = copiesOf(first, head, i, j), b = copiesOf(second, head, i, j);
        result.both += a > 0 && b > 0;
        result.onlyFirst += a > 0 && b == 0;
        result.onlySecond += a == 0 && b > 0;
        result.unequal += a > 0 && b > 0 && a != b;
      }
    return result;
  }

  attn::ProblemSizes sizes;
  oracle::PatternOracle first, second;
};

DiffCounts counted(const DiffSide &a, const DiffSide &b) {
  auto counts = countDifference(a, b);
  REQUIRE_MESSAGE(counts.isOk(), counts.status().message());
  return *counts;
}

void checkCounts(const PatternFile &a, const PatternFile &b) {
  DiffSide first = sideOf(a, 4, 71, 60), second = sideOf(b, 4, 71, 60);
  DiffCounts got = counted(first, second), want;
  Definitions definitions(first, second);
  for (int64_t head = 0; head < 4; ++head) {
    DiffCounts part = definitions.counts(head, 0, 71, 0, 60);
    want.both += part.both;
    want.onlyFirst += part.onlyFirst;
    want.onlySecond += part.onlySecond;
    want.unequal += part.unequal;
  }
  CHECK(got.both == want.both);
  CHECK(got.onlyFirst == want.onlyFirst);
  CHECK(got.onlySecond == want.onlySecond);
  CHECK(got.unequal == want.unequal);
}

Cell cellOf(const DiffCounts &counts) {
  if (counts.onlyFirst > 0 && counts.onlySecond > 0)
    return Cell::Differs;
  return counts.onlyFirst > 0    ? Cell::OnlyFirst
         : counts.onlySecond > 0 ? Cell::OnlySecond
         : counts.both > 0       ? Cell::Full
                                 : Cell::Skipped;
}

Picture checkCells(const DiffSide &first, const DiffSide &second, int64_t cells) {
  PictureRequest request;
  request.sizes = first.sizes;
  request.maxRows = request.maxColumns = cells;
  auto picture = drawDifference(first, second, request);
  REQUIRE_MESSAGE(picture.isOk(), picture.status().message());
  Definitions definitions(first, second);
  int64_t heads = 0, wrong = 0;
  for (const Panel &panel : picture->panels)
    for (int64_t head : panel.heads) {
      ++heads;
      for (int64_t r = 0; r < panel.grid.rows; ++r)
        for (int64_t c = 0; c < panel.grid.columns; ++c) {
          const Grid &g = panel.grid;
          DiffCounts part = definitions.counts(head, r * g.cellRows, (r + 1) * g.cellRows, c * g.cellColumns,
                                               (c + 1) * g.cellColumns);
          wrong += g.at(r, c) != cellOf(part);
        }
    }
  CHECK(heads == first.sizes.heads);
  CHECK(wrong == 0);
  return picture.take();
}

} // namespace

TEST_CASE("every pattern file against the next") {
  std::vector<std::unique_ptr<PatternFile>> files;
  for (const std::string &path : libraryPatterns())
    files.push_back(loaded(path));
  for (size_t i = 0; i < files.size(); ++i) {
    CAPTURE(files[i]->path());
    checkCounts(*files[i], *files[(i + 1) % files.size()]);
  }
}

TEST_CASE("a pattern equals itself and other spellings of itself") {
  auto spelled = parsed(unionText("%a = attn.causal %b = attn.window [5, 9] %m = attn.and %a, %b"));
  auto window = parsed(unionText("%m = attn.window [5, 0]"));
  DiffCounts same = counted({*spelled, sizesOf(*spelled, 1, 50, 50)}, {*window, sizesOf(*window, 1, 50, 50)});
  CHECK(same.isEqual());
  CHECK(same.both == 6 * 50 - 15);
  auto twice = parsed("attn.pattern @p() { %m = attn.window [5, 0] attn.softmax lse(%m, %m) }");
  DiffCounts often = counted({*twice, sizesOf(*twice, 1, 50, 50)}, {*window, sizesOf(*window, 1, 50, 50)});
  CHECK(often.onlyFirst == 0);
  CHECK(often.unequal == 6 * 50 - 15);
  CHECK_FALSE(often.isEqual());
}

TEST_CASE("a billion tokens are compared in closed form") {
  auto causal = parsed(unionText("%m = attn.causal")), window = parsed(unionText("%m = attn.window [99, 7]"));
  const int64_t n = int64_t(1) << 30;
  DiffCounts counts = counted({*causal, sizesOf(*causal, 2, n, n)}, {*window, sizesOf(*window, 2, n, n)});
  CHECK(counts.isClosedForm);
  CHECK(counts.both == 2 * (attn::WideInt(100) * n - 4950));
  CHECK(counts.onlySecond == 2 * (attn::WideInt(7) * n - 28));
  CHECK(counts.onlyFirst == attn::WideInt(n) * (n + 1) - counts.both);
}

TEST_CASE("where there is no closed form, small problems are compared and large ones refused") {
  auto blocks = parsed(unionText(kNeighbourBlocks)), causal = parsed(unionText("%m = attn.causal"));
  checkCounts(*blocks, *causal);
  auto refused = countDifference({*blocks, sizesOf(*blocks, 1, 1000000, 1000000)},
                                 {*causal, sizesOf(*causal, 1, 1000000, 1000000)});
  REQUIRE_FALSE(refused.isOk());
  CHECK(refused.status().message().find("1,000,000,000,000 pairs are more than") != std::string::npos);
}

TEST_CASE("queries that start elsewhere") {
  auto start = parsed(unionText("%m = attn.causal"));
  auto end = parsed("attn.pattern @p() q_origin(end) { %m = attn.causal attn.softmax union(%m) }");
  attn::ProblemSizes later = sizesOf(*end, 1, 20, 33);
  later.qOrigin = 13;
  DiffCounts counts = counted({*start, sizesOf(*start, 1, 20, 33)}, {*end, later});
  CHECK(counts.onlyFirst == 0);
  CHECK(counts.onlySecond == 20 * 13);
}

TEST_CASE("cells say what their pairs do") {
  auto a =
      parsed("attn.pattern @p() { %c = attn.causal %d = attn.dilate %c by 3 rule(modulo) attn.softmax lse(%c, %d) }");
  auto b = parsed(unionText("%m = attn.window [9, 4]"));
  DiffSide first{*a, sizesOf(*a, 3, 45, 52)}, second{*b, sizesOf(*b, 3, 45, 52)};
  for (int64_t cells : {5, 20, 60}) {
    const Picture picture = checkCells(first, second, cells);
    CHECK(picture.showsPairs == (cells == 60));
    std::string document = svg(picture), text = blockText(picture);
    CHECK(text.find(cells == 60 ? "a only in a" : "a more in a") != std::string::npos);
    CHECK(document.find("#d55e00") != std::string::npos);
  }
}

TEST_CASE("cells of every pattern file against the next, and of odd ones") {
  std::vector<std::unique_ptr<PatternFile>> files;
  for (const std::string &path : libraryPatterns())
    files.push_back(loaded(path));
  for (const std::string &text : oddPatterns())
    files.push_back(parsed(text));
  for (size_t i = 0; i < files.size(); ++i) {
    CAPTURE(i);
    CAPTURE(files[i]->path());
    checkCells(sideOf(*files[i], 2, 45, 52), sideOf(*files[(i + 1) % files.size()], 2, 45, 52), 9);
  }
}

TEST_CASE("pictures and counts of long sequences ask for no pair") {
  const PairEffort none{/*mostPairs=*/0};
  auto drawsAndCounts = [&](const char *first, const char *second, int64_t heads, int64_t length) {
    auto a = loaded(test::places().patterns + "/" + first + ".mlir"),
         b = loaded(test::places().patterns + "/" + second + ".mlir");
    const DiffSide left = sideOf(*a, heads, length, length), right = sideOf(*b, heads, length, length);
    PictureRequest request;
    request.sizes = left.sizes;
    request.maxRows = 36;
    request.maxColumns = 72;
    const auto counts = countDifference(left, right, none);
    REQUIRE_MESSAGE(counts.isOk(), counts.status().message());
    CHECK(counts->isClosedForm);
    CHECK(counts->rowsRead == 0);
    const auto picture = drawDifference(left, right, request, none);
    CHECK_MESSAGE(picture.isOk(), picture.status().message());
  };
  drawsAndCounts("bigbird", "longformer", 8, 32768);
  drawsAndCounts("document", "causal", 1, 32768);
  drawsAndCounts("sliding_window", "causal", 64, int64_t(1) << 30);
}

TEST_CASE("pairs of heads that keep alike are asked once, and a closed form that is cut short says so") {
  auto blocks = parsed(unionText(kNeighbourBlocks)), causal = parsed(unionText("%m = attn.causal"));
  const DiffSide first{*blocks, sizesOf(*blocks, 12, 70, 70)}, second{*causal, sizesOf(*causal, 12, 70, 70)};
  const DiffCounts counts = counted(first, second);
  CHECK(!counts.isClosedForm);
  CHECK(counts.rowsRead == 2 * 70);
  CHECK(counts.both + counts.onlySecond == 12 * 70 * 71 / 2);
  double last = 0;
  int64_t shown = 0;
  REQUIRE(countDifference(first, second, {kMostEnumeratedPairs, [&](double share) {
                                            ++shown;
                                            last = share;
                                          }}));
  CHECK(shown > 0);
  CHECK(last < 1);
  DiffSide few{*causal, sizesOf(*causal, 12, 70, 70)};
  few.sizes.mostEvaluations = 1;
  const auto refused = countDifference(few, second, {/*mostPairs=*/1000});
  REQUIRE_FALSE(refused.isOk());
  CHECK(refused.status().message().find("takes more than 1 evaluations, and 4,900 pairs are more than the 1,000") !=
        std::string::npos);
}
