// Owns when parts of rows that travelled go home: what a rank enqueues (runtime/Distributed), and what that is predicted to take.
#ifndef HEDDLE_RUNTIME_CORE_PARTSLAUNCH_H
#define HEDDLE_RUNTIME_CORE_PARTSLAUNCH_H

#include "runtime/Core/GroupPlan.h"

#include <algorithm>

namespace heddle {

// Some of the rows that travel meet columns of the rank.
inline bool meetsGuests(const GroupWalk &walk, size_t rank) {
  return std::any_of(walk.guests.begin(), walk.guests.end(), [&](const GuestRows &guests) {
    return std::any_of(guests.meetings.begin(), guests.meetings.end(),
                       [&](const GuestRows::Meeting &meeting) { return size_t(meeting.rank) == rank; });
  });
}

// The launch behind which the rank's parts leave, or those that it waits for are met: the last one of the block with most rows. A
// message that waits for another rank holds processors, so not before it; few rows that come behind are computed beside the
// message. Launches of guests come before it as well: in the last step but one. None: behind all launches.
inline const ShardLaunch *launchBeforeParts(const GroupWalk &walk, size_t rank) {
  if (walk.guests.empty())
    return nullptr;
  const size_t last = walk.steps.size() - 1;
  const ShardLaunch *found = nullptr;
  int64_t most = 0;
  for (size_t step = meetsGuests(walk, rank) ? last - 1 : 0; step < last; ++step)
    for (const ShardLaunch &launch : walk.steps[step].ranks[rank].launches)
      if (const int64_t rows = walk.blocks[rank][size_t(launch.rows)].size(); !launch.isAside && rows >= most)
        found = &launch, most = rows;
  return found;
}

} // namespace heddle

#endif
