// What a rank enqueues on queues that wait for each other only where they are told to: no two queues use the same bytes at once
// of which one writes them, in one call, between two calls, and against what the caller does next. On processors, and on
// drivers that record, queues are one. The plans are those of tests/data/group_plans; group_call_test holds them to what is
// planned.
#include "group_plans.h"
#include "ordered_shard.h"

#include "runtime/Device/Kernel.h"

#include <doctest/doctest.h>

using namespace heddle;
using namespace heddle::test;

namespace {

constexpr int64_t kDim = 8;

// Calls of one rank, in memory that nobody has.
class Caller {
public:
  Caller(const GroupPlan &plan, const std::string &text, int32_t rank, bool isBackward)
      : plan(plan), digests(GroupDigests::of(plan, text)), rank(rank), isBackward(isBackward) {
    const int64_t rows = plan.rowsOf(rank);
    auto take = [&](int64_t heads, DType dtype) {
      const heddle_tensor tensor = contiguousTensor(next(), dtype, {1, rows, heads, kDim});
      return tensor;
    };
    args.q = take(plan.heads, DType::bf16), args.k = take(plan.kvHeads, DType::bf16);
    args.v = take(plan.kvHeads, DType::bf16), args.out = take(plan.heads, DType::bf16);
    args.lse = reinterpret_cast<float *>(next());
    if (isBackward) {
      args.d_out = take(plan.heads, DType::bf16);
      args.d_q = take(plan.heads, plan.writesQueryGradients() ? DType::bf16 : DType::fp32);
      args.d_k = take(plan.kvHeads, DType::fp32), args.d_v = take(plan.kvHeads, DType::fp32);
    }
    args.workspace = next();
  }

  void call(OrderedShard &shard, int calls) {
    GroupRequest request{plan, digests, Kind{isBackward ? KindBase::backward : KindBase::forward},
                         CallElements(DType::bf16), args};
    const Result<uint64_t> bytes = groupWorkspace(request, rank, shard);
    REQUIRE_MESSAGE(bytes, bytes.status().message());
    request.args.workspace_bytes = *bytes;
    Alone transport(rank, plan.ranks(), shard);
    Agreements agreed;
    for (int i = 0; i < calls; ++i) {
      const Status status = runGroupCall(request, transport, shard, agreed);
      REQUIRE_MESSAGE(status.isOk(), status.message());
      shard.useAll(isBackward, args);
    }
  }

private:
  char *next() {
    place += int64_t(1) << 30;
    return place;
  }

  const GroupPlan &plan;
  const GroupDigests digests;
  const int32_t rank;
  const bool isBackward;
  char *place = reinterpret_cast<char *>(uintptr_t(1) << 40);
  heddle_attention_args args = {};
};

GroupPlan parsed(const std::string &text) {
  Result<GroupPlan> plan = GroupPlan::parse(text);
  REQUIRE_MESSAGE(plan, plan.status().message());
  return plan.take();
}

} // namespace

TEST_CASE("no two queues of a rank use bytes at once that one of them writes, in call after call, whatever the plan") {
  for (const PlanCase &of : planCases())
    for (const bool isBackward : {false, true}) {
      const std::string text = textOf(of);
      const GroupPlan plan = parsed(text);
      int messages = 0, aside = 0;
      for (int32_t rank = 0; rank < plan.ranks(); ++rank) {
        CAPTURE(std::string(of.file));
        CAPTURE(rank);
        CAPTURE(isBackward);
        OrderedShard shard;
        Caller(plan, text, rank, isBackward).call(shard, 2);
        for (const std::string &race : shard.races)
          CHECK_MESSAGE(false, race);
        CHECK(shard.launches >= 2);
        messages += shard.messages, aside += shard.launchesAside;
      }
      CHECK((messages > 0) == of.travels);
      CHECK((aside > 0) == (of.isBeside && !isBackward));
    }
}

TEST_CASE(
    "parts of rows that travelled leave behind the launch on most rows; few rows are computed beside the message") {
  const std::string text = textOf(planCases()[5]);
  const GroupPlan plan = parsed(text);
  OrderedShard shard;
  Caller(plan, text, 0, /*isBackward=*/false).call(shard, 1);
  using Enqueued = OrderedShard::Enqueued;
  std::vector<Enqueued> messages, beside, behind;
  for (const Enqueued &each : shard.order)
    if (each.what == "message")
      messages.push_back(each);
  REQUIRE(messages.size() == 2);
  const Enqueued &parts = messages.back();
  int before = 0;
  for (const Enqueued &each : shard.order)
    if (each.what == "launch" && each.queue == Queue::compute) {
      const bool waits = each.over[int(Queue::link)] >= parts.number;
      if (each.number <= parts.over[int(Queue::compute)])
        ++before;
      else
        (waits ? behind : beside).push_back(each);
    }
  CHECK(before == 1);
  CHECK(parts.over[int(Queue::aside)] == 1); // what this rank found of the rows is merged with them
  REQUIRE(beside.size() == 2);
  CHECK(beside[0].over[int(Queue::link)] >= messages.front().number); // keys that they meet
  CHECK(behind.size() == 1);
  CHECK(shard.messages == 1 + 1 + 2 + 1); // k and v of two runs are one, q, k and v of a run, parts
}

TEST_CASE("blanks among which rows arrive are cleared in front of the message, others beside it") {
  const std::string apart = textOf(planCases()[5]);
  std::string among = apart;
  const std::string blank = "blank 19:493";
  REQUIRE(among.find(blank) != std::string::npos);
  among.replace(among.find(blank), blank.size(), "blank 0:493"); // rows 0 to 18 come
  for (const auto &[text, queue] : {std::pair(apart, Queue::compute), std::pair(among, Queue::link)}) {
    const GroupPlan plan = parsed(text);
    OrderedShard shard;
    Caller(plan, text, 1, /*isBackward=*/false).call(shard, 2);
    CHECK(shard.races.empty());
    int clears = 0;
    for (const OrderedShard::Enqueued &each : shard.order)
      if (each.what == "clear" && ++clears)
        CHECK(each.queue == queue);
    CHECK(clears > 0);
  }
}

TEST_CASE("a wait that is left out is found, of waits that matter") {
  for (const PlanCase &of : planCases()) {
    if (!of.travels)
      continue;
    CAPTURE(std::string(of.file));
    const std::string text = textOf(of);
    const GroupPlan plan = parsed(text);
    for (const bool isBackward : {false, true}) {
      OrderedShard whole;
      Caller(plan, text, 1, isBackward).call(whole, 2);
      int found = 0;
      for (int number = 0; number < whole.waits(); ++number) {
        OrderedShard shard;
        shard.leaveOut(number);
        Caller(plan, text, 1, isBackward).call(shard, 2);
        found += !shard.races.empty();
      }
      CHECK(found >= 2); // others keep messages ahead of launches, or wait for what is over anyway
    }
  }
}
