#include "compiler/Views/RingTimes.h"
#include "runtime/Core/CountText.h"
#include "runtime/Core/GroupPlan.h"

#include <algorithm>

namespace heddle::views {
namespace {

using attn::ShardPlan;
using attn::WideInt;

class RingClock {
public:
  /// Ranks of the plan are teams of so many; the call is that of a member.
  RingClock(const ShardPlan &plan, const RingCall &call, int64_t headRanks = 1)
      : plan(plan), call(call), headRanks(headRanks), ranks(plan.ranks()),
        flopsOfPair(double(call.batch) * double(call.kind.flopsOfPair(call.headDim, call.valueDim))),
        bytesOfKey(call.bytesOfKey()), gradientBytesOfKey(call.gradientBytesOfKey()) {}

  RingSlot slot(size_t rank, size_t index) const {
    const size_t peer = before(rank, index);
    const double compute = index < ranks ? computeMs(plan.step(rank, peer).pairs.value_or(0)) : 0;
    return {peer, compute, messagesOf(rank, index).ms(call.rates)};
  }

  double computeMs(WideInt pairs) const { return static_cast<double>(pairs) * flopsOfPair / (call.rates.tflops * 1e9); }

  WideInt keyBytes(size_t rank, size_t peer) const { return bytes(rank, peer, bytesOfKey); }
  WideInt gradientBytes(size_t rank, size_t peer) const { return bytes(rank, peer, gradientBytesOfKey); }
  bool areOfHost(size_t rank, size_t peer) const {
    const int64_t from = int64_t(rank) * headRanks, to = int64_t(peer) * headRanks, last = headRanks - 1;
    return call.rates.areOfHost(from, to) && call.rates.areOfHost(from + last, to + last);
  }

private:
  size_t before(size_t rank, size_t steps) const { return (rank + 2 * ranks - steps) % ranks; }
  size_t behind(size_t rank, size_t steps) const { return (rank + steps) % ranks; }

  WideInt bytes(size_t rank, size_t peer, int64_t ofKey) const {
    return rank == peer ? 0 : plan.step(rank, peer).headColumns * ofKey;
  }
  /// Beside the step `index` of a rank: what its next one needs, and gradients of the step before.
  LinkLoad messagesOf(size_t rank, size_t index) const {
    LinkLoad load;
    auto receive = [&](size_t peer, WideInt bytes) { load.receive(areOfHost(rank, peer), double(bytes)); };
    auto send = [&](size_t peer, WideInt bytes) { load.send(areOfHost(rank, peer), double(bytes)); };
    if (index + 1 < ranks) {
      receive(before(rank, index + 1), keyBytes(rank, before(rank, index + 1)));
      send(behind(rank, index + 1), keyBytes(behind(rank, index + 1), rank));
    }
    if (index > 1) {
      receive(behind(rank, index - 1), gradientBytes(behind(rank, index - 1), rank));
      send(before(rank, index - 1), gradientBytes(rank, before(rank, index - 1)));
    }
    return load;
  }

  const ShardPlan &plan;
  const RingCall &call;
  int64_t headRanks;
  size_t ranks;
  double flopsOfPair; ///< of all batch elements; asked for by every pair of ranks, as are bytes
  int64_t bytesOfKey, gradientBytesOfKey;
};

RankTime timeOf(const RingClock &clock, const ShardPlan &plan, size_t rank) {
  RankTime time;
  for (size_t peer = 0; peer < plan.ranks(); ++peer) {
    time.receives += clock.keyBytes(rank, peer) + clock.gradientBytes(peer, rank);
    time.sends += clock.keyBytes(peer, rank) + clock.gradientBytes(rank, peer);
  }
  for (size_t index = 0; index <= plan.ranks(); ++index) {
    const RingSlot slot = clock.slot(rank, index);
    time.computeMs += slot.computeMs;
    time.ms += slot.ms();
    time.slots += slot.ms() > 0;
    time.waiting += slot.isWaiting();
  }
  return time;
}

double longest(const std::vector<RankTime> &ranks) {
  double most = 0;
  for (const RankTime &rank : ranks)
    most = std::max(most, rank.ms);
  return most;
}

RingScheme gatherScheme(const RingClock &clock, const attn::ShardLayout &layout, const RingTimes &times,
                        const RingCall &call) {
  double most = 0;
  for (size_t rank = 0; rank < layout.ranks.size(); ++rank) {
    LinkLoad keys, gradients;
    for (size_t peer = 0; peer < layout.ranks.size(); ++peer)
      if (peer != rank) {
        const double rows = double(layout.rowsOf(peer)) * double(call.kvHeads);
        keys.receive(clock.areOfHost(rank, peer), rows * double(call.bytesOfKey()));
        gradients.receive(clock.areOfHost(rank, peer), rows * double(call.gradientBytesOfKey()));
      }
    most = std::max(most, times.ranks[rank].computeMs + keys.ms(call.rates, /*isOneMessage=*/false) +
                              gradients.ms(call.rates, /*isOneMessage=*/false));
  }
  return {"all-gather", most};
}

/// Bytes of a token that go to one member, before the kernel, and behind it. `call`: of a member.
std::pair<int64_t, int64_t> exchangedBytes(const RingCall &call) {
  const int64_t queries = call.heads * call.headDim, keys = call.kvHeads * (call.headDim + call.valueDim),
                outputs = call.heads * call.valueDim, element = call.batch * dtypeBytes(call.dtype);
  return call.kind.isBackward() ? std::pair((queries + keys + 2 * outputs) * element, (queries + keys) * element)
                                : std::pair((queries + keys) * element, outputs * element);
}

/// Of the rank that takes longest, both ways.
double exchangeMs(const attn::ShardLayout &layout, const RingCall &ofMember, int64_t headRanks) {
  const auto [before, behind] = exchangedBytes(ofMember);
  double most = 0;
  for (int64_t rank = 0; rank < int64_t(layout.ranks.size()); ++rank) {
    LinkLoad there, home;
    for (int64_t peer = rank / headRanks * headRanks; peer < (rank / headRanks + 1) * headRanks; ++peer) {
      const bool isOfHost = ofMember.rates.areOfHost(rank, peer);
      const double sent = peer == rank ? 0 : double(layout.rowsOf(size_t(rank))),
                   received = peer == rank ? 0 : double(layout.rowsOf(size_t(peer)));
      there.send(isOfHost, sent * double(before)), there.receive(isOfHost, received * double(before));
      home.send(isOfHost, received * double(behind)), home.receive(isOfHost, sent * double(behind));
    }
    most = std::max(most, there.ms(ofMember.rates) + home.ms(ofMember.rates));
  }
  return most;
}

RingScheme ulyssesScheme(const ShardPlan &plan, const attn::ShardLayout &layout, const RingCall &call) {
  const auto ranks = int64_t(plan.ranks());
  if (!canExchange(call.heads, call.kvHeads, ranks))
    return {"ulysses", std::nullopt,
            counted(ranks, "rank") + " do not divide the " + counted(call.heads, "head") + ", or neither divide the " +
                std::to_string(call.kvHeads) + " of k and v nor are a multiple of them",
            ranks};
  WideInt pairs = 0;
  for (size_t rank = 0; rank < plan.ranks(); ++rank)
    pairs += *plan.pairsOf(rank);
  return {"ulysses",
          RingClock(plan, call).computeMs(pairs) / double(ranks) + exchangeMs(layout, call.ofTeams(ranks), ranks),
          {},
          ranks};
}

void findBest(RingTimes &times) {
  times.best.reset();
  std::optional<double> next;
  for (size_t index = 0; index < times.schemes.size(); ++index) {
    const std::optional<double> ms = times.schemes[index].ms;
    if (!ms)
      continue;
    const bool isBest = !times.best || *ms < *times.schemes[*times.best].ms;
    const std::optional<double> other = isBest ? (times.best ? times.schemes[*times.best].ms : std::nullopt) : ms;
    if (other)
      next = std::min(next.value_or(*other), *other);
    if (isBest)
      times.best = index;
  }
  if (next && *times.schemes[*times.best].ms > 0)
    times.gain = *next / *times.schemes[*times.best].ms - 1;
}

} // namespace

void addMix(RingTimes &times, const ShardPlan &ofTeams, const attn::ShardLayout &layout, const RingCall &call,
            int64_t headRanks) {
  const RingCall ofMember = call.ofTeams(headRanks);
  RingScheme mix{"ulysses" + std::to_string(headRanks) + "+ring", std::nullopt, "kept pairs are unknown", headRanks};
  if (ofTeams.balance()) {
    const RingClock clock(ofTeams, ofMember, headRanks);
    double ring = 0;
    for (size_t team = 0; team < ofTeams.ranks(); ++team)
      ring = std::max(ring, timeOf(clock, ofTeams, team).ms);
    mix.ms = ring + exchangeMs(layout, ofMember, headRanks), mix.whyNot = {};
  }
  times.schemes.push_back(std::move(mix));
  findBest(times);
}

RingTimes ringTimes(const ShardPlan &plan, const attn::ShardLayout &layout, const RingCall &call) {
  const RingClock clock(plan, call);
  RingTimes times;
  for (size_t rank = 0; rank < plan.ranks(); ++rank)
    times.ranks.push_back(timeOf(clock, plan, rank));
  if (!plan.balance()) {
    for (const char *name : {"ring", "all-gather", "ulysses"})
      times.schemes.push_back({name, std::nullopt, "kept pairs are unknown"});
    return times;
  }
  times.schemes = {
      {"ring", longest(times.ranks)}, gatherScheme(clock, layout, times, call), ulyssesScheme(plan, layout, call)};
  findBest(times);
  return times;
}

std::vector<RingSlot> ringSlots(const ShardPlan &plan, const RingCall &call, size_t rank) {
  std::vector<RingSlot> slots;
  if (!plan.pairsOf(rank))
    return slots;
  const RingClock clock(plan, call);
  for (size_t index = 0; index <= plan.ranks(); ++index)
    slots.push_back(clock.slot(rank, index));
  return slots;
}

} // namespace heddle::views
