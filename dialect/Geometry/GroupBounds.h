// Owns what is known of a plan over ranks before it is made, so that one which cannot be the best need not be: how much each
// team computes, launches and asks for at least. Work follows pairs of ranges, a few operations each.
#pragma once

#include "dialect/Geometry/GroupPlanner.h"

namespace heddle::attn {

struct TeamBounds {
  std::vector<IndexRange> rows = {}; ///< that meet their columns at home
  int64_t launches = 1;              ///< behind each other
  int64_t asked = 0;                 ///< columns of other teams, summed over heads of columns of a member
};

struct GroupBounds {
  std::vector<TeamBounds> teams = {};
  int64_t meetings = 0; ///< of a range of rows with a range of columns; about so many messages and launches are planned
};

/// Ranges of rows of teams, rows where lists are read, times heads that keep other columns each, times pieces: bounds and plans
/// are about so much work. Of a request that can be planned.
int64_t visitsOf(const GroupPlanRequest &request);

/// Of forward calls; invalidArgument, unsupported: as makeGroupPlan() of the request. Of a gather or a ring.
Result<GroupBounds> boundsOf(const GroupPlanRequest &request);

} // namespace heddle::attn
