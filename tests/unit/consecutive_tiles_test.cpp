//===- consecutive_tiles_test.cpp - key tiles of a query tile follow each other ----===//
#include "dialect/Geometry/ConsecutiveTiles.h"
#include "dialect/Geometry/TileVisitor.h"
#include "support/PatternFiles.h"

#include <doctest/doctest.h>

using namespace heddle;
using namespace heddle::test;

namespace {

int64_t rateOf(const std::string &ops) { return attn::rateOfConsecutiveTiles(parsed(unionText(ops))->analysis()); }

/// First and last query tile of 64 that a key tile visits; last < first: none.
attn::TileRun hullOf(const attn::TileVisitor &visitor, int64_t rowClass, int64_t tile) {
  const std::vector<attn::TileRun> runs = visitor.visit(0, attn::RowTile{rowClass, tile, 128}, 64).visited;
  return runs.empty() ? attn::TileRun{0, 0} : attn::TileRun{runs.front().begin, runs.back().end};
}

/// What key tiles of a class visit begins and ends no earlier than what those before visit, and nobody is passed over.
void checkOrder(const PatternFile &file, int64_t seqlenQ, int64_t seqlenK) {
  auto parameters = file.bindParameters({});
  REQUIRE(parameters.isOk());
  attn::ProblemSizes sizes{1, seqlenQ, seqlenK, 0, 0, *parameters};
  sizes.tensors = tensorDataOf(maskOperands(file, 1, seqlenQ, seqlenK, sizes.parameters));
  const attn::VariantRanges &ranges = file.analysis().variants.front().transposed;
  const attn::TileVisitor visitor(ranges, 0, attn::Direction::Transposed, sizes);
  for (int64_t rowClass = 0; rowClass < ranges.rowRate && rowClass < seqlenK; ++rowClass) {
    attn::TileRun last{0, 0};
    int64_t gapAfter = -1; // the last query tile before a key tile that visits nothing
    for (int64_t tile = 0; rowClass + tile * 128 * ranges.rowRate < seqlenK; ++tile) {
      const attn::TileRun hull = hullOf(visitor, rowClass, tile);
      if (hull.begin == hull.end) {
        gapAfter = last.end;
        continue;
      }
      CHECK(hull.begin >= last.begin);
      CHECK(hull.end >= last.end);
      CHECK(hull.begin >= gapAfter);
      last = hull;
    }
  }
}

} // namespace

TEST_CASE("key tiles that follow each other: bands, one lattice, documents") {
  CHECK(rateOf("%m = attn.full") == 1);
  CHECK(rateOf("%m = attn.causal") == 1);
  CHECK(rateOf("%m = attn.window [100, 20]") == 1);
  CHECK(rateOf("%w = attn.window [10, 0]\n%m = attn.dilate %w by 4 rule(every)") == 4);
  CHECK(rateOf("%c = attn.causal\n%m = attn.segment %c by [300]") == 1);
}

TEST_CASE("key tiles that need not follow each other: unions, lists, what lies in other cells") {
  CHECK(rateOf("%c = attn.causal\n%f = attn.full\n%s = attn.segment %f by [40]\n%m = attn.or %c, %s") == 0);
  CHECK(rateOf("%m = attn.random count 3 seed 1") == 0);
}

TEST_CASE("key tiles that follow each other, by what they visit in every pattern of the library") {
  int seen = 0;
  for (const std::string &path : libraryPatterns()) {
    const auto file = loaded(path);
    if (attn::rateOfConsecutiveTiles(file->analysis()) == 0)
      continue;
    CAPTURE(path);
    ++seen;
    for (const auto &[queries, keys] : {std::pair<int64_t, int64_t>{3000, 3000}, {1000, 2600}, {2600, 1000}, {1, 1}})
      checkOrder(*file, queries, keys);
  }
  CHECK(seen >= 8);
}
