// Calls over the ranks of a group, threads of this process, against one call: every file of patterns/, forward and
// gradients, 1 to 8 ranks, three layouts and odd lengths; bits that do not depend on the placement; bytes that travel
// against those of the plan. HEDDLE_TEST_ALL=1 takes the whole library over every number of ranks in every layout.
#include "support/Places.h"
#include "group_plans.h"
#include "group_post.h"

using namespace heddle::test;

// One rank has all rows, however they lie.
static std::vector<const char *> layoutsOf(int32_t ranks) {
  if (ranks == 1)
    return {"contiguous"};
  if (ranks > 3 && !takesAll())
    return {ranks == 4 ? "zigzag" : "striped:10"};
  return {"contiguous", "zigzag", "striped:10"};
}

TEST_CASE("every pattern of the library over 1 to 8 ranks is what one call computes, forward and gradients") {
  long parts = 0, notParts = 0, ofHeads = 0;
  for (const std::string &path : libraryPatterns()) {
    CAPTURE(path);
    constexpr int64_t kRows = 131;
    const std::unique_ptr<Case> of = caseOf(path, kRows, /*small=*/true);
    if (!of) {
      ++notParts;
      continue;
    }
    ++parts;
    const Share whole = wholeCall(*of, kRows);
    for (int32_t ranks : {1, 2, 3, 4, 8})
      for (const char *layout : layoutsOf(ranks))
        for (const char *form : {"gather", "ring", "ulysses"}) {
          CAPTURE(ranks);
          CAPTURE(std::string(layout));
          CAPTURE(std::string(form));
          const PlanHandle plan = planIfAny(*of, kRows, ranks, layout, form);
          if (!plan) {
            CHECK(std::string(form) == "ulysses");
            continue;
          }
          ofHeads += std::string(form) == "ulysses";
          checkAlike(overRanks(*of, whole, plan.get()), whole);
        }
  }
  CHECK(ofHeads > (takesAll() ? 140 : 100)); // 4 heads: on 1, 2 and 4 ranks, but where they are not alike
  CHECK(parts >= 40);
  CHECK(notParts == 3); // document_window, whose offsets count rows, tree_decode and trees
}

TEST_CASE("placement-free results have the same bits on any number of ranks, wherever rows lie") {
  constexpr int64_t kRows = 131;
  for (const char *name : {"causal", "sliding_window", "longformer", "dilated_window", "document", "random_blocks",
                           "relative_bias", "sink"}) {
    CAPTURE(std::string(name));
    const std::unique_ptr<Case> of = caseOf(places().patterns + ("/" + std::string(name)) + ".mlir", kRows, true);
    REQUIRE(of);
    const Share whole = wholeCall(*of, kRows);
    const PlanHandle alone = planOf(*of, kRows, 1, "contiguous", "gather", HEDDLE_GROUP_PLACEMENT_FREE);
    const Share expected = overRanks(*of, whole, alone.get());
    checkAlike(expected, whole);
    for (const auto &placement : {std::pair(2, "contiguous"), std::pair(3, "zigzag"), std::pair(4, "striped:7"),
                                  std::pair(2, "0:1,64:100;1:64,100:131")}) {
      CAPTURE(std::string(placement.second));
      const auto &[ranks, layout] = placement;
      const PlanHandle plan = planOf(*of, kRows, ranks, layout, "gather", HEDDLE_GROUP_PLACEMENT_FREE);
      const Share got = overRanks(*of, whole, plan.get());
      checkAlike(got, whole);
      CHECK(sameBits(got, expected));
    }
  }
}

TEST_CASE("so they have where windows begin far behind the first key, on lattices whose rates divide no tile") {
  constexpr int64_t kRows = 2311;
  const std::unique_ptr<Case> of =
      caseOfText("attn.pattern @p() { %w = attn.window [400, 5] %a = attn.dilate %w by 3 at 1 %b = attn.window [30, 0] "
                 "%m = attn.or %a, %b attn.softmax union(%m) }");
  const Share whole = wholeCall(*of, kRows);
  std::optional<Share> expected;
  for (const auto &placement :
       {std::pair(1, "contiguous"), std::pair(2, "zigzag"), std::pair(4, "contiguous"), std::pair(3, "striped:300")}) {
    CAPTURE(std::string(placement.second));
    const auto &[ranks, layout] = placement;
    const PlanHandle plan = planOf(*of, kRows, ranks, layout, "gather", HEDDLE_GROUP_PLACEMENT_FREE);
    const Share got = overRanks(*of, whole, plan.get());
    checkAlike(got, whole);
    CHECK(sameBits(got, expected.value_or(got)));
    expected = got;
  }
}

TEST_CASE("what travels is what rows keep of other ranks") {
  constexpr int64_t kRows = 128;
  auto travelling = [&](const char *text, int32_t ranks, const char *layout) {
    Case of;
    of.whole = parse(text);
    return factsOf(planOf(of, kRows, ranks, layout, "gather").get()).headRows;
  };
  const char *window = "attn.pattern @p() { %m = attn.window [7, 0] attn.softmax union(%m) }";
  CHECK(travelling(window, 4, "contiguous") == 3 * 7 * kKvHeads);
  const char *segments = "attn.pattern @p() { %c = attn.causal %m = attn.segment %c by [32] attn.softmax union(%m) }";
  CHECK(travelling(segments, 4, "contiguous") == 0);
  const char *thin = "attn.pattern @p() { %c = attn.causal %m = attn.dilate %c by 4 at 1 attn.softmax union(%m) }";
  CHECK(travelling(thin, 2, "contiguous") == 64 / 4 * kKvHeads);
  const char *causal = "attn.pattern @p() { %m = attn.causal attn.softmax union(%m) }";
  CHECK(travelling(causal, 4, "contiguous") == (32 + 64 + 96) * kKvHeads);
}

TEST_CASE("rows of a rank that would only wait begin with what they have") {
  constexpr int64_t kRows = 4200;
  auto checkBlocks = [&](const Case &of, const char *blocks) {
    PlanHandle plan = planOf(of, kRows, 2, "zigzag", "gather");
    auto info = sized<heddle_group_plan_info>();
    CHECK_OK(heddle_group_plan_get_info(plan.get(), &info));
    CHECK_MESSAGE(std::string(info.text).find(blocks) != std::string::npos, std::string(info.text));
    return plan;
  };
  auto checkResults = [&](const char *pattern, const char *blocks) {
    const std::unique_ptr<Case> of = caseOf(std::string(places().patterns + "/") + pattern, kRows, /*small=*/false);
    REQUIRE(of);
    const PlanHandle plan = checkBlocks(*of, blocks);
    const Share whole = wholeCall(*of, kRows);
    checkAlike(overRanks(*of, whole, plan.get()), whole);
  };
  checkResults("causal.mlir", "blocks 1050:2958 2958:3150\n");         // the last rows, with their own keys
  checkResults("sliding_window.mlir", "blocks 1050:2202 2202:3150\n"); // rows that need no other rank's keys
  Case around;
  around.whole = parse("attn.pattern @p() { %m = attn.window [100, 100] attn.softmax union(%m) }");
  checkBlocks(around, "blocks 1050:1242 1242:2970 2970:3150\n");
}

TEST_CASE("without lse a call writes what it does with it, in every form") {
  constexpr int64_t kRows = 1024;
  for (const auto &call :
       {std::tuple("causal", "zigzag", "gather"), std::tuple("causal", "zigzag", "ring"),
        std::tuple("causal", "contiguous", "ulysses"), std::tuple("longformer", "contiguous", "gather")}) {
    CAPTURE(std::string(std::get<2>(call)));
    const auto &[pattern, layout, form] = call;
    const std::unique_ptr<Case> of = caseOf(places().patterns + ("/" + std::string(pattern)) + ".mlir", kRows, true);
    const Share whole = wholeCall(*of, kRows);
    const PlanHandle plan = planOf(*of, kRows, 2, layout, form);
    std::vector<GroupHandle> groups = openGroup(2);
    auto outcomesOf = [&](bool areAlike) {
      return onRanks(2, [&](int32_t rank) -> heddle_status {
        const Ranges ranges = factsOf(plan.get()).ranks[size_t(rank)];
        Share share(kRows / 2, of->heads);
        Share source = whole;
        moveRows(source, share, ranges, /*isToWhole=*/false);
        heddle_attention_args args = share.forward(*of);
        args.lse = areAlike || rank ? nullptr : args.lse;
        std::fill(share.out.begin(), share.out.end(), NAN);
        heddle_status status =
            heddle_group_run(groups[size_t(rank)].get(), plan.get(), of->part.get(), nullptr, &args, 1);
        if (status != HEDDLE_OK || !areAlike)
          return status;
        const Values without = share.out;
        args = share.forward(*of);
        status = heddle_group_run(groups[size_t(rank)].get(), plan.get(), of->part.get(), nullptr, &args, 1);
        CHECK(std::memcmp(without.data(), share.out.data(), without.size() * sizeof(float)) == 0);
        return status;
      });
    };
    for (const Outcome &outcome : outcomesOf(true))
      CHECK_MESSAGE(outcome.status == HEDDLE_OK, outcome.message);
    groups = openGroup(2);
    for (const Outcome &outcome : outcomesOf(false))
      CHECK_MESSAGE(outcome.message.find("rank 1 has lse 0, rank 0 has lse 1") != std::string::npos, outcome.message);
  }
}

TEST_CASE("balanced cuts a sequence where its rows keep as many pairs") {
  auto ranks = [](const char *text, int32_t ranks, int64_t rows) {
    Case of;
    of.whole = parse(text);
    const PlanHandle plan = planOf(of, rows, ranks, "balanced", "gather");
    auto info = sized<heddle_group_plan_info>();
    CHECK_OK(heddle_group_plan_get_info(plan.get(), &info));
    return std::string(info.text);
  };
  const char *causal = "attn.pattern @p() { %m = attn.causal attn.softmax union(%m) }";
  CHECK(ranks(causal, 2, 128).find("rank 0:91\nrank 91:128\n") != std::string::npos); // 4186 of 8256 pairs
  CHECK(ranks(causal, 128, 128).find("rank 126:127\nrank 127:128\n") != std::string::npos);
  const char *full = "attn.pattern @p() { %m = attn.full attn.softmax union(%m) }";
  CHECK(ranks(full, 3, 603).find("rank 0:203\nrank 203:403\nrank 403:603\n") != std::string::npos); // steps of 4 rows
  const char *window = "attn.pattern @p() { %m = attn.window [4095, 0] attn.softmax union(%m) }";
  const std::string cut = ranks(window, 2, 16384);
  CHECK(cut.find("rank 0:9280\nrank 9280:16384\n") != std::string::npos);  // 37 tiles of 192 rows
  CHECK(cut.find("blocks 9280:13504 13504:16384\n") != std::string::npos); // 22 and 15 of them
  CHECK(cut.find("launch 1 own 0 9409:16384\n") != std::string::npos);     // the second ones need nobody
}

TEST_CASE("auto is the form that is predicted to be over first, by the rates that it is given") {
  auto options = sized<heddle_group_options>();
  options.ranks = 4, options.seqlen = 4096, options.heads = 64, options.kv_heads = 8;
  auto takes = [&](const char *text) {
    Case of;
    of.whole = parse(text);
    const char *form = nullptr;
    double ms = -1;
    CHECK_OK(heddle_group_choose_form(of.whole.get(), &options, &form, &ms));
    auto asked = options;
    asked.form = form;
    std::string texts[2];
    for (const heddle_group_options *each : {&options, &asked}) {
      heddle_group_plan *made = nullptr;
      CHECK_OK(heddle_group_plan_make(of.whole.get(), each, &made));
      const PlanHandle plan(made);
      auto info = sized<heddle_group_plan_info>();
      CHECK_OK(heddle_group_plan_get_info(made, &info));
      texts[each == &asked] = info.text;
    }
    CHECK(texts[0] == texts[1]);
    return std::string(form) + (ms > 0 ? "" : ", of which nothing is known");
  };
  const char *full = "attn.pattern @p() { %m = attn.full attn.softmax union(%m) }";
  CHECK(takes(full) == "gather");
  options.link_gbps = 25, options.link_us = 20;
  CHECK(takes(full) == "ring"); // hidden behind what it computes
  options.ranks = 8, options.seqlen = 65536, options.flags = HEDDLE_GROUP_GRADIENTS;
  CHECK(takes(full) == "ring");
  options.link_gbps = options.link_us = 0;
  CHECK(takes(full) == "ulysses"); // one launch, and no gradients in fp32 for every rank
  options.host_ranks = 4, options.host_link_gbps = 200,
  options.link_gbps = 2; // teams of a host, of whose links one is slow
  CHECK(takes(full) == "ulysses4+ring");
  options.host_ranks = 8;
  CHECK(takes(full) == "ulysses");
  options.host_ranks = 0, options.link_gbps = 0;
  options.heads = options.kv_heads = 12;
  CHECK(takes(full) != "ulysses"); // 8 ranks do not divide them
  options.flags = HEDDLE_GROUP_PLACEMENT_FREE;
  CHECK(takes(full) == "gather, of which nothing is known");
}

TEST_CASE("the plans that tests without a compiler follow are those that are made") {
  for (const PlanCase &made : planCases()) {
    const std::unique_ptr<Case> of =
        caseOf(places().patterns + ("/" + std::string(made.pattern)) + ".mlir", made.rows, /*small=*/true);
    REQUIRE(of);
    const PlanHandle plan = planOf(*of, made.rows, made.ranks, made.layout, made.form,
                                   made.isPlacementFree ? HEDDLE_GROUP_PLACEMENT_FREE : 0);
    auto info = sized<heddle_group_plan_info>();
    CHECK_OK(heddle_group_plan_get_info(plan.get(), &info));
    CHECK_MESSAGE(textOf(made) == info.text, made.file);
  }
}

TEST_CASE("handles of heddle.hpp: plans and the ends of a group") {
  Case of;
  of.whole = parse("attn.pattern @p() { %m = attn.causal attn.softmax union(%m) }");
  const api::GroupPlan plan(planOf(of, 128, 2, "zigzag", "ring").release());
  const api::Result<api::GroupPlan> again = api::GroupPlan::parse(plan.info().text);
  REQUIRE(again);
  CHECK(std::string(again->info().text) == plan.info().text);
  CHECK(*again->rows(1) == 64);
  CHECK(again->rows(2).status().code() == HEDDLE_INVALID_ARGUMENT);
  CHECK(api::GroupPlan::parse("nothing").status().code() == HEDDLE_CORRUPT);

  api::Result<std::vector<api::Group>> group = api::Group::openLocal(2);
  REQUIRE(group);
  REQUIRE(group->size() == 2);
  CHECK((*group)[1].abort("enough").isOk()); // or the other would wait for it
  const api::Status launched = (*group)[0].launch(plan, {}, "forward", api::Arguments());
  CHECK(launched.code() == HEDDLE_INVALID_ARGUMENT); // it has no GPU
  CHECK(launched.message().find("threads on processors") != std::string::npos);
  CHECK(api::Group::openLocal(0).status().code() == HEDDLE_INVALID_ARGUMENT);
}
