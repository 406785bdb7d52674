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
  expect(text, "rows-of 0 524 0 1 1 b\nrows-of 2 2 0 0 0 c\n"); // 131 keys of fp32, and one of bf16
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

TEST_CASE("placement-free results have the same bits wherever rows lie, whatever the tensor has of its own") {
  const Placements placements = {{1, "contiguous"}, {2, "0:1,64:100;1:64,100:131"}, {3, "zigzag"}, {8, "striped:5"}};
  for (const char *type :
       {"memref<1x?x?x?xf32>", "memref<?x1x?x?xbf16>", "memref<1x1x?x?xbf16>", "memref<1x?x?x1xf32>"})
    checkBits(*biased("%m = attn.window [40, 9]", type), kRows, placements);
  for (const char *mask : {"%m = attn.causal", "%c = attn.causal %m = attn.dilate %c by 4 at 1",
                           "%w = attn.window [9, 0] %r = attn.cols [4, 3] %m = attn.or %w, %r", kGlobal.c_str()})
    checkBits(*biased(mask, kType), kRows, placements);
}

TEST_CASE("placement-free gradients of two tensors, of heads that keep different rows, of detached branches") {
  const Placements placements = {{1, "contiguous"}, {2, "contiguous"}, {4, "zigzag"}};
  const std::string heads =
      "%a = attn.window [19, 0] %c = attn.causal %d = attn.dilate %c by 4 at 0 %m = attn.heads %a, %d";
  for (const char *type : {"memref<1x1x?x?xbf16>", "memref<1x?x?x?xf32>"})
    checkBits(*biased(heads, type), kRows, placements);
  checkBits(*biased("%m = attn.window [19, 7]", kType, "gradient(detached)"), kRows, placements);
  std::unique_ptr<Case> two =
      caseOfText("attn.pattern @p(%b: memref<1x?x?x?xf32>, %c: memref<1x1x?x1xbf16>) { %m = attn.window [30, 0] "
                 "%s = attn.scaled %t = attn.bias %s, %b : memref<1x?x?x?xf32> %u = attn.softcap %t by 3.0 "
                 "%x = attn.bias %u, %c : memref<1x1x?x1xbf16> attn.softmax union(%m) of %x }");
  giveArguments(*two, kRows, /*small=*/true);
  checkBits(*two, kRows, placements);
}

TEST_CASE("of entries those travel that queries of others have for the keys of a rank, and nothing else") {
  for (const auto &[type, entryBytes] : {std::pair("memref<1x?x?x?xf32>", 4 * kHeads), {"memref<1x1x?x?xbf16>", 2}}) {
    const std::unique_ptr<Case> of = biased("%m = attn.window [19, 7]", type);
    const PlanHandle plan = planOf(*of, 120, 4, "contiguous", "gather", HEDDLE_GROUP_PLACEMENT_FREE);
    const std::string text = textOf(plan.get());
    const int64_t queries = 3 * (19 + 7); // that travel, at three borders, each to a rank of 30 keys
    CHECK(headRowsOf(text, "transposed") == uint64_t(queries * kHeads));
    const int64_t keys = int64_t(headRowsOf(text, "forward")) * 2 * kDim * 4,
                  rows = queries * kHeads * (3 * kDim + 2) * 4; // q, d_out, out, lse and d_lse
    CHECK(bytesOfCall(*of, 120, plan.get(), /*isBackward=*/true) == uint64_t(keys + rows + queries * 30 * entryBytes));
  }
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
  text.replace(text.find("rows-of 0 524"), std::strlen("rows-of 0 524"), "rows-of 0 523");
  heddle_group_plan *none = nullptr;
  CHECK_REFUSED(heddle_group_plan_parse(text.c_str(), &none), HEDDLE_INVALID_ARGUMENT,
                "tensor 'b' has rows of queries");
}

TEST_CASE("a part says how many rows its tensor has, and how many columns: those of the call, and others") {
  const std::unique_ptr<Case> of = biased(kCausal, kType);
  const Share whole = wholeCall(*of, kRows);
  constexpr int64_t kFirst = 50, kCount = 20;
  Share share(kRows);
  share.q = whole.q, share.k = whole.k, share.v = whole.v;
  heddle_attention_args args = share.forward(*of);
  args.q.size[1] = args.out.size[1] = kCount, args.q_origin = kFirst;
  args.q.ptr = share.q.data() + kFirst * kHeads * kDim;
  const float *bias = reinterpret_cast<const float *>(of->ofQueries[0].bytes.data()) + kFirst * kRows;
  auto launch = [&](int64_t rows, const float *from, int64_t columns) {
    Case given;
    given.giveTensor(0, from);
    for (const auto &[id, value] : {std::pair(0, rows), {1, kRows}, {2, kRows}, {3, columns}})
      given.giveSize(id, value);
    args.operands = given.operands.data(), args.operand_count = given.operands.size();
    return heddle_cpu_run(of->part.get(), nullptr, &args, 1);
  };
  const auto from = whole.out.begin() + kFirst * kHeads * kDim;
  const Values expected(from, from + kCount * kHeads * kDim);
  auto isRight = [&] {
    return farthest({share.out.begin(), share.out.begin() + int64_t(expected.size())}, expected) < 1e-5;
  };
  CHECK_OK(launch(kRows, bias, kRows));
  CHECK(isRight());
  CHECK_REFUSED(launch(kCount - 1, bias, kRows), HEDDLE_INVALID_ARGUMENT,
                "tensor 'b': expected at least 20 rows, those of the call's queries, got 19");

  constexpr int64_t kFirstKey = 40, kKeys = kRows - kFirstKey;
  args.k.size[1] = args.v.size[1] = kKeys, args.k_origin = kFirstKey;
  args.k.ptr = share.k.data() + kFirstKey * kKvHeads * kDim, args.v.ptr = share.v.data() + kFirstKey * kKvHeads * kDim;
  CHECK_OK(launch(kRows, bias, kRows));
  const Values ofAllColumns = share.out;
  Values alone; // the call's rows and keys, nothing else
  for (int64_t head = 0; head < kHeads; ++head)
    for (int64_t row = 0; row < kCount; ++row) {
      const float *first = bias + (head * kRows + row) * kRows + kFirstKey;
      alone.insert(alone.end(), first, first + kKeys);
    }
  CHECK_OK(launch(kCount, alone.data() - kFirstKey, kKeys));
  CHECK(std::memcmp(share.out.data(), ofAllColumns.data(), expected.size() * sizeof(float)) == 0);
  CHECK_REFUSED(launch(kCount, alone.data(), kKeys - 1), HEDDLE_INVALID_ARGUMENT,
                "expected whole_columns >= 91, got 90");
}
