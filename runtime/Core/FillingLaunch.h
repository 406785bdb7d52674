// Owns which launches of a plan run beside others, filling processors that these leave at their ends: what a rank enqueues
// (runtime/Distributed), and what that is predicted to take.
#ifndef HEDDLE_RUNTIME_CORE_FILLINGLAUNCH_H
#define HEDDLE_RUNTIME_CORE_FILLINGLAUNCH_H

#include "runtime/Core/GroupPlan.h"

#include <algorithm>

namespace heddle {

// Rows that begin in the last step of two, that no other launch computes, and that are not the first ones of the rank. Where rows
// travel to keys, launches aside are theirs.
inline bool mayFill(const GroupWalk &walk, size_t rank, size_t step, const ShardLaunch &launch) {
  if (walk.steps.size() != 2 || step != 1 || !walk.guests.empty())
    return false;
  auto ofSameRows = [&](size_t of) {
    const std::vector<ShardLaunch> &launches = walk.steps[of].ranks[rank].launches;
    return std::count_if(launches.begin(), launches.end(),
                         [&](const ShardLaunch &other) { return other.rows == launch.rows; });
  };
  const bool isFirst =
      walk.steps[0].ranks[rank].launches.empty() && walk.steps[1].ranks[rank].launches.front().rows == launch.rows;
  return !isFirst && ofSameRows(0) == 0 && ofSameRows(1) == 1;
}

// Of several of a rank every other one, so that both queues have launches that the other's fill. Forward only.
inline bool fillsOthers(const GroupWalk &walk, size_t rank, size_t step, const ShardLaunch &launch) {
  if (!mayFill(walk, rank, step, launch))
    return false;
  size_t before = 0;
  for (const ShardLaunch &other : walk.steps[step].ranks[rank].launches) {
    if (other.rows == launch.rows)
      break;
    before += mayFill(walk, rank, step, other);
  }
  return before % 2 == 0;
}

} // namespace heddle

#endif
