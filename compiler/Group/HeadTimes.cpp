#include "compiler/Group/HeadTimes.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr int64_t kRowsOfTile = 128;

/// What lies with a head of a row, in bytes.
struct HeadBytes {
  int64_t queries, keys, ofQueries, ofKeys; ///< before the launch, and behind it
};

HeadBytes bytesOf(const RingCall &call) {
  constexpr int64_t kFloat = 4;
  const int64_t element = dtypeBytes(call.dtype);
  const int64_t q = call.headDim * element, v = call.valueDim * element;
  if (call.kind.isBackward())
    return {call.batch * (q + 2 * v + kFloat), call.bytesOfKey(), call.batch * q, call.gradientBytesOfKey()};
  return {call.batch * q, call.bytesOfKey(), call.batch * (v + kFloat), 0};
}

class HeadClock {
public:
  HeadClock(const GroupPlan &plan, const RingCall &call) : plan(plan), call(call) {}

  /// Of all pairs, and those of the longest row.
  GroupRankTime timeOf(int32_t rank, double pairs, double longestRow) {
    const HeadBytes bytes = bytesOf(call);
    GroupRankTime time;
    exchange(time, rank, false, bytes.queries, /*isHome=*/false);
    exchange(time, rank, true, bytes.keys, /*isHome=*/false);
    time.firstWaitMs = time.waitMs;
    const double flops = double(call.batch * call.kind.flopsOfPair(call.headDim, call.valueDim)) * 1e-9;
    time.computeMs = pairs / plan.ranks() * flops / call.rates.tflops;
    if (call.rates.tileTflops > 0)
      time.computeMs = std::max(time.computeMs,
                                longestRow / double(plan.heads) * double(kRowsOfTile) * flops / call.rates.tileTflops);
    time.launches = 1;
    time.waitingRows = plan.rowsOf(rank);
    exchange(time, rank, false, bytes.ofQueries, /*isHome=*/true);
    exchange(time, rank, true, bytes.ofKeys, /*isHome=*/true);
    time.ms = time.computeMs + time.memoryMs + time.waitMs;
    return time;
  }

private:
  /// Packed, sent and put in their place; a rank's own heads are copied.
  void exchange(GroupRankTime &time, int32_t rank, bool areKeys, int64_t bytes, bool isHome) const {
    if (!bytes)
      return;
    const GroupWalk walk = plan.walkOfHeads(areKeys);
    double leaves = 0, arrives = 0;
    for (const Hop &hop : walk.steps[0].hops) {
      leaves += hop.from == rank ? double(hop.headRows() * bytes) : 0;
      arrives += hop.to == rank ? double(hop.headRows() * bytes) : 0;
    }
    const double own = double(plan.rowsOf(rank) * plan.headsOf(rank, areKeys).count * bytes);
    const bool isDirect = !isHome && call.batch == 1 && plan.layout[size_t(rank)].size() == 1;
    if (call.rates.memoryGBps > 0)
      time.memoryMs += 2 * (leaves + (isDirect ? 0 : arrives) + own) / (call.rates.memoryGBps * 1e6);
    if (plan.ranks() == 1)
      return;
    time.waitMs += std::max(leaves, arrives) / (call.rates.linkGBps * 1e6) + call.rates.latencyUs * 1e-3;
    ++time.messages;
  }

  const GroupPlan &plan;
  const RingCall &call;
};

} // namespace

GroupTime headsTime(const GroupPlan &plan, const RingCall &call, const attn::PatternAnalysis &analysis,
                    const attn::ProblemSizes &sizes) {
  attn::PairCounter counter(analysis, sizes);
  GroupTime time;
  auto pairs = [&](int64_t begin, int64_t end) {
    const std::optional<attn::WideInt> kept = counter.count({begin, end}, {0, plan.rows});
    if (!kept)
      time.whyNot = "kept pairs are unknown";
    return static_cast<double>(kept.value_or(0));
  };
  const double all = pairs(0, plan.rows);
  double longest = 0;
  for (int64_t row : {int64_t(0), plan.rows / 2, plan.rows - 1})
    longest = std::max(longest, pairs(row, row + 1));
  if (!time.whyNot.empty())
    return time;
  HeadClock clock(plan, call);
  for (int32_t rank = 0; rank < plan.ranks(); ++rank)
    time.ranks.push_back(clock.timeOf(rank, all, longest));
  time.ms = time.ranks[time.slowest()].ms;
  return time;
}

} // namespace heddle
