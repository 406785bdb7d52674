#include "compiler/Group/GroupTimes.h"
#include "compiler/Group/HeadTimes.h"

#include <algorithm>
#include <set>

namespace heddle {
namespace {

using attn::WideInt;

constexpr int64_t kRowsOfTile = 128;

/// How long the parts of one rank's work last, wherever they stand in the order.
class WorkClock {
public:
  WorkClock(const GroupPlan &plan, const GroupWalk &walk, const RingCall &call, attn::PairCounter counter)
      : plan(plan), walk(walk), call(call), counter(std::move(counter)) {}

  bool areKnown() const { return isKnown; }

  struct LaunchTime {
    double ms = 0;
    double tileMs = 0; ///< of the longest tile; as the launch, where no rate of tiles is given
    double workMs = 0; ///< of all processors, if others have work as well
  };

  LaunchTime timeOf(size_t rank, const ShardLaunch &launch) { return timeOf(blockOf(rank, launch), launch.columns); }

  LaunchTime timeOf(const RowRange &rows, const RowRange &columns) {
    if (rows.size() == 0)
      return {};
    const double flops = double(call.kind.flopsOfPair(call.headDim, call.valueDim)) * 1e-9;
    const double all = pairs(rows, columns) * double(call.batch) * flops / call.rates.tflops;
    if (!(call.rates.tileTflops > 0))
      return {all, all, all};
    double ofRow = 0;
    for (int64_t row : {rows.begin, rows.begin + rows.size() / 2, rows.end - 1})
      ofRow = std::max(ofRow, pairs({row, row + 1}, columns));
    const double ofTile = ofRow / double(plan.heads) * double(kRowsOfTile) * flops / call.rates.tileTflops;
    return {std::max(all, ofTile), ofTile, all};
  }

  /// Forward, a launch that does not end its block leaves out and lse in fp32.
  double carryMs(size_t rank, const ShardLaunch &launch, int64_t number) const {
    if (call.kind.isBackward() || number + 1 == launchesOf(rank, launch.rows))
      return 0;
    return memoryMs(partBytes(blockOf(rank, launch)));
  }

  /// Of the results of rows in fp32, and of q of rows that travel.
  double partBytes(const RowRange &rows) const {
    return double(rows.size() * call.batch * plan.heads * (call.valueDim + 1) * int64_t(sizeof(float)));
  }
  double queryBytes(const RowRange &rows) const {
    return double(rows.size() * call.batch * plan.heads * call.headDim * dtypeBytes(call.dtype));
  }
  /// A part is read, as what it is merged into, which is written.
  double mergeMs(const RowRange &rows) const { return memoryMs(3 * partBytes(rows)); }
  double blankMs(const ShardStep &share) const {
    int64_t columns = 0;
    for (const RowRange &blank : share.blanks)
      columns += blank.size();
    return memoryMs(double(columns * plan.kvHeads * call.bytesOfKey()));
  }

  /// Own rows of windows are read and written.
  double copyMs(size_t rank, const ShardStep &share) const {
    int64_t rows = 0;
    for (const RowRange &window : share.windows)
      for (const RowRange &own : plan.layout[rank])
        rows += std::max<int64_t>(0, std::min(window.end, own.end) - std::max(window.begin, own.begin));
    return memoryMs(2.0 * double(rows * plan.kvHeads * call.bytesOfKey()));
  }

  /// Rows that are no run of bytes are packed, and unpacked.
  double packMs(const Hop &hop) const {
    const bool isRun = call.batch == 1 && hop.parts.size() == 1 && hop.parts[0].heads == plan.kvHeads &&
                       hop.parts[0].rows.size() == 1 && hop.parts[0].rows[0].rate == 1;
    return isRun ? 0 : memoryMs(2.0 * double(hop.headRows() * call.bytesOfKey()));
  }
  /// Sums are packed, or read, added and written.
  double sumMs(const Hop &hop, int64_t times) const {
    return memoryMs(double(times * hop.headRows() * call.gradientBytesOfKey()));
  }

  double messageMs(double bytes) const {
    return bytes > 0 ? bytes / (call.rates.linkGBps * 1e6) + call.rates.latencyUs * 1e-3 : 0;
  }
  double furtherLaunchMs() const { return call.rates.launchUs * 1e-3; }

  const RowRange &blockOf(size_t rank, const ShardLaunch &launch) const {
    return walk.blocks[rank][size_t(launch.rows)];
  }

private:
  double memoryMs(double bytes) const { return call.rates.memoryGBps > 0 ? bytes / (call.rates.memoryGBps * 1e6) : 0; }
  int64_t launchesOf(size_t rank, int32_t block) const {
    int64_t launches = 0;
    for (const GroupStep &step : walk.steps)
      for (const ShardLaunch &launch : step.ranks[rank].launches)
        launches += launch.rows == block;
    return launches;
  }
  double pairs(const RowRange &rows, const RowRange &columns) {
    if (columns.size() == 0)
      return 0;
    const std::optional<WideInt> kept = counter.count({rows.begin, rows.end}, {columns.begin, columns.end});
    isKnown &= kept.has_value();
    return static_cast<double>(kept.value_or(0));
  }

  const GroupPlan &plan;
  const GroupWalk &walk;
  const RingCall &call;
  attn::PairCounter counter;
  bool isKnown = true;
};

struct Span {
  double begin = 0, end = 0;

  double sharedWith(const Span &other) const {
    return std::max(0.0, std::min(end, other.end) - std::max(begin, other.begin));
  }
};

class GroupClock {
public:
  GroupClock(const GroupWalk &walk, const RingCall &call, WorkClock &work)
      : walk(walk), call(call), work(work), ranks(walk.blocks.size()), queues(ranks), times(ranks) {}

  std::vector<GroupRankTime> run() {
    const size_t count = walk.steps.size();
    for (size_t step = 0; step < count; ++step) {
      if (step == 0)
        fetch(0);
      for (size_t rank = 0; rank < ranks; ++rank) {
        if (isIdleBefore(step, rank))
          addMemory(rank, work.copyMs(rank, walk.steps[step].ranks[rank]));
        wait(rank, !walk.steps[step].ranks[rank].windows.empty());
      }
      if (step + 2 == count)
        meetGuests();
      if (step + 1 == count)
        bringGuestsHome();
      if (step + 1 < count)
        fetch(step + 1);
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
    bool hasWaited = false;
  };

  void wait(size_t rank, bool isForWindows) {
    Queues &of = queues[rank];
    const double waits = std::max(0.0, of.link - of.compute);
    of.compute += waits;
    times[rank].waitMs += waits;
    if (isForWindows && !of.hasWaited)
      times[rank].firstWaitMs = waits, of.hasWaited = true;
  }

  /// What the ranks of a step's hops do in a message: before it, in it, behind it.
  struct Traffic {
    double before = 0, in = 0, out = 0, behind = 0;
    bool isSome() const { return in > 0 || out > 0; }
  };

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
    for (size_t rank = 0; rank < ranks; ++rank)
      ready[rank] = std::max(queues[rank].link, queues[rank].compute) + traffic[rank].before;
    std::vector<double> begin = ready;
    for (const auto &[from, to] : pairs)
      for (const auto &[one, other] : {std::pair(from, to), std::pair(to, from)})
        begin[one] = std::max(begin[one], ready[other]);
    for (size_t rank = 0; rank < ranks; ++rank)
      if (traffic[rank].isSome()) {
        Queues &of = queues[rank];
        of.message = {begin[rank], begin[rank] + work.messageMs(std::max(traffic[rank].in, traffic[rank].out))};
        of.compute = std::max(of.compute, ready[rank]);
        of.link = of.message.end + traffic[rank].behind;
        ++times[rank].messages;
      }
  }

  void fetch(size_t step) {
    std::vector<Traffic> traffic(ranks);
    for (const Hop &hop : walk.steps[step].hops) {
      Traffic &from = traffic[size_t(hop.from)], &to = traffic[size_t(hop.to)];
      const double bytes = double(hop.headRows() * call.bytesOfKey());
      from.out += bytes, from.before += work.packMs(hop);
      to.in += bytes, to.behind += work.packMs(hop);
    }
    for (size_t rank = 0; rank < ranks; ++rank)
      traffic[rank].before += work.blankMs(walk.steps[step].ranks[rank]);
    Pairs pairs = pairsOf(walk.steps[step]);
    if (step + 2 == walk.steps.size())
      forEachGuest([&](const GuestRows &guests, const RowRange &rows, size_t rank) {
        traffic[size_t(guests.home)].out += work.queryBytes(rows), traffic[rank].in += work.queryBytes(rows);
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
    const WorkClock::LaunchTime computes = work.timeOf(rows, columns);
    of.aside = std::max(of.aside, of.compute) + computes.ms;
    of.compute += computes.workMs;
    times[rank].computeMs += computes.workMs;
    ++times[rank].launches;
  }

  void bringGuestsHome() {
    if (walk.guests.empty())
      return;
    for (size_t rank = 0; rank < ranks; ++rank) {
      Queues &of = queues[rank];
      times[rank].waitMs += std::max(0.0, of.aside - of.compute);
      of.compute = std::max(of.compute, of.aside);
    }
    std::vector<Traffic> traffic(ranks);
    Pairs pairs;
    forEachGuest([&](const GuestRows &guests, const RowRange &rows, size_t rank) {
      traffic[rank].out += work.partBytes(rows), traffic[size_t(guests.home)].in += work.partBytes(rows);
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
      const double bytes = double(hop.headRows() * call.gradientBytesOfKey());
      traffic[size_t(hop.to)].out += bytes, traffic[size_t(hop.to)].before += work.sumMs(hop, 2);
      traffic[size_t(hop.from)].in += bytes;
    }
    travel(pairsOf(walk.steps[step]), traffic);
  }

  void settle(size_t step) {
    for (size_t rank = 0; rank < ranks; ++rank)
      wait(rank, /*isForWindows=*/false);
    for (const Hop &hop : walk.steps[step].hops)
      addMemory(size_t(hop.from), work.sumMs(hop, 3));
  }

  void addMemory(size_t rank, double ms) {
    queues[rank].compute += ms;
    times[rank].memoryMs += ms;
  }

  void compute(size_t rank, size_t step, bool hasMessageBeside) {
    const ShardStep &share = walk.steps[step].ranks[rank];
    Queues &of = queues[rank];
    GroupRankTime &time = times[rank];
    if (!isIdleBefore(step, rank))
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
      const double further = time.launches++ ? work.furtherLaunchMs() : 0;
      const WorkClock::LaunchTime computes = work.timeOf(rank, launch);
      time.launchMs += further, time.computeMs += computes.ms;
      of.compute += further + computes.ms;
      longestTile = std::max(longestTile, computes.tileMs);
      addMemory(rank, work.carryMs(rank, launch, number));
    }
    const double beside = hasMessageBeside ? Span{begin, of.compute}.sharedWith(of.message) : 0;
    const double delay = std::min(beside, longestTile);
    of.compute += delay;
    time.besideMs += delay;
  }

  const GroupWalk &walk;
  const RingCall &call;
  WorkClock &work;
  const size_t ranks;
  std::vector<Queues> queues;
  std::vector<GroupRankTime> times;
};

} // namespace

size_t GroupTime::slowest() const {
  return size_t(std::max_element(ranks.begin(), ranks.end(),
                                 [](const GroupRankTime &a, const GroupRankTime &b) { return a.ms < b.ms; }) -
                ranks.begin());
}

GroupTime groupTime(const GroupPlan &plan, const RingCall &call, const attn::PatternAnalysis &analysis,
                    const attn::ProblemSizes &sizes) {
  if (plan.exchangesHeads)
    return headsTime(plan, call, analysis, sizes);
  const GroupWalk &walk = call.kind.isBackward() ? plan.walkOfGradients() : plan.forward;
  WorkClock work(plan, walk, call, attn::PairCounter(analysis, sizes));
  GroupTime time;
  time.ranks = GroupClock(walk, call, work).run();
  if (work.areKnown())
    time.ms = time.ranks[time.slowest()].ms;
  else
    time.ranks.clear(), time.whyNot = "kept pairs are unknown";
  return time;
}

} // namespace heddle
