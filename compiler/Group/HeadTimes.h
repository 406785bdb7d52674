// Owns what a call takes whose ranks compute all rows of some heads. Messages and copies come in the order of
// GroupShare::runHeads: change them together. Nothing is hidden: heads leave, arrive, are computed in one launch, and go
// home. Queries and what belongs to them are a message, keys and values another one.
#pragma once

#include "compiler/Group/GroupTimes.h"

namespace heddle {

/// Every rank computes as many pairs, as heads are alike.
GroupTime headsTime(const GroupPlan &plan, const RingCall &call, const attn::PatternAnalysis &analysis,
                    const attn::ProblemSizes &sizes);

} // namespace heddle
