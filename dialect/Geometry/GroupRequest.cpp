// What plans over ranks cannot be made for, and what teams ask for.
#include "dialect/Geometry/GroupBlocks.h"

#include <algorithm>
#include <string>

namespace heddle::attn {
namespace {

std::string num(int64_t value) { return std::to_string(value); }

/// Heads travel within teams.
Status checkTeams(const GroupPlanRequest &request) {
  const int64_t ranks = int64_t(request.layout.ranks.size()), team = request.headRanks, heads = request.sizes.heads;
  const std::string name = "ulysses" + (team == ranks ? "" : num(team)) + ": ";
  if (team < 1 || ranks % team != 0)
    return Status::invalidArgument(name + "teams of " + num(team) + " do not divide the " + num(ranks) +
                                   " ranks: take a divisor of them");
  if (request.isPlacementFree)
    return Status::invalidArgument(name + "gradients of k and v are added up in the order of ranks: expected a gather "
                                          "where bits depend on no placement");
  if (!request.rowTensors.empty())
    return Status::unsupported(name + "every rank computes the rows of others as well, and tensor '" +
                               request.rowTensors.front().name +
                               "' has an entry for each query, of which ranks have those of their own rows: take a "
                               "gather or a ring");
  if (!request.differsByHead.empty())
    return Status::unsupported(name + "every rank computes some heads as a call of its own, and " +
                               request.differsByHead + " is not the same for all heads: take a gather or a ring");
  if (canExchange(heads, request.kvHeads, team))
    return {};
  return Status::invalidArgument(name + num(team) + " ranks do not divide the " + num(heads) +
                                 " heads, or neither divide the " + num(request.kvHeads) +
                                 " of k and v nor are a multiple of them: take a gather or a ring");
}

ProblemSizes sizesOfMember(const GroupPlanRequest &whole) {
  ProblemSizes sizes = whole.sizes;
  sizes.heads /= whole.headRanks;
  return sizes;
}

} // namespace

TeamRequest::TeamRequest(const GroupPlanRequest &whole)
    : sizes(sizesOfMember(whole)), layout(teamLayout(whole.layout, whole.headRanks)),
      request{whole.analysis, sizes, layout} {
  request.kvHeads = std::max<int64_t>(1, whole.kvHeads / whole.headRanks);
  request.form = layout.ranks.size() == 1 ? GroupForm::Gather : whole.form;
  request.earlyShare = whole.earlyShare, request.farthestGap = whole.farthestGap;
  request.isPlacementFree = whole.isPlacementFree, request.columnStep = whole.columnStep;
  request.areGradientsDetached = whole.areGradientsDetached, request.hasSink = whole.hasSink;
  request.mostColumns = whole.mostColumns, request.rowTensors = whole.rowTensors;
}

Status checkPlanRequest(const GroupPlanRequest &request) {
  HEDDLE_TRY(checkShared(request.analysis, request.sizes, request.layout, request.kvHeads));
  if (request.form == GroupForm::Piece && request.mostColumns < 1)
    return Status::invalidArgument("windows of a piece: expected room for a column or more");
  if (request.headRanks != 1)
    return checkTeams(request);
  if (request.form != GroupForm::Gather && request.isPlacementFree)
    return Status::invalidArgument("a ring adds up what each rank computes of its own: expected a gather where every "
                                   "row meets its columns in one launch");
  return {};
}

} // namespace heddle::attn
