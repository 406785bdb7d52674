// Tensors with an entry for each query, of which a rank has those of its own rows: results are those of one call, whatever
// else the pattern does, and what such tensors do not allow is refused.
#include "group_post.h"
#include "support/Places.h"

using namespace heddle::test;

namespace {

constexpr int64_t kRows = 131;

std::unique_ptr<Case> biased(const std::string &mask, const std::string &type, const std::string &behind = "") {
  std::unique_ptr<Case> made =
      caseOfText(("attn.pattern @p(%b: " + type + ") { " + mask + " %s = attn.scaled %t = attn.bias %s, %b : " + type +
                  " attn.softmax union(%m) of %t " + behind + " }")
                     .c_str());
  giveArguments(*made, kRows, /*small=*/true);
  return made;
}

const std::string kCausal = "%m = attn.causal", kType = "memref<1x?x?x?xf32>";
// Few rows that keep all keys, which travel where they may.
const std::string kGlobal = "%w = attn.window [3, 3] %r = attn.rows [4, 0] %m = attn.or %w, %r";

} // namespace

TEST_CASE("a rank's rows of a bias, whichever of its sizes are 1, are those of one call") {
  for (const char *type : {"memref<1x?x?x?xf32>", "memref<?x1x?x?xbf16>", "memref<1x1x?x?xbf16>", "memref<1x?x?x1xf32>",
                           "memref<1x?x1x?xf32>", "memref<1x1x?x1xbf16>", "memref<1x?x1x1xf32>"}) {
    CAPTURE(std::string(type));
    const std::unique_ptr<Case> of = biased(kCausal, type);
    for (const auto &[ranks, layout, form] :
         {std::tuple(2, "zigzag", "gather"), {3, "contiguous", "ring"}, {4, "striped:10", "gather"}})
      checked(*of, kRows, ranks, layout, form);
  }
}

TEST_CASE("masks, several tensors and ranges of a rank that lie apart") {
  for (const char *mask : {"%m = attn.window [19, 7]", "%c = attn.causal %m = attn.dilate %c by 4 at 1",
                           "%c = attn.causal %m = attn.segment %c by [32]",
                           "%w = attn.window [9, 0] %r = attn.cols [4, 3] %m = attn.or %w, %r", kGlobal.c_str()}) {
    CAPTURE(std::string(mask));
    const std::unique_ptr<Case> of = biased(mask, kType);
    for (const auto &[ranks, layout, form] : {std::tuple(2, "0:1,64:100;1:64,100:131", "gather"),
                                              {2, "contiguous", "ring"},
                                              {3, "zigzag", "gather"},
                                              {8, "striped:5", "ring"}})
      checked(*of, kRows, ranks, layout, form);
  }
  const std::unique_ptr<Case> two = caseOfText(
      "attn.pattern @p(%b: memref<1x?x?x?xf32>, %n: i32, %c: memref<1x1x?x1xbf16>) { %m = attn.window [%n, 0] "
      "%s = attn.scaled %t = attn.bias %s, %b : memref<1x?x?x?xf32> %u = attn.softcap %t by 3.0 "
      "%x = attn.bias %u, %c : memref<1x1x?x1xbf16> attn.softmax union(%m) of %x }");
  giveArguments(*two, kRows, /*small=*/true);
  const std::string text = checked(*two, kRows, 3, "zigzag");
  expect(text, "rows-of 0 524 b\nrows-of 2 2 c\n"); // 131 keys of fp32, and one of bf16
}

TEST_CASE("rows that would travel to keys stay where their entries are") {
  Case without;
  without.whole = parse(("attn.pattern @p() { " + kGlobal + " attn.softmax union(%m) }").c_str());
  expect(textOf(planOf(without, 600, 2, "contiguous", "gather").get()), "guests 0 0\n");
  std::unique_ptr<Case> of = biased(kGlobal, kType);
  const PlanHandle plan = planOf(*of, 600, 2, "contiguous", "gather");
  CHECK(textOf(plan.get()).find("guests") == std::string::npos);
}

TEST_CASE("gradients of all keys of a row in one launch read its entries, too") {
  checked(*biased("%m = attn.window [19, 7]", kType, "gradient(detached)"), kRows, 3, "zigzag");
}

TEST_CASE("placement-free results have the same bits wherever rows lie; gradients, which would need others' entries, "
          "do not") {
  checkForwardOnly(*biased("%m = attn.window [40, 9]", kType), kRows,
                   {{1, "contiguous"}, {2, "contiguous"}, {3, "zigzag"}, {2, "0:1,64:100;1:64,100:131"}},
                   "a tensor has an entry for each query");
}

TEST_CASE("what a bias does not allow is refused, with what would work") {
  const std::unique_ptr<Case> of = biased(kCausal, "memref<1x1x?x?xf32>");
  auto refused = [&](const char *form, uint32_t flags, const char *words) {
    auto options = sized<heddle_group_options>();
    options.ranks = 2, options.seqlen = kRows, options.heads = kHeads, options.kv_heads = kKvHeads;
    options.form = form, options.flags = flags;
    heddle_group_plan *plan = nullptr;
    CHECK_REFUSED(heddle_group_plan_make(of->whole.get(), &options, &plan), HEDDLE_UNSUPPORTED, words);
  };
  refused("ulysses", 0,
          "tensor 'b' has an entry for each query, of which ranks have those of their own "
          "rows: take a gather or a ring");
  refused("gather", HEDDLE_GROUP_PLACEMENT_FREE | HEDDLE_GROUP_GRADIENTS, "need those of all rows where the keys lie");
  auto options = sized<heddle_group_options>();
  options.ranks = 4, options.seqlen = 4096, options.heads = options.kv_heads = 64,
  options.flags = HEDDLE_GROUP_GRADIENTS;
  const char *form = nullptr;
  double ms = 0;
  CHECK_OK(heddle_group_choose_form(of->whole.get(), &options, &form, &ms));
  CHECK((std::string(form) == "gather" || std::string(form) == "ring"));

  const PlanHandle plan = planOf(*of, kRows, 2, "contiguous", "gather");
  auto isTold = [&](auto change, const std::string &words) {
    std::vector<GroupHandle> groups = openGroup(2);
    const std::vector<Outcome> outcomes = onRanks(2, [&](int32_t rank) {
      const Ranges ranges = factsOf(plan.get()).ranks[size_t(rank)];
      Share share(ranges[0].second - ranges[0].first);
      const RankOperands own(*of, ranges);
      heddle_attention_args args = share.forward(*of);
      own.give(args);
      std::vector<heddle_operand> operands(args.operands, args.operands + args.operand_count);
      if (rank == 1)
        change(operands);
      args.operands = operands.data(), args.operand_count = operands.size();
      return heddle_group_run(groups[size_t(rank)].get(), plan.get(), of->part.get(), nullptr, &args, 1);
    });
    CHECK_MESSAGE(outcomes[1].message.find(words) != std::string::npos, outcomes[1].message);
    CHECK(outcomes[1].status == HEDDLE_INVALID_ARGUMENT);
    CHECK(outcomes[0].status == HEDDLE_UNAVAILABLE);
    CHECK_MESSAGE(outcomes[0].message.find("rank 1 takes no part: ") == 0, outcomes[0].message);
  };
  using Operands = std::vector<heddle_operand>;
  isTold([](Operands &operands) { operands.clear(); },
         "operands: tensor 'b': expected the rank's rows of it, got none");
  isTold([](Operands &operands) { operands[0].value.ptr = nullptr; },
         "operands: tensor 'b': expected the rank's rows of it, got none");
  isTold([](Operands &operands) { operands.push_back({0, HEDDLE_OPERAND_INT, {}}); },
         "operands: tensor 'b': expected the rank's rows of it, got its length: leave that out");

  std::string text = textOf(plan.get());
  text.replace(text.find("rows-of 0 524"), std::strlen("rows-of 0 524"), "rows-of 0 0");
  heddle_group_plan *none = nullptr;
  CHECK_REFUSED(heddle_group_plan_parse(text.c_str(), &none), HEDDLE_INVALID_ARGUMENT,
                "tensor 'b' has rows of queries");
}

TEST_CASE("a part says how many rows its tensor has, those of the call first, of all keys of the whole") {
  const std::unique_ptr<Case> of = biased(kCausal, kType);
  const Share whole = wholeCall(*of, kRows);
  constexpr int64_t kFirst = 50, kCount = 20;
  Share share(kRows);
  share.q = whole.q, share.k = whole.k, share.v = whole.v;
  heddle_attention_args args = share.forward(*of);
  args.q.size[1] = args.out.size[1] = kCount, args.q_origin = kFirst;
  args.q.ptr = share.q.data() + kFirst * kHeads * kDim;
  auto launch = [&](int64_t rows) {
    const float *bias = reinterpret_cast<const float *>(of->ofQueries[0].bytes.data());
    Case given;
    given.giveTensor(0, bias + kFirst * kRows);
    for (const auto &[id, value] : {std::pair(0, rows), std::pair(1, kRows), std::pair(2, kRows)})
      given.giveSize(id, value);
    args.operands = given.operands.data(), args.operand_count = given.operands.size();
    return heddle_cpu_run(of->part.get(), nullptr, &args, 1);
  };
  CHECK_OK(launch(kRows));
  share.out.resize(size_t(kCount * kHeads * kDim));
  const auto from = whole.out.begin() + kFirst * kHeads * kDim;
  CHECK(farthest(share.out, {from, from + int64_t(share.out.size())}) < 1e-5);
  CHECK_REFUSED(launch(kCount - 1), HEDDLE_INVALID_ARGUMENT,
                "tensor 'b': expected at least 20 rows, those of the call's queries, got 19");
}
