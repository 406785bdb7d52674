// Owns how the shares of an attention call over ranks are made: which columns a rank's rows meet, in which windows they
// lie, and in which step they travel. What follows the plan is runtime/Distributed.
#pragma once

#include "dialect/Geometry/Shard.h"
#include "dialect/Geometry/ShardLayout.h"
#include "runtime/Core/GroupPlan.h"

namespace heddle::attn {

enum class GroupForm : uint8_t {
  Gather, ///< everything that a rank asks for travels at once; its rows meet it in few launches
  Ring,   ///< one peer a step, so that memory is that of two steps; launches continue each other
  Piece   ///< rank 0 alone computes, and what it asks for travels in windows of at most `mostColumns`
};

struct GroupPlanRequest {
  const PatternAnalysis &analysis; ///< of the whole call
  const ProblemSizes &sizes;       ///< of the whole call: seqlenQ = seqlenK, origins 0
  const ShardLayout &layout;
  int64_t kvHeads = 1;
  int64_t batches = 0;     ///< that the tensors of `sizes` are of; 0: what is kept does not depend on the batch
  std::string digest = {}; ///< of the pattern of parts
  std::vector<int64_t> wholes = {};   ///< its arguments that say where the whole ends
  GroupForm form = GroupForm::Gather; ///< of teams; one team has everything, whatever the form
  int64_t headRanks = 1;              ///< ranks of a team, which exchange heads: GroupPlan::headRanks
  /// Where a rank would only wait for what travels to it, rows of its ranges that need nothing of others begin; where
  /// fewer than one in so many do, the last rows, one in so many, meet the rank's own columns meanwhile and continue when
  /// the others are there. 0: all wait.
  int64_t earlyShare = 8;
  /// Columns further apart lie in windows, and are met in launches, of their own.
  int64_t farthestGap = 4096;
  /// Bits of results do not depend on the layout: every row meets its columns in one launch whose columns begin at a
  /// multiple of columnStep, on every lattice, and gradients of columns are computed where these lie.
  bool isPlacementFree = false;
  int64_t columnStep = 1;
  /// The pattern says gradient(detached): its gradients are a gather of their own, where every row meets its columns in
  /// one launch that begins with column 0; where the columns lie, launches have all columns that their rows keep.
  bool areGradientsDetached = false;
  bool hasSink = false;                   ///< that launches which continue nothing begin with: rows do not travel
  std::vector<RowTensor> rowTensors = {}; ///< whose rows do not travel either
  std::string differsByHead = {}; ///< what is not the same in every head: these are computed where their rows lie
  int64_t mostColumns = 0;        ///< of all windows of a step, where the form says so

  /// Few rows may travel to their columns.
  bool mayHaveGuests() const { return form == GroupForm::Gather && !hasSink && rowTensors.empty(); }
};

/// As makeGroupPlan() fails.
Status checkPlanRequest(const GroupPlanRequest &request);

/// invalidArgument: the layout is none of these rows, placement cannot be free in a ring, or teams do not divide the ranks or
/// heads that are to travel. unsupported: lengths of queries and keys differ, a tensor that a mask reads is not given, or heads that are
/// to travel are not alike.
Result<GroupPlan> makeGroupPlan(const GroupPlanRequest &request);

} // namespace heddle::attn
