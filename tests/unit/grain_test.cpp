//===- grain_test.cpp - squares that are kept or dropped whole ----------------===//
#include "support/Places.h"
#include "dialect/Geometry/Grain.h"
#include "dialect/Geometry/TileVisitor.h"
#include "support/PatternFiles.h"

#include <doctest/doctest.h>

using namespace heddle;
using namespace heddle::test;

namespace {

int64_t grainOfUnion(const std::string &ops) { return attn::grainOf(parsed(unionText(ops))->analysis()); }

attn::ProblemSizes sizesOf(const PatternFile &file, int64_t heads, int64_t seqlen) {
  auto parameters = file.bindParameters({});
  REQUIRE(parameters.isOk());
  attn::ProblemSizes sizes{heads, seqlen, seqlen, 0, 0, *parameters};
  sizes.tensors = tensorDataOf(maskOperands(file, heads, seqlen, seqlen, sizes.parameters));
  return sizes;
}

constexpr attn::Direction kDirections[] = {attn::Direction::Forward, attn::Direction::Transposed};

/// Pairs of existing rows and columns in the visited tiles of `side` rows and columns of a class, by the walk of a
/// direction; `seqlen` fills all classes alike.
attn::WideInt pairsInVisitedTiles(const PatternFile &file, const attn::ProblemSizes &sizes, int64_t side,
                                  attn::Direction direction) {
  attn::WideInt pairs = 0;
  for (int64_t head = 0; head < sizes.heads; ++head) {
    const attn::VariantRanges &ranges =
        file.analysis().variants[attn::variantOf(file.analysis(), sizes, head)].ranges(direction);
    const int64_t rows = sizes.seqlenQ / ranges.rowRate;
    for (unsigned branch = 0; branch < ranges.branches.size(); ++branch) {
      const int64_t keys = sizes.seqlenK / ranges.branches[branch].columnRate;
      for (int64_t rowClass = 0; rowClass < ranges.rowRate; ++rowClass)
        for (int64_t tile = 0; tile * side < rows; ++tile)
          for (const attn::TileRun &run :
               attn::TileVisitor(ranges, branch, direction, sizes).visit(head, {rowClass, tile, side}, side).visited)
            pairs +=
                attn::WideInt(std::min(side, rows - tile * side)) * (std::min(run.end * side, keys) - run.begin * side);
    }
  }
  return pairs;
}

} // namespace

TEST_CASE("the grain is what all borders have in common") {
  CHECK(grainOfUnion("%a = attn.window [1, 1] %m = attn.blocks %a by [128]") == 128);
  CHECK(grainOfUnion("%a = attn.stride k by 4 at 1 %m = attn.blocks %a by [96]") == 96);
  CHECK(grainOfUnion("%a = attn.random count 3 seed 1 %m = attn.blocks %a by [64]") == 64);
  CHECK(grainOfUnion("%a = attn.full %m = attn.segment %a by [48]") == 48);
  CHECK(grainOfUnion("%a = attn.window [1, 1] %b = attn.blocks %a by [128] %m = attn.segment %b by [576]") == 64);
  CHECK(grainOfUnion("%a = attn.window [1, 1] %b = attn.blocks %a by [128] %c = attn.box [0, 320, 64, 640] "
                     "%m = attn.and %b, %c") == 64);
  CHECK(grainOfUnion("%a = attn.window [1, 1] %b = attn.blocks %a by [128] %f = attn.full "
                     "%d = attn.dilate %f by 2 at 1 %m = attn.and %b, %d") == 64);
  CHECK(grainOfUnion("%a = attn.window [1, 1] %b = attn.blocks %a by [64] %c = attn.blocks %a by [96] "
                     "%m = attn.or %b, %c") == 32);
}

TEST_CASE("a band of positions, a size of the call and a predicate have no grain") {
  CHECK(grainOfUnion("%m = attn.causal") == 1);
  CHECK(grainOfUnion("%a = attn.window [1, 1] %b = attn.blocks %a by [128] %c = attn.causal %m = attn.and %b, %c") ==
        1);
  CHECK(grainOfUnion(kNeighbourBlocks) == 1);
  CHECK(attn::grainOf(
            parsed("attn.pattern @p(%s: i32) { %f = attn.full %m = attn.segment %f by [%s] attn.softmax union(%m) }")
                ->analysis()) == 1);
  CHECK(attn::grainOf(loaded(test::places().patterns + "/sliding_window.mlir")->analysis()) == 1);
}

TEST_CASE("the banded grain is that beside one band, of patterns with lists") {
  auto banded = [](const std::string &ops) { return attn::bandedGrainOf(parsed(unionText(ops))->analysis()).grain; };
  const std::string blocks =
      "%a = attn.random count 3 seed 1 %w = attn.window [1, 1] %u = attn.or %a, %w %b = attn.blocks %u by [128] ";
  CHECK(banded(blocks + "%c = attn.causal %m = attn.and %b, %c") == 128);
  CHECK(banded(blocks + "%c = attn.window [300, 20] %m = attn.and %b, %c") == 128);
  CHECK(banded(blocks + "%c = attn.causal %x = attn.box [0, 320, 64, 640] %m = attn.and %b, %c, %x") == 64);
  CHECK(banded(blocks + "%m = attn.or %b, %b") == 1);                  // no band: the grain says it
  CHECK(banded(blocks + "%c = attn.causal %m = attn.or %b, %c") == 1); // pieces with different bands
  CHECK(banded(blocks + "%c = attn.window [9, 0] %d = attn.causal %e = attn.blocks %a by [64] %f = attn.and %b, %c %g "
                        "= attn.and %e, %d "
                        "%m = attn.or %f, %g") == 1); // the same upper end
  // no list
  CHECK(banded("%w = attn.window [1, 1] %b = attn.blocks %w by [128] %c = attn.causal %m = attn.and %b, %c") == 1);
  CHECK(banded("%a = attn.random count 3 seed 1 %c = attn.causal %m = attn.and %a, %c") == 1);
  auto ofFile = [](const char *name) {
    return attn::bandedGrainOf(loaded(test::places().patterns + "/" + name + ".mlir")->analysis()).grain;
  };
  CHECK(ofFile("random_blocks_causal") == 128);
  CHECK(ofFile("bigbird_causal") == 64);
  CHECK(ofFile("block_topk") == 64);
  CHECK(ofFile("random_blocks") == 1);
  CHECK(ofFile("causal") == 1);
}

TEST_CASE("visited tiles inside the grain are kept whole") {
  int withGrain = 0;
  for (const std::string &path : libraryPatterns()) {
    CAPTURE(path);
    auto file = loaded(path);
    const int64_t grain = attn::grainOf(file->analysis());
    CHECK(attn::grainOf(file->analysis(), attn::Direction::Transposed) == grain);
    CHECK(attn::bandedGrainOf(file->analysis(), attn::Direction::Transposed).grain ==
          attn::bandedGrainOf(file->analysis()).grain);
    if (grain < 16) // no tile fits
      continue;
    ++withGrain;
    for (int64_t seqlen : {8 * grain, 17 * grain, 17 * grain + 16, 3 * grain - 16})
      for (int64_t side : {grain, grain / 2, grain / 4}) {
        CAPTURE(seqlen);
        CAPTURE(side);
        const attn::ProblemSizes sizes = sizesOf(*file, 5, seqlen);
        const auto kept = attn::countPairs(file->analysis(), sizes);
        REQUIRE(kept.has_value());
        for (attn::Direction direction : kDirections)
          CHECK(attn::toString(pairsInVisitedTiles(*file, sizes, side, direction)) == attn::toString(*kept));
      }
  }
  CHECK(withGrain >= 7);
}
