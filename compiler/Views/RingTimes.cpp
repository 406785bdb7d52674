#include "compiler/Views/RingTimes.h"
#include "runtime/Core/CountText.h"

#include <algorithm>

namespace heddle::views {
namespace {

using attn::ShardPlan;
using attn::WideInt;

class RingClock {
public:
  RingClock(const ShardPlan &plan, const RingCall &call) : plan(plan), call(call), ranks(plan.ranks()) {}

  RingSlot slot(size_t rank, size_t index) const {
    const size_t peer = before(rank, index);
    const double compute = index < ranks ? computeMs(plan.step(rank, peer).pairs.value_or(0)) : 0;
    return {peer, compute, messageMs(std::max(arriving(rank, index), leaving(rank, index)))};
  }

  double computeMs(WideInt pairs) const {
    const double flops =
        static_cast<double>(pairs) * double(call.batch) * double(call.kind.flopsOfPair(call.headDim, call.valueDim));
    return flops / (call.rates.tflops * 1e9);
  }

  double messageMs(double bytes, double messages = 1) const {
    return bytes > 0 ? bytes / (call.rates.linkGBps * 1e6) + messages * call.rates.latencyUs * 1e-3 : 0;
  }

  WideInt keyBytes(size_t rank, size_t peer) const { return bytes(rank, peer, call.bytesOfKey()); }
  WideInt gradientBytes(size_t rank, size_t peer) const { return bytes(rank, peer, call.gradientBytesOfKey()); }

private:
  size_t before(size_t rank, size_t steps) const { return (rank + 2 * ranks - steps) % ranks; }
  size_t behind(size_t rank, size_t steps) const { return (rank + steps) % ranks; }

  WideInt bytes(size_t rank, size_t peer, int64_t ofKey) const {
    return rank == peer ? 0 : plan.step(rank, peer).headColumns * ofKey;
  }
  double arriving(size_t rank, size_t index) const {
    WideInt sum = index + 1 < ranks ? keyBytes(rank, before(rank, index + 1)) : 0;
    sum += index > 1 ? gradientBytes(behind(rank, index - 1), rank) : 0;
    return static_cast<double>(sum);
  }
  double leaving(size_t rank, size_t index) const {
    WideInt sum = index + 1 < ranks ? keyBytes(behind(rank, index + 1), rank) : 0;
    sum += index > 1 ? gradientBytes(rank, before(rank, index - 1)) : 0;
    return static_cast<double>(sum);
  }

  const ShardPlan &plan;
  const RingCall &call;
  size_t ranks;
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

RingScheme ringScheme(const std::vector<RankTime> &ranks) {
  double most = 0;
  for (const RankTime &rank : ranks)
    most = std::max(most, rank.ms);
  return {"ring", most};
}

RingScheme gatherScheme(const RingClock &clock, const attn::ShardLayout &layout, const RingTimes &times,
                        const RingCall &call) {
  int64_t rows = 0;
  for (size_t rank = 0; rank < layout.ranks.size(); ++rank)
    rows += layout.rowsOf(rank);
  const double messages = double(layout.ranks.size()) - 1;
  double most = 0;
  for (size_t rank = 0; rank < layout.ranks.size(); ++rank) {
    const double keys = double(rows - layout.rowsOf(rank)) * double(call.kvHeads);
    most = std::max(most, times.ranks[rank].computeMs + clock.messageMs(keys * double(call.bytesOfKey()), messages) +
                              clock.messageMs(keys * double(call.gradientBytesOfKey()), messages));
  }
  return {"all-gather", most};
}

/// Bytes of a token before the kernel, and behind it.
std::pair<int64_t, int64_t> ulyssesBytes(const RingCall &call) {
  const int64_t queries = call.heads * call.headDim, keys = call.kvHeads * (call.headDim + call.valueDim),
                outputs = call.heads * call.valueDim, element = call.batch * dtypeBytes(call.dtype);
  return call.kind.isBackward() ? std::pair((queries + keys + 2 * outputs) * element, (queries + keys) * element)
                                : std::pair((queries + keys) * element, outputs * element);
}

RingScheme ulyssesScheme(const RingClock &clock, const ShardPlan &plan, const attn::ShardLayout &layout,
                         const RingCall &call) {
  const auto ranks = int64_t(plan.ranks());
  if (call.kvHeads % ranks)
    return {"ulysses", std::nullopt,
            counted(ranks, "rank") + " do not divide the " + counted(call.kvHeads, "head") + " of k and v"};
  int64_t rows = 0;
  WideInt pairs = 0;
  for (size_t rank = 0; rank < plan.ranks(); ++rank) {
    rows = std::max(rows, layout.rowsOf(rank));
    pairs += *plan.pairsOf(rank);
  }
  const auto [before, behind] = ulyssesBytes(call);
  const double sent = double(rows) * double(ranks - 1) / double(ranks);
  return {"ulysses", clock.computeMs(pairs) / double(ranks) + clock.messageMs(sent * double(before)) +
                         clock.messageMs(sent * double(behind))};
}

void findBest(RingTimes &times) {
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
  times.schemes = {ringScheme(times.ranks), gatherScheme(clock, layout, times, call),
                   ulyssesScheme(clock, plan, layout, call)};
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
