#include "compiler/Group/HeadTimes.h"

namespace heddle {
namespace {

/// What lies with a head of a row, in bytes.
struct HeadBytes {
  int64_t queries, keys, ofQueries, ofKeys; ///< in front of the walk, and behind it
};

HeadBytes bytesOf(const RingCall &call) {
  constexpr int64_t kFloat = 4;
  const int64_t element = dtypeBytes(call.dtype);
  const int64_t q = call.headDim * element, v = call.valueDim * element;
  if (call.kind.isBackward())
    return {call.batch * (q + 2 * v + kFloat), call.bytesOfKey(), call.batch * q, call.gradientBytesOfKey()};
  return {call.batch * q, call.bytesOfKey(), call.batch * (v + kFloat), 0};
}

/// Of one team.
class HeadClock {
public:
  HeadClock(const GroupPlan &plan, int32_t team, const RingCall &call)
      : plan(plan), call(call), first(team * plan.headRanks), layout(plan.layoutOfTeam(team)),
        walks{plan.walkOfHeads(team, /*areKeys=*/false), plan.walkOfHeads(team, /*areKeys=*/true)} {
    for (int areKeys : {0, 1}) {
      hops[areKeys].resize(size_t(plan.headRanks));
      for (const Hop &hop : walks[areKeys].steps[0].hops)
        for (const int32_t member : {hop.from, hop.to})
          hops[areKeys][size_t(member)].push_back(&hop);
    }
  }

  HeadTimes timesOf(int32_t member) const {
    const HeadBytes bytes = bytesOf(call);
    HeadTimes times;
    exchange(times.arrive, member, false, bytes.queries, /*isHome=*/false);
    exchange(times.arrive, member, true, bytes.keys, /*isHome=*/false);
    exchange(times.leave, member, false, bytes.ofQueries, /*isHome=*/true);
    exchange(times.leave, member, true, bytes.ofKeys, /*isHome=*/true);
    return times;
  }

private:
  /// Packed, sent and put in their place; a rank's own heads are copied.
  void exchange(HeadTime &time, int32_t member, bool areKeys, int64_t bytes, bool isHome) const {
    if (!bytes)
      return;
    double leaves = 0, arrives = 0;
    LinkLoad load;
    for (const Hop *hop : hops[areKeys][size_t(member)]) {
      const double ofHop = double(hop->headRows() * bytes);
      const bool isOfHost = call.rates.areOfHost(first + hop->from, first + hop->to);
      if (hop->from == member)
        load.send(isOfHost, ofHop), leaves += ofHop;
      else
        load.receive(isOfHost, ofHop), arrives += ofHop;
    }
    const std::vector<RowRange> &rows = layout[size_t(member)];
    const double own = double(rowCount(rows) * plan.headsOf(member, areKeys).count * bytes);
    const bool isDirect = !isHome && call.batch == 1 && rows.size() == 1;
    const double packed = memoryMs(leaves + own), placed = memoryMs(isDirect ? 0 : arrives);
    const double sent = time.ms() + packed, there = sent + load.ms(call.rates);
    addSpan(time.spans, {SpanQueue::Kernels, SpanKind::Memory, time.ms(), sent});
    addSpan(time.spans, {SpanQueue::Links, SpanKind::Message, sent, there});
    addSpan(time.spans, {SpanQueue::Kernels, SpanKind::Memory, there, there + placed});
    time.memoryMs += packed + placed, time.waitMs += load.ms(call.rates);
    time.receivedBytes += load.received(), time.fromBeyondBytes += load.receivedFromBeyond();
    ++time.messages;
  }

  /// Of bytes that are read and written.
  double memoryMs(double bytes) const { return call.rates.memoryMs(2 * bytes); }

  const GroupPlan &plan;
  const RingCall &call;
  const int32_t first; ///< rank
  const std::vector<std::vector<RowRange>> layout;
  const GroupWalk walks[2];                      ///< of queries, and of keys
  std::vector<std::vector<const Hop *>> hops[2]; ///< of each member, likewise; none goes to where it comes from
};

} // namespace

std::vector<HeadTimes> headTimes(const GroupPlan &plan, const RingCall &call) {
  std::vector<HeadTimes> times(size_t(plan.ranks()));
  for (int32_t team = 0; team < plan.teams() && plan.headRanks > 1; ++team) {
    const HeadClock clock(plan, team, call);
    for (int32_t member = 0; member < plan.headRanks; ++member)
      times[size_t(team * plan.headRanks + member)] = clock.timesOf(member);
  }
  return times;
}

} // namespace heddle
