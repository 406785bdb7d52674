// Gradients of gradient(detached) whose bits depend on no placement: where a key lies its rank has all keys that its queries
// keep. Results are those of one call, bits the same wherever rows lie, bytes that travel those of the plan.
#include "support/Places.h"
#include "group_post.h"

#include <sstream>

using namespace heddle::test;

namespace {

// 1, 2, 3, 4 and 8 ranks in three layouts, and ranges that a caller lists.
Placements placementsOf(int64_t rows) {
  Placements placements = {{1, "contiguous"}, {2, "0:1,64:100;1:64,100:" + std::to_string(rows)}};
  for (int32_t ranks : {2, 3, 4, 8})
    for (const char *layout : {"contiguous", "zigzag", "striped:7"})
      placements.emplace_back(ranks, layout);
  return placements;
}

bool isDetached(const std::string &path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str().find("gradient(detached)") != std::string::npos;
}

// Segments that ranks cut, lattices (of a rate that divides no tile as well), a window with far keys, and queries far behind the keys that they keep.
const char *const kBranches[] = {
    "%c = attn.causal %d = attn.dilate %c by 4 rule(block) %a = attn.segment %c by [64] %b = attn.segment %d by [256] "
    "attn.softmax lse(%a, %b) gradient(detached)",
    "%f = attn.full %d = attn.dilate %f by 3 rule(block) %a = attn.segment %f by [50] %b = attn.segment %d by [300] "
    "attn.softmax lse(%a, %b) gradient(detached)",
    "%a = attn.window [19, 0] %b = attn.cols [4, 3] attn.softmax lse(%a, %b) gradient(detached)",
    "%c = attn.causal %a = attn.dilate %c by 8 at 1 %b = attn.box [500, 700, 0, 9] "
    "attn.softmax lse(%a, %b) sink 0.5 gradient(detached)"};

std::unique_ptr<Case> branches(const char *words, HeadCounts heads = {}) {
  return caseOfText(("attn.pattern @p() { " + std::string(words) + " }").c_str(), heads);
}

} // namespace

TEST_CASE("every detached pattern of the library has the same bits on 1 to 8 ranks, forward and gradients") {
  long patterns = 0;
  for (const std::string &path : libraryPatterns()) {
    if (!isDetached(path))
      continue;
    for (int64_t rows : {131, 1021}) {
      if (rows > 1000 && !takesAll() && patterns % 3 != 0)
        continue;
      const std::unique_ptr<Case> of = caseOf(path, rows, /*small=*/true);
      REQUIRE(of);
      checkBits(*of, rows,
                rows > 1000 ? Placements{{1, "contiguous"}, {3, "zigzag"}, {4, "contiguous"}} : placementsOf(rows));
    }
    ++patterns;
  }
  CHECK(patterns == 6); // LongNet's and LongViT's
}

TEST_CASE("segments that ranks cut, keys far away, a sink, and heads that share keys or do not") {
  for (const char *words : kBranches)
    for (const HeadCounts &heads : {HeadCounts{4, 2}, HeadCounts{3, 1}, HeadCounts{2, 2}})
      checkBits(*branches(words, heads), 777,
                {{1, "contiguous"}, {2, "zigzag"}, {3, "contiguous"}, {4, "striped:50"}, {8, "contiguous"}});
}

TEST_CASE("keys of others travel to where gradients of keys are computed, and bytes are those of the plan") {
  for (const char *words : kBranches) {
    const std::unique_ptr<Case> of = branches(words);
    for (const auto &[ranks, layout] : Placements{{3, "zigzag"}, {4, "contiguous"}}) {
      const PlanHandle plan = planOf(*of, 777, ranks, layout, "gather", HEDDLE_GROUP_PLACEMENT_FREE);
      const std::string text = textOf(plan.get());
      const uint64_t ofKey = 2 * kDim, ofQuery = 3 * kDim + 2; // q, d_out, out, lse and d_lse
      const uint64_t keys = headRowsOf(text, "keys");
      CHECK(keys > 0);
      CHECK(bytesOfCall(*of, 777, plan.get(), /*isBackward=*/true) ==
            ((headRowsOf(text, "gradients") + keys) * ofKey + headRowsOf(text, "transposed") * ofQuery) * 4);
      heddle_group_plan *copy = nullptr;
      CHECK_OK(heddle_group_plan_parse(text.c_str(), &copy));
      CHECK(textOf(PlanHandle(copy).get()) == text);
    }
  }
}

TEST_CASE("what travels is what the queries of a rank's keys keep: of segments that are whole on ranks nothing") {
  const std::unique_ptr<Case> of =
      branches("%c = attn.causal %d = attn.dilate %c by 2 at 1 %a = attn.segment %c by [64] "
               "%b = attn.segment %d by [128] attn.softmax lse(%a, %b) gradient(detached)");
  auto textOn = [&](int32_t ranks) {
    return textOf(planOf(*of, 512, ranks, "contiguous", "gather", HEDDLE_GROUP_PLACEMENT_FREE).get());
  };
  const std::string two = textOn(2);
  CHECK(headRowsOf(two, "keys") == 0);
  CHECK(planOf(*of, 512, 2, "auto", "auto", HEDDLE_GROUP_PLACEMENT_FREE | HEDDLE_GROUP_GRADIENTS)); // times are known
  expect(two, "walk keys\nblocks 0:256\nblocks 256:512\nstep\nof 0\nlaunch 0 own 0 0:256\n"
              "of 1\nwindow 0:512\nblank 0:256\nlaunch 0 window 0 0:512\n");
  // Of each far segment the second half, whose queries keep keys of the first, and every second key of the first.
  CHECK(headRowsOf(textOn(8), "keys") == 4 * (64 + 32) * kKvHeads);
}

TEST_CASE("plans whose keys ranks could not follow are refused") {
  const std::unique_ptr<Case> of = branches(kBranches[0]);
  const std::string text = textOf(planOf(*of, 512, 2, "contiguous", "gather", HEDDLE_GROUP_PLACEMENT_FREE).get());
  auto refused = [&](const std::string &from, const std::string &to, const char *words) {
    const size_t place = text.find(from, text.find("walk keys"));
    REQUIRE_MESSAGE(place != std::string::npos, text);
    heddle_group_plan *none = nullptr;
    const std::string changed = std::string(text).replace(place, from.size(), to);
    CHECK_REFUSED(heddle_group_plan_parse(changed.c_str(), &none), HEDDLE_INVALID_ARGUMENT, words);
  };
  refused("launch 0 window 0 0:512", "launch 0 window 0 0:511", "0 to 511 are not those of block 0, or it and more");
  refused("launch 0 own 0 0:256", "launch 0 own 0 0:255", "0 to 255 are not those of block 0");
  refused("step\n", "step\nstep\n", "expected one step");
  refused("blocks 256:512", "blocks 256:300 300:512", "expected its blocks of rank 1");
}
