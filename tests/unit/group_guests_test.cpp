// Rows that travel to the keys that they keep, as these weigh more than they do, and heads that travel to the ranks that
// compute them: results are those of one call, and bytes that travel those of the plan.
#include "support/Places.h"
#include "group_fixture.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

using namespace heddle::test;

namespace {

std::string textOf(const heddle_group_plan *plan) {
  auto info = sized<heddle_group_plan_info>();
  CHECK_OK(heddle_group_plan_get_info(plan, &info));
  return info.text;
}

void expect(const std::string &text, const std::string &part) {
  CHECK_MESSAGE(text.find(part) != std::string::npos, part << " in\n" << text);
}

std::unique_ptr<Case> caseOfText(const char *text) {
  auto made = std::make_unique<Case>();
  made->whole = parse(text);
  heddle_pattern *part = nullptr;
  CHECK_OK(heddle_pattern_part(made->whole.get(), &part));
  made->part.reset(part);
  return made;
}

/// The text of a plan whose results are those of one call.
std::string checked(const Case &of, int64_t rows, int32_t ranks, const char *layout, const char *form = "gather") {
  CAPTURE(of.name);
  CAPTURE(ranks);
  const PlanHandle plan = planOf(of, rows, ranks, layout, form);
  const Share whole = wholeCall(of, rows);
  checkAlike(overRanks(of, whole, plan.get()), whole);
  heddle_group_plan *copy = nullptr;
  CHECK_OK(heddle_group_plan_parse(textOf(plan.get()).c_str(), &copy));
  const PlanHandle again(copy);
  CHECK(textOf(copy) == textOf(plan.get()));
  return textOf(plan.get());
}

/// Carries messages of ranks that are threads, and counts their bytes.
class Post {
public:
  struct Rank {
    Post *post;
    int32_t rank;
  };

  static int32_t carry(void *context, const heddle_message *sends, int32_t sendCount, const heddle_message *receives,
                       int32_t receiveCount, char *, uint64_t) {
    const Rank &own = *static_cast<Rank *>(context);
    own.post->send(own.rank, sends, sendCount);
    bool areAsExpected = true;
    for (int32_t i = 0; i < receiveCount; ++i)
      areAsExpected &= own.post->take(own.rank, receives[i]);
    return areAsExpected ? 0 : 1;
  }
  uint64_t bytes = 0;

private:
  using Letter = std::vector<char>;

  void send(int32_t from, const heddle_message *messages, int32_t count) {
    const std::lock_guard<std::mutex> lock(mutex);
    for (int32_t i = 0; i < count; ++i) {
      const char *data = static_cast<const char *>(messages[i].data);
      letters[{from, messages[i].peer}].emplace_back(data, data + messages[i].bytes);
      bytes += messages[i].bytes;
    }
    arrived.notify_all();
  }
  bool take(int32_t to, const heddle_message &message) {
    std::unique_lock<std::mutex> lock(mutex);
    std::deque<Letter> &box = letters[{message.peer, to}];
    arrived.wait(lock, [&] { return !box.empty(); });
    const Letter letter = std::move(box.front());
    box.pop_front();
    std::memcpy(message.data, letter.data(), std::min<size_t>(letter.size(), message.bytes));
    return letter.size() == message.bytes;
  }

  std::mutex mutex;
  std::condition_variable arrived;
  std::map<std::pair<int32_t, int32_t>, std::deque<Letter>> letters;
};

/// Of all ranks, forward or of gradients. Ranks meet in their first call of a kind, so the second one is counted.
uint64_t bytesOfCall(const Case &of, int64_t rows, const heddle_group_plan *plan, bool isBackward) {
  const PlanFacts facts = factsOf(plan);
  const int32_t ranks = int32_t(facts.ranks.size());
  Post post;
  std::vector<Post::Rank> ends;
  std::vector<GroupHandle> groups;
  for (int32_t rank = 0; rank < ranks; ++rank)
    ends.push_back({&post, rank});
  for (Post::Rank &end : ends) {
    heddle_group *group = nullptr;
    CHECK_OK(heddle_group_open_carried(end.rank, ranks, &Post::carry, &end, &group));
    groups.emplace_back(group);
  }
  Share whole(rows);
  for (int call = 0; call < 2; ++call) {
    post.bytes = 0;
    const std::vector<Outcome> outcomes = onRanks(ranks, [&](int32_t rank) {
      int64_t own = 0;
      for (const auto &[first, last] : facts.ranks[size_t(rank)])
        own += last - first;
      Share share(own);
      const heddle_attention_args args = isBackward ? share.backward(of) : share.forward(of);
      return heddle_group_run(groups[size_t(rank)].get(), plan, of.part.get(), isBackward ? "backward" : nullptr, &args,
                              1);
    });
    for (const Outcome &outcome : outcomes)
      CHECK_MESSAGE(outcome.status == HEDDLE_OK, outcome.message);
  }
  return post.bytes;
}

constexpr uint64_t kFloat = 4;

} // namespace

TEST_CASE("global rows travel to the keys of other ranks, and home merges what these find") {
  const std::unique_ptr<Case> of = caseOf(places().patterns + "/longformer.mlir", 5200, /*small=*/false);
  REQUIRE(of);
  const std::string two = checked(*of, 5200, 2, "contiguous");
  expect(two, "blocks 0:64 64:2112 2112:2600\nblocks 2600:4944 4944:5200\n");
  expect(two, "launch 0 aside 0 0:2344\n");  // beside the rows that need nothing of others
  expect(two, "launch 0 own 0 2344:2600\n"); // and the last keys, behind the merge
  expect(two, "guests 0 0\nmeet 1 0 2600:5200\n");
  expect(two, "window 0:5200\nblank 64:1088\nblank 1320:2344\n"); // global keys and the window in one launch
  CHECK(factsOf(planOf(*of, 5200, 2, "contiguous", "gather").get()).headRows == (64 + 2 * 256) * kKvHeads);
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

TEST_CASE("ranks compute all rows of some heads, of which those of k and v go to several where they are fewer") {
  const std::unique_ptr<Case> causal =
      caseOfText("attn.pattern @p() { %m = attn.causal attn.softmax union(%m) sink 0.5 }");
  for (const char *layout : {"contiguous", "zigzag", "striped:10"})
    for (int32_t ranks : {2, 4}) // of 4 heads, 2 of k and v
      expect(checked(*causal, 131, ranks, layout, "ulysses"), "\nexchange heads\n");
}

TEST_CASE("bytes that travel are keys, queries and parts of rows that travel, and heads of other ranks") {
  const std::unique_ptr<Case> front = caseOfText("attn.pattern @p() { %w = attn.window [3, 3] %r = attn.rows [4, 0] "
                                                 "%m = attn.or %w, %r attn.softmax union(%m) }");
  const PlanHandle gather = planOf(*front, 600, 3, "zigzag", "gather");
  const uint64_t keys = uint64_t(factsOf(gather.get()).headRows) * 2 * kDim;
  CHECK(keys ==
        5 * 2 * 3 * kKvHeads * 2 * kDim - 2 * 3 * kKvHeads * 2 * kDim); // of six parts in a row, two of one rank
  const uint64_t ofGuests = 2 * 4 * kHeads * (kDim + kDim + 1);         // q of 4 rows to two ranks, and their parts
  CHECK(bytesOfCall(*front, 600, gather.get(), false) == (keys + ofGuests) * kFloat);
  const PlanHandle heads = planOf(*front, 600, 4, "zigzag", "ulysses");
  const uint64_t leave = 600 * kHeads * 3 / 4, keysLeave = 600 * 4 / 2 * kKvHeads * 3 / 4; // a head of k to two ranks
  CHECK(factsOf(heads.get()).headRows == int64_t(keysLeave));
  CHECK(bytesOfCall(*front, 600, heads.get(), false) == (leave * (2 * kDim + 1) + keysLeave * 2 * kDim) * kFloat);
  // q, d_out, out, lse and d_lse; d_q; k and v there, their gradients back.
  CHECK(bytesOfCall(*front, 600, heads.get(), true) == (leave * (4 * kDim + 2) + keysLeave * 4 * kDim) * kFloat);
}
