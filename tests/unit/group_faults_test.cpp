// Plans as texts, and what is refused or lost in calls over ranks: ranks that disagree, leave or never come, plans that are
// none.
#include "group_fixture.h"

#include <functional>

using namespace heddle::test;

TEST_CASE("texts of plans come back, and damaged ones are refused") {
  Case of;
  of.whole = parse("attn.pattern @p() { %c = attn.causal %m = attn.dilate %c by 4 at 1 attn.softmax union(%m) }");
  const PlanHandle plan = planOf(of, 100, 3, "zigzag", "ring");
  auto info = sized<heddle_group_plan_info>(), again = info;
  CHECK_OK(heddle_group_plan_get_info(plan.get(), &info));
  heddle_group_plan *copy = nullptr;
  CHECK_OK(heddle_group_plan_parse(info.text, &copy));
  const PlanHandle closes(copy);
  CHECK_OK(heddle_group_plan_get_info(copy, &again));
  CHECK(std::string(info.text) == again.text);
  CHECK(again.ranks == 3);
  CHECK(again.rows == 100);
  CHECK_REFUSED(heddle_group_plan_parse("", &copy), HEDDLE_CORRUPT, "heddle-group-plan 4");
  std::string text = info.text;
  CHECK_REFUSED(heddle_group_plan_parse((text + "hop 0 1 2\n").c_str(), &copy), HEDDLE_CORRUPT, "not understood");
  CHECK_REFUSED(heddle_group_plan_parse((text.substr(0, text.find("walk")) + "teams 0\n").c_str(), &copy),
                HEDDLE_CORRUPT, "not understood");
  CHECK_REFUSED(heddle_group_plan_parse((text.substr(0, text.find("walk")) + "teams 2\n").c_str(), &copy),
                HEDDLE_INVALID_ARGUMENT, "got 2 of 3 ranks, 4 heads and 2 of k and v");
  CHECK_REFUSED(heddle_group_plan_parse(text.substr(0, text.find("walk")).c_str(), &copy), HEDDLE_INVALID_ARGUMENT,
                "expected a walk forward");
  const size_t rank = text.find("rank ") + 5;
  text.replace(rank, text.find('\n', rank) - rank, "0:1");
  CHECK_REFUSED(heddle_group_plan_parse(text.c_str(), &copy), HEDDLE_INVALID_ARGUMENT,
                "expected every row on one rank");
}

TEST_CASE("ranks that disagree are told before anything is sent") {
  constexpr int64_t kRows = 64;
  Case of;
  const char *causal = "attn.pattern @p() { %m = attn.causal attn.softmax union(%m) }";
  of.whole = parse(causal);
  heddle_pattern *part = nullptr;
  CHECK_OK(heddle_pattern_part(of.whole.get(), &part));
  of.part.reset(part);
  const PlanHandle plan = planOf(of, kRows, 2, "contiguous", "gather"),
                   other = planOf(of, kRows, 2, "0:40;40:64", "gather");
  auto onBoth = [&](const heddle_group_plan *ofSecond, int64_t rowsOfSecond, bool withDLse) {
    std::vector<GroupHandle> groups = openGroup(2);
    return onRanks(2, [&](int32_t rank) {
      Share share(rank ? rowsOfSecond : 32);
      heddle_attention_args args = share.backward(of);
      if (rank && !withDLse)
        args.d_lse = nullptr;
      return heddle_group_run(groups[size_t(rank)].get(), rank ? ofSecond : plan.get(), of.part.get(), "backward",
                              &args, 1);
    });
  };
  for (const Outcome &outcome : onBoth(plan.get(), 32, true))
    CHECK_MESSAGE(outcome.status == HEDDLE_OK, outcome.message);
  for (const Outcome &outcome : onBoth(other.get(), 24, true)) {
    CHECK(outcome.status == HEDDLE_INVALID_ARGUMENT);
    CHECK_MESSAGE(outcome.message.find("rank 1 has layout ") != std::string::npos, outcome.message);
  }
  for (const Outcome &outcome : onBoth(plan.get(), 32, false))
    CHECK_MESSAGE(outcome.message.find("rank 1 has d_lse 0, rank 0 has d_lse 1") != std::string::npos, outcome.message);
  const std::vector<Outcome> outcomes = onBoth(plan.get(), 31, true);
  CHECK_MESSAGE(outcomes[0].message.find("rank 1 takes no part: attention arguments: q: rows: expected 32") !=
                    std::string::npos,
                outcomes[0].message);
  CHECK(outcomes[1].status == HEDDLE_INVALID_ARGUMENT);
}

TEST_CASE("tensors that are not of the call, and sizes that are not the plan's, are told to all ranks before anything "
          "is sent") {
  constexpr int64_t kRows = 64;
  Case of;
  of.whole = parse("attn.pattern @p(%left: i32) { %m = attn.window [%left, 0] attn.softmax union(%m) }");
  heddle_pattern *part = nullptr;
  CHECK_OK(heddle_pattern_part(of.whole.get(), &part));
  of.part.reset(part);
  of.giveSize(0, 5);
  using Change = std::function<void(heddle_attention_args &, heddle_operand &)>;
  const std::vector<std::pair<Change, const char *>> wrong = {
      {[](auto &args, auto &) { args.k.dtype = HEDDLE_BF16; }, "k: dtype: expected fp32 as q, got bf16"},
      {[](auto &args, auto &) { args.v.dtype = HEDDLE_FP16; }, "v: dtype: expected fp32 as q, got fp16"},
      {[](auto &args, auto &) { args.out.dtype = HEDDLE_BF16; }, "out: dtype: expected fp32 as q, got bf16"},
      {[](auto &args, auto &) { args.k.size[3] /= 2; }, "k: size of dim: expected "},
      {[](auto &args, auto &) { args.v.size[1] = 10; }, "v: size of row: expected 32, got 10"},
      {[](auto &args, auto &) { args.v.size[0] = 2; }, "v: size of batch: expected 1, got 2"},
      {[](auto &args, auto &) { args.out.size[1] = 10; }, "out: size of row: expected 32, got 10"},
      {[](auto &args, auto &) { args.v.stride[3] = 2; }, "v: stride of dim: expected 1, got 2"},
      {[](auto &args, auto &) { args.k.ptr = nullptr; }, "k: address: expected host memory, got null"},
      {[](auto &, auto &size) { size.value.i64 = 6; },
       "left: expected 5, of which the plan was made, got 6; make a plan of it"}};
  for (const char *form : {"gather", "ulysses"}) {
    const PlanHandle plan = planOf(of, kRows, 2, "contiguous", form);
    for (const auto &fault : wrong) {
      CAPTURE(std::string(fault.second));
      std::vector<GroupHandle> groups = openGroup(2);
      const std::vector<Outcome> outcomes = onRanks(2, [&](int32_t rank) {
        Share share(32);
        heddle_attention_args args = share.forward(of);
        heddle_operand size = of.operands[0];
        args.operands = &size, args.operand_count = 1;
        if (rank == 1)
          fault.first(args, size);
        return heddle_group_run(groups[size_t(rank)].get(), plan.get(), of.part.get(), nullptr, &args, 1);
      });
      const std::string words = fault.second;
      CHECK(outcomes[0].status == HEDDLE_UNAVAILABLE);
      CHECK_MESSAGE(outcomes[0].message.find("rank 1 takes no part: attention arguments: " + words) !=
                        std::string::npos,
                    outcomes[0].message);
      CHECK(outcomes[1].status == HEDDLE_INVALID_ARGUMENT);
      CHECK_MESSAGE(outcomes[1].message.find(words) != std::string::npos, outcomes[1].message);
    }
  }
}

TEST_CASE("ranks that leave or never come are named to the others, whose memory stays theirs") {
  constexpr int64_t kRows = 64;
  Case of;
  of.whole = parse("attn.pattern @p() { %m = attn.full attn.softmax union(%m) }");
  heddle_pattern *part = nullptr;
  CHECK_OK(heddle_pattern_part(of.whole.get(), &part));
  of.part.reset(part);
  for (const char *form : {"ring", "ulysses2+ring"}) {
    CAPTURE(std::string(form));
    const PlanHandle plan = planOf(of, kRows, 4, "contiguous", form);
    auto run = [&](std::vector<GroupHandle> &groups, int32_t rank) {
      Share share(16);
      std::fill(share.out.begin(), share.out.end(), 7.0f);
      heddle_attention_args args = share.forward(of);
      const heddle_status status =
          heddle_group_run(groups[size_t(rank)].get(), plan.get(), of.part.get(), nullptr, &args, 1);
      if (status != HEDDLE_OK)
        CHECK(std::count(share.out.begin(), share.out.end(), 7.0f) == int64_t(share.out.size()));
      return status;
    };
    { // one leaves
      std::vector<GroupHandle> groups = openGroup(4);
      const std::vector<Outcome> outcomes = onRanks(4, [&](int32_t rank) {
        return rank == 2 ? heddle_group_abort(groups[2].get(), "its GPU fell off") : run(groups, rank);
      });
      for (int32_t rank : {0, 1, 3}) {
        CHECK(outcomes[size_t(rank)].status == HEDDLE_UNAVAILABLE);
        CHECK_MESSAGE(outcomes[size_t(rank)].message.find("rank 2 left: its GPU fell off") != std::string::npos,
                      outcomes[size_t(rank)].message);
      }
    }
    { // one never comes
      std::vector<GroupHandle> groups = openGroup(4, /*limit=*/0.05);
      const std::vector<Outcome> outcomes =
          onRanks(4, [&](int32_t rank) { return rank == 1 ? HEDDLE_OK : run(groups, rank); });
      for (int32_t rank : {0, 2, 3}) {
        CHECK(outcomes[size_t(rank)].status == HEDDLE_UNAVAILABLE);
        CHECK_MESSAGE(outcomes[size_t(rank)].message.find("waited 50 ms for rank 1") != std::string::npos,
                      outcomes[size_t(rank)].message);
      }
      // A group that lost a rank stays lost; the others make a new one.
      CHECK_REFUSED(run(groups, 0), HEDDLE_UNAVAILABLE, "waited 50 ms");
    }
  }
}

TEST_CASE("plans and groups that cannot be are refused with what would work") {
  Case of;
  of.whole = parse("attn.pattern @p() { %m = attn.causal attn.softmax union(%m) }");
  auto refused = [&](auto change, heddle_status code, const char *words) {
    auto options = sized<heddle_group_options>();
    options.ranks = 2;
    options.seqlen = 64, options.heads = 4, options.kv_heads = 2;
    change(options);
    heddle_group_plan *plan = nullptr;
    CHECK_REFUSED(heddle_group_plan_make(of.whole.get(), &options, &plan), code, words);
  };
  using Options = heddle_group_options;
  refused([](Options &o) { o.ranks = 0; }, HEDDLE_INVALID_ARGUMENT, "ranks: expected 1 or more, got 0");
  refused([](Options &o) { o.ranks = 65; }, HEDDLE_INVALID_ARGUMENT, "without rows");
  refused([](Options &o) { o.kv_heads = 3; }, HEDDLE_INVALID_ARGUMENT, "kv_heads: expected a divisor of heads");
  refused([](Options &o) { o.layout = "round"; }, HEDDLE_INVALID_ARGUMENT, "expected contiguous, zigzag");
  refused([](Options &o) { o.layout = "0:32;33:64"; }, HEDDLE_INVALID_ARGUMENT, "32");
  refused([](Options &o) { o.layout = "0:32"; }, HEDDLE_INVALID_ARGUMENT, "expected ranges of 2 ranks, got 1");
  refused([](Options &o) { o.form = "tree"; }, HEDDLE_INVALID_ARGUMENT,
          "form: expected auto, gather, ring, ulysses, or teams such as ulysses4+ring or ulysses4+gather, got tree");
  refused([](Options &o) { o.batch = -1; }, HEDDLE_INVALID_ARGUMENT, "batch: expected 0 to 2^20, got -1");
  refused([](Options &o) { o.link_gbps = NAN; }, HEDDLE_INVALID_ARGUMENT, "link_gbps: expected 0 to 1e6");
  refused([](Options &o) { o.dtype = 77; }, HEDDLE_INVALID_ARGUMENT, "dtype: expected");
  refused([](Options &o) { o.flags = 4; }, HEDDLE_INVALID_ARGUMENT, "flags: expected HEDDLE_GROUP_*, got 4");
  refused([](Options &o) { o.form = "ring", o.flags = HEDDLE_GROUP_PLACEMENT_FREE; }, HEDDLE_INVALID_ARGUMENT,
          "a ring adds up");
  auto isUlysses = [&](int32_t ranks, heddle_status code, const char *words) {
    refused([&](Options &o) { o.form = "ulysses", o.ranks = ranks; }, code, words);
  };
  isUlysses(3, HEDDLE_INVALID_ARGUMENT, "ulysses: 3 ranks do not divide the 4 heads");
  refused([](Options &o) { o.form = "ulysses", o.ranks = 4, o.heads = 12, o.kv_heads = 6; }, HEDDLE_INVALID_ARGUMENT,
          "4 ranks do not divide the 12 heads, or neither divide the 6 of k and v nor are a multiple of them: take a "
          "gather");
  refused([](Options &o) { o.form = "ulysses", o.flags = HEDDLE_GROUP_PLACEMENT_FREE; }, HEDDLE_INVALID_ARGUMENT,
          "in the order of ranks");
  auto isTeams = [&](const char *form, heddle_status code, const char *words) {
    refused([&](Options &o) { o.form = form, o.ranks = 8; }, code, words);
  };
  isTeams("ulysses3+ring", HEDDLE_INVALID_ARGUMENT, "ulysses3: teams of 3 do not divide the 8 ranks");
  isTeams("ulysses16+ring", HEDDLE_INVALID_ARGUMENT, "ulysses16: teams of 16 do not divide the 8 ranks");
  isTeams("ulysses", HEDDLE_INVALID_ARGUMENT, "ulysses: 8 ranks do not divide the 4 heads");
  refused([](Options &o) { o.form = "ulysses4+gather", o.ranks = 8, o.heads = 6; }, HEDDLE_INVALID_ARGUMENT,
          "ulysses4: 4 ranks do not divide the 6 heads, or neither divide the 2 of k and v");
  refused([](Options &o) { o.form = "ulysses2+gather", o.ranks = 4, o.flags = HEDDLE_GROUP_PLACEMENT_FREE; },
          HEDDLE_INVALID_ARGUMENT, "ulysses2: gradients of k and v are added up in the order of ranks");
  for (const char *form : {"ulysses2", "ulysses2+", "ulysses2+tree", "ulysses+ring", "ulysses0+ring", "ulysses-2+ring",
                           "ulysses2 ring", "ulysses2+ring+gather", "ulysses99999999999999999999+ring"})
    isTeams(form, HEDDLE_INVALID_ARGUMENT, "form: expected auto, gather, ring, ulysses, or teams");
  refused([](Options &o) { o.host_ranks = -1; }, HEDDLE_INVALID_ARGUMENT, "host_ranks: expected 0 or more, got -1");
  refused([](Options &o) { o.host_link_us = -1; }, HEDDLE_INVALID_ARGUMENT, "host_link_us: expected 0 to 1e6");
  for (const auto &[text, words] :
       {std::pair(
            "attn.pattern @p() { %m = attn.causal %s = attn.scaled %t = attn.alibi %s attn.softmax union(%m) of %t }",
            "attn.alibi is not the same for all heads"),
        {"attn.pattern @p() { %a = attn.causal %b = attn.window [7, 0] %m = attn.heads %a, %b attn.softmax union(%m) }",
         "what heads keep is not the same for all heads"},
        {"attn.pattern @p(%s: memref<?xf32>) { %m = attn.causal attn.softmax union(%m) sink %s : memref<?xf32> }",
         "tensor 's' is not the same for all heads"},
        {"attn.pattern @p() { %m = attn.predicate { ^bb0(%b: i32, %h: i32, %q: i32, %k: i32): %x = arith.cmpi sle, %h, "
         "%q "
         ": i32 attn.yield %x : i1 } attn.softmax union(%m) }",
         "attn.predicate is not the same for all heads"}}) {
    of.whole = parse(text);
    isUlysses(2, HEDDLE_UNSUPPORTED, words);
    isTeams("ulysses2+ring", HEDDLE_UNSUPPORTED, words);
  }
  heddle_group *groups[1] = {};
  CHECK_REFUSED(heddle_group_open_local(0, 0, groups), HEDDLE_INVALID_ARGUMENT, "ranks: expected 1 to 1024, got 0");
  CHECK_REFUSED(heddle_group_open_local(1, NAN, groups), HEDDLE_INVALID_ARGUMENT, "limit_seconds");
  for (const auto &[text, words] :
       {std::pair("attn.pattern @p(%a: memref<?xi64>) q_origin(end) { %m = attn.tree %a : memref<?xi64> "
                  "attn.softmax union(%m) }",
                  "draft tokens behind a cache; one GPU has them all"),
        {"attn.pattern @p(%a: memref<?xi32>, %b: memref<?xi32>) q_origin(end) { %c = attn.causal %m = attn.documents "
         "%c at %a, %b : memref<?xi32>, memref<?xi32> attn.softmax union(%m) }",
         "offsets of one tensor are of both"}}) {
    heddle_pattern *part = nullptr;
    CHECK_REFUSED(heddle_pattern_part(parse(text).get(), &part), HEDDLE_UNSUPPORTED, words);
  }
}
