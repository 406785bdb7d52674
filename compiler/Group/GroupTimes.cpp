#include "compiler/Group/GroupTimes.h"
#include "compiler/Group/WorkClock.h"
#include "runtime/Core/FillingLaunch.h"
#include "runtime/Core/PartsLaunch.h"

#include <algorithm>
#include <set>

namespace heddle {
namespace {

struct Span {
  double begin = 0, end = 0;

  double sharedWith(const Span &other) const {
    return std::max(0.0, std::min(end, other.end) - std::max(begin, other.begin));
  }
};

class GroupClock {
public:
  /// Of walks that begin so late. Their ranks are teams of so many.
  GroupClock(const GroupWalk &walk, const RingCall &call, WorkClock &work, int64_t headRanks,
             const std::vector<double> &begin, Spans spans)
      : walk(walk), call(call), work(work), headRanks(headRanks), spans(spans), ranks(walk.blocks.size()),
        queues(ranks), times(ranks) {
    for (size_t rank = 0; rank < ranks; ++rank) {
      queues[rank].compute = queues[rank].link = queues[rank].aside = begin[rank];
      beforeParts.push_back(launchBeforeParts(walk, rank));
    }
  }

  std::vector<GroupRankTime> run() {
    const size_t count = walk.steps.size();
    for (size_t step = 0; step < count; ++step) {
      if (step == 0)
        fetch(0);
      for (size_t rank = 0; rank < ranks; ++rank) {
        if (isIdleBefore(step, rank) && step != 1)
          addMemory(rank, work.copyMs(rank, walk.steps[step].ranks[rank]));
        wait(rank, !walk.steps[step].ranks[rank].windows.empty());
      }
      if (step + 2 == count)
        meetGuests();
      if (step + 1 == count)
        mergeGuests();
      if (step + 1 < count)
        fetch(step + 1);
      for (size_t rank = 0; rank < ranks && step == 0 && count > 1; ++rank)
        addMemory(rank, work.copyMs(rank, walk.steps[1].ranks[rank]));
      for (size_t rank = 0; rank < ranks; ++rank)
        compute(rank, step, step + 1 < count);
      if (!call.kind.isBackward())
        continue;
      if (step > 0)
        settle(step - 1);
      sendHome(step);
    }
    if (call.kind.isBackward() && count > 0)
      settle(count - 1);
    for (size_t rank = 0; rank < ranks; ++rank) {
      wait(rank, /*isForWindows=*/false);
      times[rank].ms = queues[rank].compute;
    }
    return std::move(times);
  }

private:
  struct Queues {
    double compute = 0, link = 0;
    double aside = 0;
    Span message = {}; ///< the last one
    std::vector<int64_t> launchesOfBlocks = {};
    int64_t launches = 0; ///< but for those aside
    bool hasWaited = false;
    std::optional<double> partsLeave = {}; ///< if anything is computed behind them
  };

  void keep(size_t rank, SpanQueue queue, SpanKind kind, double begin, double end) {
    if (spans == Spans::kept)
      addSpan(times[rank].spans, {queue, kind, begin, end});
  }
  /// The queue of kernels does this for so long.
  void spend(size_t rank, SpanKind kind, double ms) {
    double &now = queues[rank].compute;
    keep(rank, SpanQueue::Kernels, kind, now, now + ms);
    now += ms;
  }

  void wait(size_t rank, bool isForWindows) {
    Queues &of = queues[rank];
    const double over = of.link + (times[rank].messages ? work.followMs() : 0);
    const double waits = std::max(0.0, over - of.compute);
    of.compute += waits;
    times[rank].waitMs += waits;
    if (isForWindows && !of.hasWaited)
      times[rank].firstWaitMs = waits, of.hasWaited = true;
  }

  /// What the ranks of a step's hops do in a message: before it, in it, behind it.
  struct Traffic {
    double before = 0, behind = 0;
    bool isPacked = false, isUnpacked = false;
    LinkLoad load = {};
  };

  /// A slower link of a member would be waited for.
  bool areOfHost(size_t rank, size_t peer) const {
    const int64_t from = int64_t(rank) * headRanks, to = int64_t(peer) * headRanks, last = headRanks - 1;
    return call.rates.areOfHost(from, to) && call.rates.areOfHost(from + last, to + last);
  }
  void carry(std::vector<Traffic> &traffic, size_t from, size_t to, double bytes) const {
    traffic[from].load.send(areOfHost(from, to), bytes);
    traffic[to].load.receive(areOfHost(from, to), bytes);
  }

  bool isIdleBefore(size_t step, size_t rank) const {
    return step == 0 || walk.steps[step - 1].ranks[rank].launches.empty();
  }

  using Pairs = std::vector<std::pair<size_t, size_t>>;

  Pairs pairsOf(const GroupStep &step) const {
    Pairs pairs;
    for (const Hop &hop : step.hops)
      pairs.emplace_back(hop.from, hop.to);
    return pairs;
  }

  void travel(const Pairs &pairs, const std::vector<Traffic> &traffic) {
    std::vector<double> ready(ranks);
    for (size_t rank = 0; rank < ranks; ++rank) {
      const Queues &of = queues[rank];
      ready[rank] = std::max(of.link, of.partsLeave.value_or(of.compute) + work.followMs()) + traffic[rank].before +
                    (traffic[rank].isPacked ? work.followMs() : 0);
    }
    std::vector<double> begin = ready;
    for (const auto &[from, to] : pairs)
      for (const auto &[one, other] : {std::pair(from, to), std::pair(to, from)})
        begin[one] = std::max(begin[one], ready[other]);
    for (size_t rank = 0; rank < ranks; ++rank)
      if (traffic[rank].load.isSome()) {
        Queues &of = queues[rank];
        of.message = {begin[rank], begin[rank] + traffic[rank].load.ms(call.rates)};
        const double packed = ready[rank] - work.followMs(); // of which further launches have their share
        keep(rank, SpanQueue::Kernels, SpanKind::Memory,
             std::max(of.compute, packed - traffic[rank].before - (traffic[rank].isPacked ? work.followMs() : 0)),
             packed);
        of.compute = std::max(of.compute, packed);
        times[rank].receivedBytes += traffic[rank].load.received();
        times[rank].fromBeyondBytes += traffic[rank].load.receivedFromBeyond();
        of.link = of.message.end + traffic[rank].behind + (traffic[rank].isUnpacked ? work.followMs() : 0);
        keep(rank, SpanQueue::Links, SpanKind::Message, of.message.begin, of.message.end);
        keep(rank, SpanQueue::Links, SpanKind::Memory, of.message.end, of.link);
        ++times[rank].messages;
      }
  }

  void fetch(size_t step) {
    std::vector<Traffic> traffic(ranks);
    for (const Hop &hop : walk.steps[step].hops) {
      carry(traffic, size_t(hop.from), size_t(hop.to), double(hop.headRows() * call.bytesOfKey()));
      Traffic &sender = traffic[size_t(hop.from)], &receiver = traffic[size_t(hop.to)];
      sender.before += work.packMs(hop), receiver.behind += work.packMs(hop);
      sender.isPacked |= work.isPacked(hop), receiver.isUnpacked |= work.isPacked(hop);
    }
    for (size_t rank = 0; rank < ranks; ++rank)
      traffic[rank].before += work.blankMs(walk.steps[step].ranks[rank]);
    Pairs pairs = pairsOf(walk.steps[step]);
    if (step + 2 == walk.steps.size())
      forEachGuest([&](const GuestRows &guests, const RowRange &rows, size_t rank) {
        carry(traffic, size_t(guests.home), rank, work.queryBytes(rows));
        pairs.emplace_back(guests.home, rank);
      });
    travel(pairs, traffic);
  }

  /// Of each rank that rows meet.
  template <class Use> void forEachGuest(const Use &use) const {
    for (const GuestRows &guests : walk.guests) {
      std::set<int32_t> met;
      for (const GuestRows::Meeting &meeting : guests.meetings)
        if (met.insert(meeting.rank).second)
          use(guests, walk.blocks[size_t(guests.home)][size_t(guests.rows)], size_t(meeting.rank));
    }
  }

  void meetGuests() {
    for (const GuestRows &guests : walk.guests)
      for (const GuestRows::Meeting &meeting : guests.meetings)
        addAside(size_t(meeting.rank), walk.blocks[size_t(guests.home)][size_t(guests.rows)], meeting.columns);
  }

  /// A launch beside those that come behind it, which it delays by its share of all processors. Those before it have them.
  void addAside(size_t rank, const RowRange &rows, const RowRange &columns) {
    Queues &of = queues[rank];
    const WorkClock::LaunchTime computes = work.timeAside(rows, columns);
    const double begin = std::max(of.aside, of.compute);
    of.aside = begin + computes.ms;
    keep(rank, SpanQueue::Aside, SpanKind::Launch, begin, of.aside);
    spend(rank, SpanKind::Launch, computes.workMs);
    times[rank].computeMs += computes.workMs;
    ++times[rank].launches;
  }

  void waitForAside(size_t rank) {
    Queues &of = queues[rank];
    times[rank].waitMs += std::max(0.0, of.aside - of.compute);
    of.compute = std::max(of.compute, of.aside);
  }

  /// Parts have left behind the rank's launches on most rows, or leave now.
  void mergeGuests() {
    if (walk.guests.empty())
      return;
    for (size_t rank = 0; rank < ranks; ++rank)
      waitForAside(rank);
    std::vector<Traffic> traffic(ranks);
    Pairs pairs;
    forEachGuest([&](const GuestRows &guests, const RowRange &rows, size_t rank) {
      carry(traffic, rank, size_t(guests.home), work.partBytes(rows));
      pairs.emplace_back(rank, guests.home);
    });
    travel(pairs, traffic);
    for (size_t rank = 0; rank < ranks; ++rank)
      wait(rank, /*isForWindows=*/false);
    forEachGuest([&](const GuestRows &guests, const RowRange &rows, size_t) {
      addMemory(size_t(guests.home), work.mergeMs(rows));
    });
  }

  void sendHome(size_t step) {
    std::vector<Traffic> traffic(ranks);
    for (const Hop &hop : walk.steps[step].hops) {
      carry(traffic, size_t(hop.to), size_t(hop.from), double(hop.headRows() * call.gradientBytesOfKey()));
      traffic[size_t(hop.to)].before += work.sumMs(hop, 2);
    }
    travel(pairsOf(walk.steps[step]), traffic);
  }

  void settle(size_t step) {
    for (size_t rank = 0; rank < ranks; ++rank)
      wait(rank, /*isForWindows=*/false);
    for (const Hop &hop : walk.steps[step].hops)
      addMemory(size_t(hop.from), work.sumMs(hop, 3));
  }

  double furtherMs(const WorkClock::LaunchTime &computes) const {
    const bool isOfFew = !walk.guests.empty() && computes.ms > computes.workMs;
    return isOfFew ? work.followMs() : work.furtherLaunchMs();
  }

  void addMemory(size_t rank, double ms) {
    spend(rank, SpanKind::Memory, ms);
    times[rank].memoryMs += ms;
  }

  void compute(size_t rank, size_t step, bool hasMessageBeside) {
    const ShardStep &share = walk.steps[step].ranks[rank];
    Queues &of = queues[rank];
    GroupRankTime &time = times[rank];
    if (!isIdleBefore(step, rank) && step > 1)
      addMemory(rank, work.copyMs(rank, share));
    const double begin = of.compute;
    double longestTile = 0;
    of.launchesOfBlocks.resize(walk.blocks[rank].size());
    for (const ShardLaunch &launch : share.launches) {
      const int64_t number = of.launchesOfBlocks[size_t(launch.rows)]++;
      if (launch.isAside) {
        addAside(rank, work.blockOf(rank, launch), launch.columns);
        continue;
      }
      time.waitingRows += number == 0 && launch.window >= 0 ? work.blockOf(rank, launch).size() : 0;
      const bool isFilling = !call.kind.isBackward() && fillsOthers(walk, rank, step, launch);
      const WorkClock::LaunchTime computes = work.timeOf(rank, launch);
      const double further = of.launches++ && !isFilling ? furtherMs(computes) : 0;
      ++time.launches;
      time.launchMs += further, time.computeMs += computes.ms;
      spend(rank, SpanKind::Further, further);
      spend(rank, SpanKind::Launch, computes.ms);
      longestTile = std::max(longestTile, computes.tileMs);
      addMemory(rank, work.carryMs(rank, launch, number));
      if (&launch == beforeParts[rank]) {
        waitForAside(rank);
        of.partsLeave = of.compute;
      }
    }
    const double beside = hasMessageBeside ? Span{begin, of.compute}.sharedWith(of.message) : 0;
    const double delay = std::min(beside, longestTile);
    spend(rank, SpanKind::Beside, delay);
    time.besideMs += delay;
  }

  const GroupWalk &walk;
  const RingCall &call;
  WorkClock &work;
  const int64_t headRanks;
  const Spans spans;
  const size_t ranks;
  std::vector<Queues> queues;
  std::vector<GroupRankTime> times;
  std::vector<const ShardLaunch *> beforeParts; ///< by rank
};

} // namespace

size_t GroupTime::slowest() const {
  return size_t(std::max_element(ranks.begin(), ranks.end(),
                                 [](const GroupRankTime &a, const GroupRankTime &b) { return a.ms < b.ms; }) -
                ranks.begin());
}

double GroupTime::bytes() const {
  double sum = 0;
  for (const GroupRankTime &rank : ranks)
    sum += rank.receivedBytes;
  return sum;
}

/// When the walk of each team may begin.
static std::vector<double> beginsOf(const GroupPlan &plan, const std::vector<HeadTimes> &heads) {
  std::vector<double> begins(size_t(plan.teams()), 0);
  for (size_t rank = 0; rank < heads.size(); ++rank) {
    double &begin = begins[rank / size_t(plan.headRanks)];
    begin = std::max(begin, heads[rank].arrive.ms());
  }
  return begins;
}

/// A rank's, of the walk of its team and of its exchange of heads.
static GroupRankTime timeOf(GroupRankTime walk, const HeadTimes &heads, double walkBegins, int64_t rows) {
  walk.ms += heads.leave.ms();
  walk.memoryMs += heads.arrive.memoryMs + heads.leave.memoryMs;
  walk.waitMs += walkBegins - heads.arrive.memoryMs + heads.leave.waitMs;
  for (const HeadTime &each : {heads.arrive, heads.leave})
    walk.receivedBytes += each.receivedBytes, walk.fromBeyondBytes += each.fromBeyondBytes;
  walk.messages += heads.arrive.messages + heads.leave.messages;
  walk.firstWaitMs = walkBegins - heads.arrive.memoryMs;
  walk.waitingRows = rows;
  return walk;
}

/// Likewise, of a walk that took so long.
static GroupSpans spansOf(const GroupSpans &walk, double walkMs, const HeadTimes &heads) {
  GroupSpans spans = heads.arrive.spans;
  spans.insert(spans.end(), walk.begin(), walk.end());
  for (const GroupSpan &span : heads.leave.spans)
    spans.push_back({span.queue, span.kind, walkMs + span.begin, walkMs + span.end});
  return spans;
}

GroupTime groupTime(const GroupPlan &plan, const RingCall &call, const attn::PatternAnalysis &analysis,
                    const attn::ProblemSizes &sizes, Spans spans) {
  const RingCall ofTeams = call.ofTeams(plan.headRanks);
  attn::ProblemSizes sizesOfTeams = sizes;
  sizesOfTeams.heads = ofTeams.heads;
  const GroupWalk &walk = call.kind.isBackward() ? plan.walkOfGradients() : plan.forward;
  WorkClock work(plan, walk, ofTeams, attn::PairCounter(analysis, sizesOfTeams));
  const std::vector<HeadTimes> heads = headTimes(plan, call);
  const std::vector<double> begins = beginsOf(plan, heads);
  const std::vector<GroupRankTime> walks = GroupClock(walk, ofTeams, work, plan.headRanks, begins, spans).run();
  GroupTime time;
  if (!work.areKnown()) {
    time.whyNot = "kept pairs are unknown";
    return time;
  }
  for (int32_t rank = 0; rank < plan.ranks(); ++rank) {
    const size_t team = size_t(rank / plan.headRanks);
    time.ranks.push_back(plan.headRanks > 1 ? timeOf(walks[team], heads[size_t(rank)], begins[team], plan.rowsOf(rank))
                                            : walks[team]);
    if (spans == Spans::kept && plan.headRanks > 1)
      time.ranks.back().spans = spansOf(walks[team].spans, walks[team].ms, heads[size_t(rank)]);
  }
  time.ms = time.ranks[time.slowest()].ms;
  return time;
}

double leastMs(const attn::GroupBounds &bounds, const RingCall &call, const attn::PatternAnalysis &analysis,
               const attn::ProblemSizes &sizes, int64_t headRanks) {
  const RingCall ofMember = call.ofTeams(headRanks);
  attn::ProblemSizes sizesOfMember = sizes;
  sizesOfMember.heads = ofMember.heads;
  attn::PairCounter counter(analysis, sizesOfMember);
  const double msOfPair =
      double(call.batch) * double(call.kind.flopsOfPair(call.headDim, call.valueDim)) * 1e-9 / call.rates.tflops;
  double most = 0;
  for (const attn::TeamBounds &team : bounds.teams) {
    double ms = double(team.launches - 1) * call.rates.launchUs * 1e-3;
    for (const attn::IndexRange &rows : team.rows)
      ms += double(counter.count(rows, {0, sizes.seqlenK}).value_or(0)) * msOfPair;
    // All links of a rank at work at the same time.
    const double gbps = call.rates.linkGBps + (call.rates.hostRanks > 0 ? call.rates.hostGBps : 0);
    const double linkMs = double(team.asked * ofMember.bytesOfKey()) / (gbps * 1e6);
    most = std::max({most, ms, linkMs});
  }
  return most;
}

} // namespace heddle
