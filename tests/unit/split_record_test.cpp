//===- split_record_test.cpp - splits of an item cover it ---------------------===//
// The word that blocks hand to each other, as the device reads it: any number of splits up to the most covers every key
// tile exactly once, whatever else the word says.
//===----------------------------------------------------------------------===//
#include <cstdint>
#include <initializer_list>

#define DEV inline
#include "codegen/Skeletons/Forward/split_record.cuh"

#include <doctest/doctest.h>

using namespace heddle;
using sm90::kMaxSplits;

namespace {

constexpr int32_t kMostSlots = 0x3fff;

SplitRecord recordOf(int32_t splits, int32_t split) { return SplitRecord::make(kMostSlots, 3, splits, split); }

} // namespace

TEST_CASE("splits follow each other without gaps, from the first tile to behind the last") {
  const TileStretch longest{1000, 16384};
  for (int32_t splits = 1; splits <= kMaxSplits; ++splits) {
    CAPTURE(splits);
    CHECK(recordOf(splits, 0).firstTile(longest) == 0);
    for (int32_t split = 0; split < splits; ++split) {
      CAPTURE(split);
      const SplitRecord record = recordOf(splits, split);
      const int32_t first = record.firstTile(longest), end = record.following().firstTile(longest);
      REQUIRE(first < end);
      CHECK(record.isLast() == (split + 1 == splits));
      if (record.isLast())
        CHECK(end == kNoTile);
      else
        CHECK(end == recordOf(splits, split + 1).firstTile(longest));
      CHECK(end <= (record.isLast() ? kNoTile : longest.first + longest.count));
    }
  }
}

TEST_CASE("the fields of a record leave each other alone") {
  for (int32_t splits : {1, 2, 63, kMaxSplits})
    for (int32_t split : {0, splits - 1})
      for (int32_t group : {0, 3})
        for (int32_t slot : {0, 1, 255, 256 + 2 * 2000, kMostSlots}) {
          const SplitRecord plain = SplitRecord::make(slot, group, splits, split);
          for (SplitRecord record : {plain, plain.alone(), plain.pending(), plain.alone().pending(),
                                     plain.pending().started(), plain.withSplits(splits)}) {
            CHECK(record.slot() == slot);
            CHECK(record.group() == group);
            CHECK(record.splits() == splits);
            CHECK(record.split() == split);
            CHECK(record.isSplit());
          }
          CHECK(plain.alone().isAlone());
          CHECK(!plain.isAlone());
          CHECK(plain.pending().isPending());
          CHECK(!plain.alone().isPending());
          CHECK(plain.withSplits(kMaxSplits).splits() == kMaxSplits);
          if (group < 3) {
            CHECK(plain.followingGroup().group() == group + 1);
            CHECK(plain.followingGroup().splits() == 1);
            CHECK(plain.followingGroup().split() == 0);
            CHECK(plain.followingGroup().isAlone());
          }
        }
  CHECK(!SplitRecord{0}.isSplit());
}
