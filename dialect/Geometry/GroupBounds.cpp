#include "dialect/Geometry/GroupBounds.h"
#include "dialect/Geometry/GroupBlocks.h"

#include <algorithm>

namespace heddle::attn {
namespace {

/// So many consecutive columns of the range hold a kept one.
struct KeptColumns {
  IndexRange range;
  int64_t rate = 1;
};

std::vector<KeptColumns> keptColumns(const GroupBlock &block, const GroupBlocks &blocks) {
  std::vector<KeptColumns> kept;
  for (size_t head = 0; head < block.ofHeads.size(); ++head)
    for (const LatticeColumns &columns : block.ofHeads[head])
      if (blocks.firstAlike(int64_t(head)) == int64_t(head))
        for (const TileRun &run : columns.runs)
          kept.push_back(
              {{columns.residue + run.begin * columns.rate, columns.residue + (run.end - 1) * columns.rate + 1},
               columns.rate});
  return kept;
}

std::vector<KeptColumns> allOf(const std::vector<RowRange> &clusters) {
  std::vector<KeptColumns> all;
  for (const RowRange &cluster : clusters)
    all.push_back({{cluster.begin, cluster.end}});
  return all;
}

/// Ranges of the layout, ascending, so that those that meet columns are found without the others.
class Places {
public:
  explicit Places(const ShardLayout &layout) {
    for (const std::vector<IndexRange> &ranges : layout.ranks)
      places.insert(places.end(), ranges.begin(), ranges.end());
    std::sort(places.begin(), places.end(), [](const IndexRange &a, const IndexRange &b) { return a.begin < b.begin; });
  }

  /// At least so many of them have a kept column.
  int64_t met(std::vector<KeptColumns> columns) const {
    std::sort(columns.begin(), columns.end(),
              [](const KeptColumns &a, const KeptColumns &b) { return a.range.begin < b.range.begin; });
    int64_t count = 0;
    size_t next = 0;
    for (const KeptColumns &of : columns) {
      const size_t last = placeOf(of.range.end - 1) + 1;
      for (size_t place = std::max(next, placeOf(of.range.begin)); place < last; ++place)
        count += std::min(places[place].end, of.range.end) - std::max(places[place].begin, of.range.begin) >= of.rate;
      next = std::max(next, last);
    }
    return count;
  }

private:
  /// That has this row: they cover all rows, and none is in two.
  size_t placeOf(int64_t row) const {
    const auto after = std::upper_bound(places.begin(), places.end(), row,
                                        [](int64_t row, const IndexRange &place) { return row < place.begin; });
    return size_t(after - places.begin()) - 1;
  }

  std::vector<IndexRange> places;
};

} // namespace

int64_t visitsOf(const GroupPlanRequest &request) {
  const TeamRequest teams(request);
  int64_t ranges = 0, visits = 0;
  for (const std::vector<IndexRange> &own : teams.layout.ranks)
    ranges += int64_t(own.size());
  for (const HeadGroup &group : headGroups(request.analysis, teams.sizes))
    for (const PieceList &branch : request.analysis.variants[group.variant].branches)
      for (const Piece &piece : branch)
        visits += piece.list ? request.sizes.seqlenQ : ranges; // lists are read row by row
  return visits;
}

Result<GroupBounds> boundsOf(const GroupPlanRequest &request) {
  HEDDLE_TRY(checkPlanRequest(request));
  const TeamRequest teams(request);
  const GroupPlanRequest &ofTeams = teams.request;
  const bool isGather = ofTeams.form == GroupForm::Gather;
  WalkRules rules;
  rules.haveGuests = ofTeams.mayHaveGuests();
  GroupBlocks blocks(ofTeams, Direction::Forward, rules);
  if (isGather)
    blocks.cutThoseThatWait();
  const Places places(ofTeams.layout);
  GroupBounds bounds;
  for (size_t team = 0; team < ofTeams.layout.ranks.size(); ++team) {
    TeamBounds &of = bounds.teams.emplace_back();
    int64_t launches = 0;
    std::vector<const GroupBlock *> atHome;
    for (const GroupBlock &block : blocks.of(team)) {
      const int64_t met = places.met(keptColumns(block, blocks));
      bounds.meetings += places.met(allOf(block.clusters));
      if (!block.isGuest)
        of.rows.push_back(block.rows), atHome.push_back(&block);
      if (!block.isGuest && !block.isFew)
        launches += isGather ? 1 : std::max<int64_t>(1, met);
    }
    of.launches = std::max<int64_t>(1, isGather ? launches / 2 : launches); // others may run beside them
    of.asked = blocks.askedBy(team, atHome);
  }
  return bounds;
}

} // namespace heddle::attn
