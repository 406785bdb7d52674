//===- part_record_test.cpp - parts of an item cover it ---------------------===//
// The word that blocks hand to each other, as the device reads it: any number of parts up to the most covers every key tile
// exactly once, whatever else the word says.
//===----------------------------------------------------------------------===//
#include <cstdint>
#include <initializer_list>

#define DEV inline
#include "codegen/Skeletons/part_record.cuh"

#include <doctest/doctest.h>

using namespace heddle;

namespace {

constexpr int32_t kMostSlots = 0x3fff;

PartRecord recordOf(int32_t parts, int32_t part) { return PartRecord::make(kMostSlots, 3, parts, part); }

} // namespace

TEST_CASE("parts follow each other without gaps, from the first tile to behind the last") {
  const TileStretch longest{1000, 16384};
  for (int32_t parts = 1; parts <= kMaxParts; ++parts) {
    CAPTURE(parts);
    CHECK(recordOf(parts, 0).firstTile(longest) == 0);
    for (int32_t part = 0; part < parts; ++part) {
      CAPTURE(part);
      const PartRecord record = recordOf(parts, part);
      const int32_t first = record.firstTile(longest), end = record.following().firstTile(longest);
      REQUIRE(first < end);
      CHECK(record.isLast() == (part + 1 == parts));
      if (record.isLast())
        CHECK(end == kNoTile);
      else
        CHECK(end == recordOf(parts, part + 1).firstTile(longest));
      CHECK(end <= (record.isLast() ? kNoTile : longest.first + longest.count));
    }
  }
}

TEST_CASE("the fields of a record leave each other alone") {
  for (int32_t parts : {1, 2, 63, kMaxParts})
    for (int32_t part : {0, parts - 1})
      for (int32_t group : {0, 3})
        for (int32_t slot : {0, 1, 255, 256 + 2 * 2000, kMostSlots}) {
          const PartRecord plain = PartRecord::make(slot, group, parts, part);
          for (PartRecord record : {plain, plain.alone(), plain.pending(), plain.alone().pending(), plain.pending().started(), plain.withParts(parts)}) {
            CHECK(record.slot() == slot);
            CHECK(record.group() == group);
            CHECK(record.parts() == parts);
            CHECK(record.part() == part);
            CHECK(record.isPart());
          }
          CHECK(plain.alone().isAlone());
          CHECK(!plain.isAlone());
          CHECK(plain.pending().isPending());
          CHECK(!plain.alone().isPending());
          CHECK(plain.withParts(kMaxParts).parts() == kMaxParts);
          if (group < 3) {
            CHECK(plain.followingGroup().group() == group + 1);
            CHECK(plain.followingGroup().parts() == 1);
            CHECK(plain.followingGroup().part() == 0);
            CHECK(plain.followingGroup().isAlone());
          }
        }
  CHECK(!PartRecord{0}.isPart());
}
