// Rows that travel to the keys that they keep, as these weigh more than they do: results are those of one call, and bytes
// that travel those of the plan.
#include "support/Places.h"
#include "group_post.h"

using namespace heddle::test;

namespace {

constexpr uint64_t kFloat = 4;

} // namespace

TEST_CASE("global rows travel to the keys of other ranks, and home merges what these find") {
  const std::unique_ptr<Case> of = caseOf(places().patterns + "/longformer.mlir", 5200, /*small=*/false);
  REQUIRE(of);
  const std::string two = checked(*of, 5200, 2, "contiguous");
  expect(two, "blocks 0:64 64:2176 2176:2600\nblocks 2600:5200\n");
  expect(two, "launch 0 aside 0 0:2344\n");  // beside the rows that need nothing of others
  expect(two, "launch 0 own 0 2344:2600\n"); // and the last keys, behind the merge
  expect(two, "guests 0 0\nmeet 1 0 2600:5200\n");
  expect(two, "window 0:5200\nblank 64:1088\nblank 1320:2344\n"); // global keys and the window in one launch
  CHECK(factsOf(planOf(*of, 5200, 2, "contiguous", "gather").get()).headRows == (64 + 2 * 256) * kKvHeads);
}

TEST_CASE("few rows that meet what travels begin in front of many, and end behind these") {
  const std::unique_ptr<Case> of = caseOf(places().patterns + "/longformer.mlir", 5120, /*small=*/false);
  REQUIRE(of);
  const std::string two = checked(*of, 5120, 2, "contiguous");
  expect(two, "blocks 0:64 64:2176 2176:2560\n");
  expect(two, "of 0\nlaunch 0 aside 0 0:2304\nlaunch 2 own 0 0:2560\nlaunch 1 own 0 0:2432\nof 1\n");
  expect(two, "of 0\nwindow 2560:2816\nlaunch 2 window 0 2560:2816\n");
}

TEST_CASE("rows travel from the end of a sequence as from its front, to ranks with several ranges") {
  const std::unique_ptr<Case> back = caseOfText("attn.pattern @p() { %w = attn.window [3, 3] %r = attn.rows [0, 5] "
                                                "%m = attn.or %w, %r attn.softmax union(%m) }");
  expect(checked(*back, 600, 4, "contiguous"), "guests 3 1\nmeet 0 0 0:150\nmeet 1 0 150:300\nmeet 2 0 300:450\n");
  const std::unique_ptr<Case> front = caseOfText("attn.pattern @p() { %w = attn.window [3, 3] %r = attn.rows [4, 0] "
                                                 "%m = attn.or %w, %r attn.softmax union(%m) }");
  expect(checked(*front, 600, 3, "zigzag"), "guests 0 0\nmeet 1 0 100:200\nmeet 1 1 400:500\nmeet 2 0 200:400\n");
}

TEST_CASE("a home without keys for its rows merges what others find of them") {
  const std::unique_ptr<Case> of =
      caseOfText("attn.pattern @p() { %w = attn.window [3, 3] %r = attn.box [4, 600, 0, 600] %n = attn.and %w, %r "
                 "%b = attn.box [0, 4, 210, 600] %m = attn.or %n, %b attn.softmax union(%m) }");
  const std::string text = checked(*of, 600, 3, "contiguous");
  expect(text, "guests 0 0\nmeet 1 0 210:400\nmeet 2 0 400:600\n");
  expect(text, "launch 0 own 0 0:1\n"); // a key that they do not keep
  expect(checked(*of, 600, 2, "contiguous"), "meet 1 0 300:600\n");
}

TEST_CASE("rows stay where a launch that continues nothing would add a sink again") {
  const std::unique_ptr<Case> of = caseOfText("attn.pattern @p() { %w = attn.window [3, 3] %r = attn.rows [4, 0] "
                                              "%m = attn.or %w, %r attn.softmax union(%m) sink 0.5 }");
  CHECK(checked(*of, 600, 2, "contiguous").find("guests") == std::string::npos);
}

TEST_CASE("bytes that travel are keys, queries and parts of rows that travel") {
  const std::unique_ptr<Case> front = caseOfText("attn.pattern @p() { %w = attn.window [3, 3] %r = attn.rows [4, 0] "
                                                 "%m = attn.or %w, %r attn.softmax union(%m) }");
  const PlanHandle gather = planOf(*front, 600, 3, "zigzag", "gather");
  const uint64_t keys = uint64_t(factsOf(gather.get()).headRows) * 2 * kDim;
  CHECK(keys ==
        5 * 2 * 3 * kKvHeads * 2 * kDim - 2 * 3 * kKvHeads * 2 * kDim); // of six parts in a row, two of one rank
  const uint64_t ofGuests = 2 * 4 * kHeads * (kDim + kDim + 1);         // q of 4 rows to two ranks, and their parts
  CHECK(bytesOfCall(*front, 600, gather.get(), false) == (keys + ofGuests) * kFloat);
}
