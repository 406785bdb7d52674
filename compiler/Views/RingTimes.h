// Owns the arithmetic of `heddle ring plan`: what a plan of ranks takes at given rates, in three schemes. Nothing here is
// measured; kernels run at one rate whatever their size, and links do not disturb each other.
//
// With P ranks, KV(a, b) the bytes of k and v of rank b that a head of rank a keeps, G(a, b) those of their gradients in
// fp32 (0 forward), C(a, b) the kept pairs of queries of a and keys of b, times FLOPs of a pair, over the kernel rate:
//   ring        slot t = 0 .. P of rank r lasts max(C(r, r - t), M(r, t)), where the link moves what the next step needs
//               and the gradients of the step before: M = max(in, out) / bandwidth + latency, 0 if nothing moves,
//               in = KV(r, r - t - 1) + G(r + t - 1, r), out = KV(r + t + 1, r) + G(r, r - t + 1). Ranks count modulo P,
//               a rank sends itself nothing, and slot P only takes the last gradients home. A call lasts as its slowest
//               rank. Messages go straight from owner to reader, so only what is kept travels.
//   all-gather  every rank receives k and v of all others whole, in P - 1 messages, then runs one kernel; backward,
//               gradients in fp32 go back the same way. Nothing is hidden.
//   ulysses     all-to-all of q, k and v, one kernel on heads / P heads of the whole sequence, all-to-all of out (backward:
//               of q, k, v, out and d_out, then of dq, dk and dv). Each takes what a rank sends to the others, and a latency.
//               Kernels of all ranks take the mean of all pairs. Where P divides the heads, and divides those of k and v or is
//               a multiple of them.
//   ulyssesU+ring   the same within teams of U consecutive ranks, with U for P, and between them, in place of the kernel, the
//               ring of P / U teams with heads / U heads.
// Where hosts are given, M and all others take the longer one of what goes within a host and what goes beyond, each over its
// links; a message between teams is within a host if all of its members' are.
#pragma once

#include "compiler/Group/RingCall.h"
#include "dialect/Geometry/ShardPlan.h"

#include <string>

namespace heddle::views {

struct RingSlot {
  size_t peer; ///< whose keys are computed
  double computeMs, moveMs;
  bool isWaiting() const { return moveMs > computeMs; }
  double ms() const { return isWaiting() ? moveMs : computeMs; }
};

struct RankTime {
  attn::WideInt receives = 0, sends = 0; ///< bytes
  double computeMs = 0, ms = 0;
  int64_t slots = 0, waiting = 0; ///< with something to do, and those that wait for the link
  double waitMs() const { return ms - computeMs; }
};

struct RingScheme {
  std::string name;
  std::optional<double> ms; ///< none: see whyNot
  std::string whyNot = {};
  int64_t headRanks = 1; ///< of teams that exchange heads
  bool isRing() const { return name.size() >= 4 && name.compare(name.size() - 4, 4, "ring") == 0; }
};

struct RingTimes {
  std::vector<RankTime> ranks;     ///< of the ring; bytes where nothing else is known
  std::vector<RingScheme> schemes; ///< ring, all-gather, ulysses, then mixes
  std::optional<size_t> best;      ///< index into schemes
  std::optional<double> gain;      ///< time of the next best over that of the best, less 1
};

RingTimes ringTimes(const attn::ShardPlan &plan, const attn::ShardLayout &layout, const RingCall &call);
/// One more scheme, of teams of so many ranks of the layout; `ofTeams`: of their rows and of the heads of a member.
void addMix(RingTimes &times, const attn::ShardPlan &ofTeams, const attn::ShardLayout &layout, const RingCall &call,
            int64_t headRanks);

/// Slots of a rank, in order; none if kept pairs are unknown. The last one only moves.
std::vector<RingSlot> ringSlots(const attn::ShardPlan &plan, const RingCall &call, size_t rank);

} // namespace heddle::views
