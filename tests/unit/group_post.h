// Cases by the text of a pattern, plans that are held to one call, and bytes of calls that are counted on their way.
#ifndef HEDDLE_TESTS_UNIT_GROUP_POST_H
#define HEDDLE_TESTS_UNIT_GROUP_POST_H

#include "group_fixture.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <sstream>

namespace heddle::test {

inline std::string textOf(const heddle_group_plan *plan) {
  auto info = sized<heddle_group_plan_info>();
  CHECK_OK(heddle_group_plan_get_info(plan, &info));
  return info.text;
}

inline void expect(const std::string &text, const std::string &part) {
  CHECK_MESSAGE(text.find(part) != std::string::npos, part << " in\n" << text);
}

inline std::unique_ptr<Case> caseOfText(const char *text, HeadCounts heads = {}) {
  auto made = std::make_unique<Case>();
  made->heads = heads;
  made->whole = parse(text);
  heddle_pattern *part = nullptr;
  CHECK_OK(heddle_pattern_part(made->whole.get(), &part));
  made->part.reset(part);
  return made;
}

// The text of a plan whose results are those of one call.
inline std::string checked(const Case &of, int64_t rows, int32_t ranks, const char *layout,
                           const char *form = "gather") {
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

// By ranks and layout.
using Placements = std::vector<std::pair<int32_t, std::string>>;

// Results of placement-free plans are those of one call, and their bits the same wherever rows lie.
inline void checkBits(const Case &of, int64_t rows, const Placements &placements) {
  CAPTURE(of.name);
  CAPTURE(rows);
  const Share whole = wholeCall(of, rows);
  std::optional<Share> expected;
  for (const auto &placement : placements) {
    CAPTURE(placement.first);
    CAPTURE(placement.second);
    const auto &[ranks, layout] = placement;
    const PlanHandle plan =
        planOf(of, rows, ranks, layout, "gather", HEDDLE_GROUP_PLACEMENT_FREE | HEDDLE_GROUP_GRADIENTS);
    const Share got = overRanks(of, whole, plan.get());
    checkAlike(got, whole);
    if (!expected)
      expected = got;
    CHECK(sameBits(got, *expected));
  }
}

// Rows of columns that travel on a walk, each as often as heads of it do.
inline uint64_t headRowsOf(const std::string &plan, const std::string &walk) {
  std::istringstream lines(plan);
  std::string line, current;
  uint64_t sum = 0;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string name, run;
    words >> name;
    if (name == "walk")
      words >> current;
    uint64_t first = 0, heads = 0;
    if (name != "part" || current != walk)
      continue;
    words >> first >> heads;
    while (words >> run)
      sum += heads * std::stoull(run.substr(run.rfind(':') + 1));
  }
  return sum;
}

// Carries messages of ranks that are threads, and counts their bytes.
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

// Of all ranks, forward or of gradients. Ranks meet in their first call of a kind, so the second one is counted.
inline uint64_t bytesOfCall(const Case &of, int64_t rows, const heddle_group_plan *plan, bool isBackward) {
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
  for (int call = 0; call < 2; ++call) {
    post.bytes = 0;
    const std::vector<Outcome> outcomes = onRanks(ranks, [&](int32_t rank) {
      int64_t own = 0;
      for (const auto &[first, last] : facts.ranks[size_t(rank)])
        own += last - first;
      Share share(own, of.heads);
      const RankOperands operands(of, facts.ranks[size_t(rank)]);
      heddle_attention_args args = isBackward ? share.backward(of) : share.forward(of);
      operands.give(args);
      return heddle_group_run(groups[size_t(rank)].get(), plan, of.part.get(), isBackward ? "backward" : nullptr, &args,
                              1);
    });
    for (const Outcome &outcome : outcomes)
      CHECK_MESSAGE(outcome.status == HEDDLE_OK, outcome.message);
  }
  return post.bytes;
}

} // namespace heddle::test

#endif
