// Owns what ranks take that exchange heads within teams, around the walk of these. Messages and copies come in the order of
// HeadExchange: change them together. Nothing is hidden: heads leave, arrive, are computed, and go home. Queries and what belongs
// to them are a message, keys and values another one.
#pragma once

#include "compiler/Group/GroupSpans.h"
#include "compiler/Group/RingCall.h"
#include "runtime/Core/GroupPlan.h"

namespace heddle {

struct HeadTime {
  double memoryMs = 0, waitMs = 0;
  double receivedBytes = 0, fromBeyondBytes = 0; ///< the host
  int64_t messages = 0;
  GroupSpans spans = {}; ///< from its own begin
  double ms() const { return memoryMs + waitMs; }
};

struct HeadTimes {
  HeadTime arrive, leave; ///< in front of the walk, and behind it
};

/// By rank; nothing where teams are of one.
std::vector<HeadTimes> headTimes(const GroupPlan &plan, const RingCall &call);

} // namespace heddle
