// Calls over the ranks of a group, threads of this process, against one call: every file of patterns/, forward and
// gradients, 1 to 8 ranks, three layouts and odd lengths; bits that do not depend on the placement; bytes that travel
// against those of the plan; ranks that disagree, leave or never come.
#include "library_fixture.h"
#include "runtime/Include/heddle.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <thread>
#include <vector>

using namespace heddle::test;
namespace api = heddle::api;

namespace {

using Values = std::vector<float>;
constexpr int64_t kHeads = 4, kKvHeads = 2, kDim = 8;

using PlanHandle = std::unique_ptr<heddle_group_plan, Closer<heddle_group_plan, heddle_group_plan_close>>;
using GroupHandle = std::unique_ptr<heddle_group, Closer<heddle_group, heddle_group_close>>;

Values waves(int64_t count, double step) {
  Values values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = float(std::sin(double(i) * step + 1));
  return values;
}

// A pattern, and what it is given.
struct Case {
  std::string name;
  PatternHandle whole, part;
  std::vector<heddle_operand> operands;
  std::vector<std::vector<int32_t>> integers;
  std::vector<Values> reals;

  void giveSize(int32_t id, int64_t value) {
    heddle_operand &operand = operands.emplace_back();
    operand.id = id, operand.kind = HEDDLE_OPERAND_INT, operand.value.i64 = value;
  }
  void giveTensor(int32_t id, const void *address) {
    heddle_operand &operand = operands.emplace_back();
    operand.id = id, operand.kind = HEDDLE_OPERAND_POINTER, operand.value.ptr = address;
  }
  void giveIntegers(int32_t id, std::vector<int32_t> values) {
    integers.push_back(std::move(values));
    giveTensor(id, integers.back().data());
    giveSize(id, int64_t(integers.back().size()));
  }
};

// Lists of key blocks: of its own block, the one before it, and every third one before those.
void giveLists(Case &made, int32_t offsets, int32_t indices, int64_t blocks) {
  std::vector<int32_t> at, of;
  for (int64_t list = 0; list < kHeads; ++list) {
    at.push_back(int32_t(of.size()));
    for (int64_t row = 0; row < blocks; ++row) {
      for (int64_t key = 0; key <= row; ++key)
        if (row - key < 2 || (row - key + list) % 3 == 0)
          of.push_back(int32_t(key));
      at.push_back(int32_t(of.size()));
    }
  }
  made.integers.push_back(std::move(at));
  made.giveTensor(offsets, made.integers.back().data());
  made.giveSize(offsets, blocks + 1);
  made.giveIntegers(indices, std::move(of));
}

void giveArguments(Case &made, int64_t rows, bool small) {
  auto info = sized<heddle_pattern_info>();
  CHECK_OK(heddle_pattern_get_info(made.whole.get(), &info));
  int32_t lists = -1;
  for (int32_t i = 0; i < info.argument_count; ++i) {
    auto argument = sized<heddle_pattern_argument>();
    CHECK_OK(heddle_pattern_get_argument(made.whole.get(), i, &argument));
    const std::string name = argument.name;
    if (argument.kind == HEDDLE_OPERAND_INT && small)
      made.giveSize(i, std::max<int64_t>(19, argument.min_int));
    if (argument.kind != HEDDLE_OPERAND_POINTER)
      continue;
    if (name == "offsets")
      lists = i;
    else if (name == "indices")
      giveLists(made, lists, i, std::string(info.name) == "block_topk" ? (rows + 63) / 64 : (rows + 127) / 128);
    else if (name == "cu")
      made.giveIntegers(i, {0, 17, 17, 90, int32_t(rows)});
    else {
      made.reals.push_back(waves(kHeads * (name == "table" ? 39 : 1), 0.61));
      made.giveTensor(i, made.reals.back().data());
      if (argument.takes_length)
        made.giveSize(i, name == "table" ? 39 : kHeads);
    }
  }
}

// Null where calls of the pattern cannot be parts.
std::unique_ptr<Case> caseOf(const std::string &path, int64_t rows, bool small) {
  auto made = std::make_unique<Case>();
  made->name = std::filesystem::path(path).stem().string();
  made->integers.reserve(8), made->reals.reserve(8); // operands point into them
  heddle_pattern *pattern = nullptr;
  CHECK_OK(heddle_pattern_read(path.c_str(), nullptr, &pattern));
  made->whole.reset(pattern);
  if (heddle_pattern_part(pattern, &pattern) != HEDDLE_OK)
    return nullptr;
  made->part.reset(pattern);
  giveArguments(*made, rows, small);
  return made;
}

// The tensors of one call, or of one rank's share.
struct Share {
  explicit Share(int64_t rows)
      : rows(rows), q(rows * kHeads * kDim), k(rows * kKvHeads * kDim), v(k.size()), out(q.size(), NAN),
        lse(rows * kHeads, NAN), dOut(q.size()), dLse(lse.size()), dQ(q.size(), NAN), dK(k.size(), NAN),
        dV(k.size(), NAN) {}

  int64_t rows;
  Values q, k, v, out, lse, dOut, dLse, dQ, dK, dV;

  heddle_tensor tensorOf(Values &values, int64_t heads) {
    return api::contiguous(values.data(), HEDDLE_FP32, {1, rows, heads, kDim});
  }
  heddle_attention_args forward(const Case &of) {
    auto args = sized<heddle_attention_args>();
    args.q = tensorOf(q, kHeads), args.k = tensorOf(k, kKvHeads), args.v = tensorOf(v, kKvHeads);
    args.out = tensorOf(out, kHeads), args.lse = lse.data();
    args.operands = of.operands.data(), args.operand_count = of.operands.size();
    return args;
  }
  heddle_attention_args backward(const Case &of) {
    heddle_attention_args args = forward(of);
    args.d_out = tensorOf(dOut, kHeads), args.d_lse = dLse.data();
    args.d_q = tensorOf(dQ, kHeads), args.d_k = tensorOf(dK, kKvHeads), args.d_v = tensorOf(dV, kKvHeads);
    return args;
  }
  std::vector<std::pair<Values Share::*, int64_t>> tensors() const {
    return {{&Share::q, kHeads * kDim},    {&Share::k, kKvHeads * kDim},  {&Share::v, kKvHeads * kDim},
            {&Share::out, kHeads * kDim},  {&Share::dOut, kHeads * kDim}, {&Share::dQ, kHeads * kDim},
            {&Share::dK, kKvHeads * kDim}, {&Share::dV, kKvHeads * kDim}};
  }
};

Share wholeCall(const Case &of, int64_t rows) {
  Share whole(rows);
  whole.q = waves(int64_t(whole.q.size()), 0.37), whole.k = waves(int64_t(whole.k.size()), 0.11);
  whole.v = waves(int64_t(whole.v.size()), 0.05), whole.dOut = waves(int64_t(whole.q.size()), 0.71);
  whole.dLse = waves(int64_t(whole.lse.size()), 0.43);
  heddle_attention_args args = whole.forward(of);
  CHECK_OK(heddle_cpu_run(of.whole.get(), nullptr, &args, 1));
  args = whole.backward(of);
  CHECK_OK(heddle_cpu_run(of.whole.get(), "backward", &args, 1));
  return whole;
}

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

// What the text of a plan says of it.
struct PlanFacts {
  std::vector<Ranges> ranks;
  int64_t headRows = 0; // of k that travel forward
};

PlanFacts factsOf(const heddle_group_plan *plan) {
  auto info = sized<heddle_group_plan_info>();
  CHECK_OK(heddle_group_plan_get_info(plan, &info));
  PlanFacts facts;
  facts.headRows = info.travelling;
  std::string text = info.text, line;
  for (size_t at = 0; at < text.size(); at += line.size() + 1) {
    line = text.substr(at, text.find('\n', at) - at);
    if (line.rfind("rank ", 0) != 0)
      continue;
    Ranges &ranges = facts.ranks.emplace_back();
    for (const char *word = line.c_str() + 4; *word == ' ';) {
      char *end = nullptr;
      const int64_t first = std::strtoll(word + 1, &end, 10), last = std::strtoll(end + 1, &end, 10);
      ranges.push_back({first, last});
      word = end;
    }
  }
  return facts;
}

// Copies a rank's rows out of the whole, or back.
void moveRows(Share &whole, Share &share, const Ranges &ranges, bool isToWhole) {
  int64_t own = 0;
  for (const auto &[first, last] : ranges) {
    for (const auto &[member, width] : whole.tensors()) {
      float *there = (whole.*member).data() + first * width, *here = (share.*member).data() + own * width;
      std::copy_n(isToWhole ? here : there, (last - first) * width, isToWhole ? there : here);
    }
    for (Values Share::*member : {&Share::lse, &Share::dLse})
      for (int64_t head = 0; head < kHeads; ++head) {
        float *there = (whole.*member).data() + head * whole.rows + first;
        float *here = (share.*member).data() + head * share.rows + own;
        std::copy_n(isToWhole ? here : there, last - first, isToWhole ? there : here);
      }
    own += last - first;
  }
}

PlanHandle planOf(const Case &of, int64_t rows, int32_t ranks, const std::string &layout, const char *form,
                  uint32_t flags = 0) {
  auto options = sized<heddle_group_options>();
  options.ranks = ranks;
  options.seqlen = rows, options.heads = kHeads, options.kv_heads = kKvHeads;
  options.layout = layout.c_str(), options.form = form, options.flags = flags;
  options.farthest_gap = 40;
  options.operands = of.operands.data(), options.operand_count = of.operands.size();
  heddle_group_plan *plan = nullptr;
  CHECK_OK(heddle_group_plan_make(of.whole.get(), &options, &plan));
  return PlanHandle(plan);
}

std::vector<GroupHandle> openGroup(int32_t ranks, double limit = 0) {
  std::vector<heddle_group *> handles(static_cast<size_t>(ranks));
  CHECK_OK(heddle_group_open_local(ranks, limit, handles.data()));
  return {handles.begin(), handles.end()};
}

struct Outcome {
  heddle_status status = HEDDLE_OK;
  std::string message;
};

// Every rank in a thread of its own.
std::vector<Outcome> onRanks(int32_t ranks, const std::function<heddle_status(int32_t)> &run) {
  std::vector<Outcome> outcomes(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      outcomes[size_t(rank)].status = run(rank);
      if (outcomes[size_t(rank)].status != HEDDLE_OK)
        outcomes[size_t(rank)].message = heddle_last_message();
    });
  for (std::thread &thread : threads)
    thread.join();
  return outcomes;
}

Share overRanks(const Case &of, const Share &whole, const heddle_group_plan *plan) {
  const PlanFacts facts = factsOf(plan);
  const int32_t ranks = int32_t(facts.ranks.size());
  std::vector<GroupHandle> groups = openGroup(ranks);
  Share result = whole;
  std::fill(result.out.begin(), result.out.end(), NAN), std::fill(result.lse.begin(), result.lse.end(), NAN);
  for (Values Share::*member : {&Share::dQ, &Share::dK, &Share::dV})
    std::fill((result.*member).begin(), (result.*member).end(), NAN);
  std::vector<Share> shares;
  for (const Ranges &ranges : facts.ranks) {
    int64_t rows = 0;
    for (const auto &[first, last] : ranges)
      rows += last - first;
    shares.emplace_back(rows);
    moveRows(result, shares.back(), ranges, /*isToWhole=*/false);
  }
  const std::vector<Outcome> outcomes = onRanks(ranks, [&](int32_t rank) {
    Share &share = shares[size_t(rank)];
    heddle_attention_args args = share.forward(of);
    if (heddle_status status = heddle_group_run(groups[size_t(rank)].get(), plan, of.part.get(), nullptr, &args, 1))
      return status;
    args = share.backward(of);
    return heddle_group_run(groups[size_t(rank)].get(), plan, of.part.get(), "backward", &args, 1);
  });
  for (const Outcome &outcome : outcomes)
    CHECK_MESSAGE(outcome.status == HEDDLE_OK, outcome.message);
  for (size_t rank = 0; rank < shares.size(); ++rank)
    moveRows(result, shares[rank], facts.ranks[rank], /*isToWhole=*/true);
  return result;
}

double farthest(const Values &a, const Values &b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i] || std::isnan(a[i]))
      most = std::isfinite(a[i]) && std::isfinite(b[i]) ? std::max(most, std::abs(double(a[i]) - b[i])) : INFINITY;
  return most;
}

void checkAlike(const Share &got, const Share &expected) {
  CHECK(farthest(got.out, expected.out) <= 2e-6);
  CHECK(farthest(got.lse, expected.lse) <= 4e-6);
  CHECK(farthest(got.dQ, expected.dQ) <= 1e-5);
  CHECK(farthest(got.dK, expected.dK) <= 2e-5);
  CHECK(farthest(got.dV, expected.dV) <= 2e-5);
}

bool sameBits(const Share &a, const Share &b) {
  for (Values Share::*member : {&Share::out, &Share::lse, &Share::dQ, &Share::dK, &Share::dV})
    if (std::memcmp((a.*member).data(), (b.*member).data(), (a.*member).size() * sizeof(float)) != 0)
      return false;
  return true;
}

std::vector<std::string> libraryFiles() {
  std::vector<std::string> paths;
  for (const auto &entry : std::filesystem::directory_iterator(HEDDLE_PATTERNS))
    if (entry.path().extension() == ".mlir")
      paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

} // namespace

TEST_CASE("every pattern of the library over 1 to 8 ranks is what one call computes, forward and gradients") {
  long parts = 0, notParts = 0;
  for (const std::string &path : libraryFiles()) {
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
      for (const char *layout : {"contiguous", "zigzag", "striped:10"})
        for (const char *form : {"gather", "ring"}) {
          auto info = sized<heddle_pattern_info>();
          CHECK_OK(heddle_pattern_get_info(of->whole.get(), &info));
          if (std::string(form) == "ring" && std::string(info.text).find("detached") != std::string::npos)
            continue;
          CAPTURE(ranks);
          CAPTURE(std::string(layout));
          CAPTURE(std::string(form));
          const PlanHandle plan = planOf(*of, kRows, ranks, layout, form);
          checkAlike(overRanks(*of, whole, plan.get()), whole);
        }
  }
  CHECK(parts >= 40);
  CHECK(notParts == 2); // bias and tree_decode
}

TEST_CASE("placement-free results have the same bits on any number of ranks, wherever rows lie") {
  constexpr int64_t kRows = 131;
  for (const char *name : {"causal", "sliding_window", "longformer", "dilated_window", "document", "random_blocks",
                           "relative_bias", "sink"}) {
    CAPTURE(std::string(name));
    const std::unique_ptr<Case> of = caseOf(HEDDLE_PATTERNS + ("/" + std::string(name)) + ".mlir", kRows, true);
    REQUIRE(of);
    const Share whole = wholeCall(*of, kRows);
    const PlanHandle alone = planOf(*of, kRows, 1, "contiguous", "gather", HEDDLE_GROUP_PLACEMENT_FREE);
    const Share expected = overRanks(*of, whole, alone.get());
    checkAlike(expected, whole);
    for (const auto &[ranks, layout] : {std::pair(2, "contiguous"), std::pair(3, "zigzag"), std::pair(4, "striped:7"),
                                        std::pair(2, "0:1,64:100;1:64,100:131")}) {
      CAPTURE(std::string(layout));
      const PlanHandle plan = planOf(*of, kRows, ranks, layout, "gather", HEDDLE_GROUP_PLACEMENT_FREE);
      const Share got = overRanks(*of, whole, plan.get());
      checkAlike(got, whole);
      CHECK(sameBits(got, expected));
    }
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
  CHECK_REFUSED(heddle_group_plan_parse("", &copy), HEDDLE_CORRUPT, "heddle-group-plan 1");
  std::string text = info.text;
  CHECK_REFUSED(heddle_group_plan_parse((text + "hop 0 1 2\n").c_str(), &copy), HEDDLE_CORRUPT, "not understood");
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
    CHECK_MESSAGE(outcome.message.find("rank 1 has plan") != std::string::npos, outcome.message);
  }
  for (const Outcome &outcome : onBoth(plan.get(), 32, false))
    CHECK_MESSAGE(outcome.message.find("rank 1 has d_lse 0, rank 0 has d_lse 1") != std::string::npos, outcome.message);
  const std::vector<Outcome> outcomes = onBoth(plan.get(), 31, true);
  CHECK_MESSAGE(outcomes[0].message.find("rank 1 takes no part: attention arguments: q: rows: expected 32") !=
                    std::string::npos,
                outcomes[0].message);
  CHECK(outcomes[1].status == HEDDLE_INVALID_ARGUMENT);
}

TEST_CASE("ranks that leave or never come are named to the others, whose memory stays theirs") {
  constexpr int64_t kRows = 64;
  Case of;
  of.whole = parse("attn.pattern @p() { %m = attn.full attn.softmax union(%m) }");
  heddle_pattern *part = nullptr;
  CHECK_OK(heddle_pattern_part(of.whole.get(), &part));
  of.part.reset(part);
  const PlanHandle plan = planOf(of, kRows, 4, "contiguous", "ring");
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
  SUBCASE("one leaves") {
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
  SUBCASE("one never comes") {
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
  refused([](Options &o) { o.form = "tree"; }, HEDDLE_INVALID_ARGUMENT, "expected gather or ring, got tree");
  refused([](Options &o) { o.form = "ring", o.flags = HEDDLE_GROUP_PLACEMENT_FREE; }, HEDDLE_INVALID_ARGUMENT,
          "a ring adds up");
  heddle_group *groups[1] = {};
  CHECK_REFUSED(heddle_group_open_local(0, 0, groups), HEDDLE_INVALID_ARGUMENT, "ranks: expected 1 to 1024, got 0");
  CHECK_REFUSED(heddle_group_open_local(1, NAN, groups), HEDDLE_INVALID_ARGUMENT, "limit_seconds");
  for (const char *text : {"attn.pattern @p(%b: memref<1x?x?x?xf32>) { %m = attn.causal %s = attn.scaled "
                           "%t = attn.bias %s, %b : memref<1x?x?x?xf32> attn.softmax union(%m) of %t }",
                           "attn.pattern @p(%a: memref<?xi64>) q_origin(end) { %m = attn.tree %a : memref<?xi64> "
                           "attn.softmax union(%m) }"}) {
    heddle_pattern *part = nullptr;
    CHECK_REFUSED(heddle_pattern_part(parse(text).get(), &part), HEDDLE_UNSUPPORTED, "expected");
  }
}
