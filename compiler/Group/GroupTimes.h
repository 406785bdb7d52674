// Owns what a call takes that follows a GroupPlan, at given rates. Messages, copies and launches come in the order of
// runtime/Distributed (WalkRun::run, GroupShare): change them together. Where teams exchange heads (HeadTimes.h), the walk of
// one member begins when all of its team have theirs, and is that of every member.
//
// A rank has two queues, as its GPU does. On that of kernels a launch lasts as long as its kept pairs at the rate of
// kernels, or as its longest tile of rows on one processor, if that is longer. What it leaves for a further launch, and
// copies into windows, go at the rate of memory; what is read of a carry is hidden. Each launch behind the rank's first one
// costs a fixed time, its first loads, its last tiles, but for those that fill what others leave (FillingLaunch.h). On that of
// links a message begins when all ranks that meet in it have come, and lasts as long as its bytes of one direction, and a
// latency; both directions are waited for. It begins before the launches beside it, and holds processors that these share: they
// end later by as long as it runs beside them, at most by their longest tile. Launches aside last as others do, but take no more
// than their share of the processors from those behind them, and cost no fixed time. Where rows travel, parts of them leave behind
// a launch of many rows (PartsLaunch.h), and few rows are computed beside them. A quarter of the fixed time is what a launch of so
// few rows costs that their tiles all begin at once, as it has no last tiles, and what a queue waits for that follows another one.
#pragma once

#include "compiler/Group/GroupSpans.h"
#include "compiler/Group/HeadTimes.h"
#include "dialect/Geometry/GroupBounds.h"
#include "dialect/Geometry/PairCounter.h"
#include "runtime/Core/GroupPlan.h"

#include <optional>

namespace heddle {

struct GroupRankTime {
  double ms = 0;
  double computeMs = 0;   ///< of launches alone
  double memoryMs = 0;    ///< of carries, and copies in front of launches
  double launchMs = 0;    ///< of launches behind the first one
  double besideMs = 0;    ///< by which messages delay launches
  double firstWaitMs = 0; ///< until the first step on what travels may begin
  double waitMs = 0;      ///< the same of all steps, and of the end
  double receivedBytes = 0,
         fromBeyondBytes = 0; ///< what travels to it, and as much of it as comes from beyond its host
  int64_t launches = 0, messages = 0;
  int64_t waitingRows = 0; ///< of blocks that begin with what travels
  GroupSpans spans = {};   ///< none unless they were to be kept
};

struct GroupTime {
  std::optional<double> ms = {};         ///< of the slowest rank; none: see whyNot
  std::vector<GroupRankTime> ranks = {}; ///< none where the time is none
  std::string whyNot = {};
  size_t slowest() const; ///< of ranks
  double bytes() const;   ///< that travel in all
};

/// Times of forward calls, or of gradients whose bits depend on the layout. `sizes` are of the whole; their evaluations bound
/// those of all launches together.
GroupTime groupTime(const GroupPlan &plan, const RingCall &call, const attn::PatternAnalysis &analysis,
                    const attn::ProblemSizes &sizes, Spans spans = Spans::left);

/// No plan of such bounds, whose teams are of so many ranks, takes less; pairs that are unknown count as none.
double leastMs(const attn::GroupBounds &bounds, const RingCall &call, const attn::PatternAnalysis &analysis,
               const attn::ProblemSizes &sizes, int64_t headRanks);

} // namespace heddle
