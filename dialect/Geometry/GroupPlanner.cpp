// A range of rows is visited once, against all columns; windows and messages are cut from what it keeps.
#include "dialect/Geometry/GroupPlanner.h"
#include "dialect/Geometry/Counts.h"
#include "dialect/Geometry/GroupBlanks.h"
#include "dialect/Geometry/GroupBlocks.h"
#include "dialect/Geometry/GroupKeys.h"

#include <algorithm>
#include <map>
#include <optional>

namespace heddle::attn {
namespace {

constexpr int64_t kLastColumns = 256; ///< that guests meet at home behind all others

RowRange hullOf(const std::vector<RowRange> &clusters) { return {clusters.front().begin, clusters.back().end}; }

/// Makes the walk of one direction.
class WalkPlanner {
public:
  WalkPlanner(const GroupPlanRequest &request, Direction direction, WalkRules rules = {})
      : request(request), rules(rules), blocks(request, direction, rules), rows(request.sizes.seqlenQ) {}

  GroupWalk gather() {
    blocks.cutThoseThatWait();
    GroupWalk walk = emptyWalk(blocks.hasGuests() ? 3 : 2);
    std::vector<std::vector<size_t>> waiting(ranks());
    for (size_t rank = 0; rank < ranks(); ++rank)
      for (size_t block = 0; block < blocks.of(rank).size(); ++block)
        if (blocks.of(rank)[block].isGuest)
          addGuests(rank, block, walk);
        else if (!meetOwn(rank, block, walk.steps[0].ranks[rank]))
          waiting[rank].push_back(block);
    for (size_t rank = 0; rank < ranks(); ++rank) {
      ShardStep &share = walk.steps[1].ranks[rank];
      std::vector<std::pair<size_t, RowRange>> met;
      for (size_t block : waiting[rank])
        for (const RowRange &cluster : joined(leftFor(rank, block, walk.steps[0].ranks[rank]), rank, block))
          met.push_back({block, cluster});
      for (const auto &[block, cluster] : met)
        addWindows(share.windows, {cluster});
      for (const auto &[block, cluster] : met)
        share.launches.push_back({int32_t(block), windowWith(share, cluster), 0, cluster});
      for (size_t peer = 0; peer < ranks(); ++peer)
        if (peer != rank)
          blocks.addHop(walk.steps[1], peer, rank, waiting[rank]);
    }
    if (walk.guests.empty() &&
        std::all_of(waiting.begin(), waiting.end(), [](const auto &blocks) { return blocks.empty(); }))
      walk.steps.pop_back();
    for (size_t rank = 0; rank < ranks(); ++rank)
      sortOwn(rank, walk.steps[0].ranks[rank].launches);
    setBlanks(walk);
    return walk;
  }

  GroupWalk ring() {
    GroupWalk walk = emptyWalk(ranks());
    for (size_t step = 0; step < ranks(); ++step)
      for (size_t rank = 0; rank < ranks(); ++rank)
        meet(rank, (rank + ranks() - step) % ranks(), walk.steps[step]);
    for (size_t rank = 0; rank < ranks(); ++rank)
      for (size_t range = 0; range < blocks.of(rank).size(); ++range)
        if (blocks.of(rank)[range].clusters.empty())
          meetOwn(rank, range, walk.steps[0].ranks[rank]);
    setBlanks(walk);
    return walk;
  }

  GroupWalk keys() const { return keysOf(request, blocks); }

  bool hasOwnWay() const { return blocks.hasEarly() || blocks.hasGuests(); }

  /// Rank 0 has one range.
  GroupWalk piece() {
    GroupWalk walk = emptyWalk(1);
    if (!meetOwn(0, 0, walk.steps[0].ranks[0]))
      for (const RowRange &cluster : blocks.of(0)[0].clusters)
        for (const RowRange &part : partsOfCluster(cluster, rowRange(rangesOf(0)[0])))
          meetPart(walk, part);
    for (GroupStep &step : walk.steps)
      if (!step.ranks[0].windows.empty())
        blocks.addHop(step, 1, 0, {0});
    setBlanks(walk);
    return walk;
  }

private:
  /// Columns of a range of the rank's own need no window, and windows have an end.
  std::vector<RowRange> partsOfCluster(const RowRange &cluster, const RowRange &own) const {
    if (isInside(cluster, own) || cluster.size() <= request.mostColumns)
      return {cluster};
    const int64_t begin = std::clamp(own.begin, cluster.begin, cluster.end),
                  end = std::clamp(own.end, cluster.begin, cluster.end);
    std::vector<RowRange> parts;
    auto cut = [&](int64_t first, int64_t last, int64_t most) {
      for (; first < last; first += most)
        parts.push_back({first, std::min(first + most, last)});
    };
    cut(cluster.begin, begin, request.mostColumns);
    cut(begin, end, rows);
    cut(end, cluster.end, request.mostColumns);
    return parts;
  }

  /// In the last step, or in one more where its windows are full.
  void meetPart(GroupWalk &walk, const RowRange &part) const {
    if (isInside(part, rowRange(rangesOf(0)[0]))) {
      walk.steps.back().ranks[0].launches.push_back({0, -1, 0, part});
      return;
    }
    int64_t columns = part.size();
    for (const RowRange &window : walk.steps.back().ranks[0].windows)
      columns += window.size();
    if (columns > request.mostColumns && columns > part.size()) {
      walk.steps.emplace_back();
      walk.steps.back().ranks.resize(ranks());
    }
    ShardStep &share = walk.steps.back().ranks[0];
    share.launches.push_back({0, int32_t(share.windows.size()), 0, part});
    share.windows.push_back(part);
  }

  GroupWalk emptyWalk(size_t steps) const {
    GroupWalk walk;
    for (size_t rank = 0; rank < ranks(); ++rank) {
      std::vector<RowRange> &own = walk.blocks.emplace_back();
      for (const GroupBlock &block : blocks.of(rank))
        own.push_back(rowRange(block.rows));
    }
    walk.steps.resize(steps);
    for (GroupStep &step : walk.steps)
      step.ranks.resize(ranks());
    return walk;
  }

  /// Columns that a block has not met in its own ranks' step. Those of an early block outside of the range that it lies in.
  std::vector<RowRange> leftFor(size_t rank, size_t block, ShardStep &before) const {
    const std::vector<RowRange> &clusters = blocks.of(rank)[block].clusters;
    if (!blocks.of(rank)[block].isEarly)
      return clusters;
    size_t own = 0;
    while (rangesOf(rank)[own].end < blocks.of(rank)[block].rows.end)
      ++own;
    const RowRange range = rowRange(rangesOf(rank)[own]);
    std::vector<RowRange> left, early;
    for (const RowRange &cluster : clusters) {
      const RowRange met{std::max(cluster.begin, range.begin), std::min(cluster.end, range.end)};
      if (met.begin >= met.end) {
        left.push_back(cluster);
        continue;
      }
      early.push_back(met);
      for (const RowRange &rest : {RowRange{cluster.begin, met.begin}, RowRange{met.end, cluster.end}})
        if (rest.begin < rest.end)
          left.push_back(rest);
    }
    if (!early.empty())
      before.launches.push_back({int32_t(block), -1, int32_t(own), hullOf(early)});
    return left;
  }

  /// Windows whose gap takes less memory than the results that the block's rows would leave in fp32 between two launches.
  std::vector<RowRange> joined(std::vector<RowRange> clusters, size_t rank, size_t block) const {
    std::vector<RowRange> result;
    const int64_t saved = blocks.of(rank)[block].rows.size() * request.sizes.heads;
    for (const RowRange &cluster : clusters)
      if (!result.empty() && rules.hasEarlyLaunches && (cluster.begin - result.back().end) * request.kvHeads < saved)
        result.back().end = cluster.end;
      else
        result.push_back(cluster);
    return result;
  }

  /// Columns that the rows keep of each range of a rank.
  std::vector<std::pair<int32_t, RowRange>> keptOf(size_t rank, const GroupBlock &block) const {
    std::vector<std::pair<int32_t, RowRange>> kept;
    for (size_t place = 0; place < rangesOf(rank).size(); ++place)
      if (const std::vector<RowRange> clusters = clustersIn(block, rangesOf(rank)[place]); !clusters.empty())
        kept.push_back({int32_t(place), hullOf(clusters)});
    return kept;
  }

  /// Other ranks and home compute at the same time; a launch on home's last columns continues what all of them found.
  void addGuests(size_t rank, size_t block, GroupWalk &walk) const {
    const GroupBlock &rows = blocks.of(rank)[block];
    GuestRows guests{int32_t(rank), int32_t(block), {}};
    for (size_t peer = 0; peer < ranks(); ++peer)
      for (const auto &[own, columns] : peer == rank ? std::vector<std::pair<int32_t, RowRange>>() : keptOf(peer, rows))
        guests.meetings.push_back({int32_t(peer), own, columns});
    walk.guests.push_back(std::move(guests));
    std::vector<std::pair<int32_t, RowRange>> kept = keptOf(rank, rows);
    if (kept.empty()) // a column that no row keeps
      kept.push_back({0, {rangesOf(rank)[0].begin, rangesOf(rank)[0].begin + 1}});
    auto &[own, columns] = kept.back();
    const RowRange last{std::max(columns.begin, columns.end - kLastColumns), columns.end};
    walk.steps.back().ranks[rank].launches.push_back({int32_t(block), -1, own, last});
    columns.end = last.begin;
    for (const auto &[range, met] : kept)
      if (met.size() > 0)
        walk.steps[0].ranks[rank].launches.push_back({int32_t(block), -1, range, met, /*isAside=*/true});
  }

  /// Launches aside begin with processors of their own. Few rows come in front of many: behind these they would be waited for.
  void sortOwn(size_t rank, std::vector<ShardLaunch> &launches) const {
    std::multimap<int, ShardLaunch> placed; // those of one place stay in their order
    for (ShardLaunch &launch : launches) {
      const int place = launch.isAside ? 0 : blocks.of(rank)[size_t(launch.rows)].isFew ? 1 : 2;
      placed.emplace(place, std::move(launch));
    }
    launches.clear();
    for (auto &[place, launch] : placed)
      launches.push_back(std::move(launch));
  }

  void setBlanks(GroupWalk &walk) const {
    for (size_t rank = 0; rank < ranks(); ++rank) {
      // Where they meet keys of others, too, kernels look at all queries.
      const bool areDense =
          !rules.haveKeys && std::all_of(blocks.of(rank).begin(), blocks.of(rank).end(), GroupBlocks::areDense);
      for (GroupStep &step : walk.steps)
        addBlanks(step, rank, rangesOf(rank), {blocks.columnHeads(), areDense});
    }
  }

  size_t ranks() const { return request.layout.ranks.size(); }
  const std::vector<IndexRange> &rangesOf(size_t rank) const { return request.layout.ranks[rank]; }

  /// The block meets nothing but columns of one range of its own rank, if that is so.
  bool meetOwn(size_t rank, size_t block, ShardStep &share) const {
    const std::vector<RowRange> &clusters = blocks.of(rank)[block].clusters;
    const std::optional<size_t> own = blocks.ownRangeOf(rank, clusters);
    if (own && clusters.empty()) { // its rows are written all the same
      const int64_t begin = rangesOf(rank)[*own].begin;
      share.launches.push_back({int32_t(block), -1, int32_t(*own), {begin, begin}});
    }
    if (own && !clusters.empty())
      share.launches.push_back({int32_t(block), -1, int32_t(*own), hullOf(clusters)});
    return own.has_value();
  }

  static int32_t windowWith(const ShardStep &share, const RowRange &cluster) {
    int32_t window = 0;
    while (!isInside(cluster, share.windows[size_t(window)]))
      ++window;
    return window;
  }

  /// Clusters of what a range keeps of one range of a peer.
  std::vector<RowRange> clustersIn(const GroupBlock &of, const IndexRange &place) const {
    if (std::none_of(of.clusters.begin(), of.clusters.end(),
                     [&](const RowRange &cluster) { return cluster.begin < place.end && place.begin < cluster.end; }))
      return {};
    RunsByClass all;
    for (size_t head = 0; head < of.ofHeads.size(); ++head)
      if (blocks.firstAlike(int64_t(head)) == int64_t(head))
        addColumns(all, within(of.ofHeads[head], {place}));
    return blocks.clustersOf(hullsOf(latticeColumns(std::move(all))));
  }

  /// The rows of a rank meet what a peer has.
  void meet(size_t rank, size_t peer, GroupStep &step) const {
    ShardStep &share = step.ranks[rank];
    std::vector<size_t> ranges;
    for (size_t range = 0; range < blocks.of(rank).size(); ++range)
      for (size_t place = 0; place < rangesOf(peer).size(); ++place)
        for (const RowRange &cluster : clustersIn(blocks.of(rank)[range], rangesOf(peer)[place])) {
          share.launches.push_back({int32_t(range), -1, int32_t(place), cluster});
          if (ranges.empty() || ranges.back() != range)
            ranges.push_back(range);
        }
    if (rank == peer)
      return;
    for (const ShardLaunch &launch : share.launches)
      addWindows(share.windows, {launch.columns});
    for (ShardLaunch &launch : share.launches)
      launch.window = windowWith(share, launch.columns), launch.own = 0;
    blocks.addHop(step, peer, rank, ranges);
  }

  const GroupPlanRequest &request;
  const WalkRules rules;
  GroupBlocks blocks;
  int64_t rows;
};

void addWalks(const GroupPlanRequest &request, GroupPlan &plan) {
  WalkRules rules;
  rules.haveGuests = request.mayHaveGuests();
  WalkPlanner forward(request, Direction::Forward, rules);
  plan.forward = request.form == GroupForm::Ring    ? forward.ring()
                 : request.form == GroupForm::Piece ? forward.piece()
                                                    : forward.gather();
  const bool hasOwnGradients = request.form == GroupForm::Gather && forward.hasOwnWay();
  if (request.form != GroupForm::Piece && (request.areGradientsDetached || hasOwnGradients))
    plan.gradients = WalkPlanner(request, Direction::Forward,
                                 {/*hasEarlyLaunches=*/false, /*fromFirstColumn=*/request.areGradientsDetached})
                         .gather();
  if (!request.isPlacementFree)
    return;
  rules = {};
  rules.haveKeys = request.areGradientsDetached;
  WalkPlanner transposed(request, Direction::Transposed, rules);
  plan.transposed = transposed.gather();
  if (rules.haveKeys)
    plan.keys = transposed.keys();
}

} // namespace

Result<GroupPlan> makeGroupPlan(const GroupPlanRequest &request) {
  HEDDLE_TRY(checkPlanRequest(request));
  GroupPlan plan;
  plan.digest = request.digest;
  plan.wholes = request.wholes;
  plan.rowTensors = request.rowTensors;
  plan.rows = request.sizes.seqlenQ;
  plan.heads = request.sizes.heads;
  plan.kvHeads = request.kvHeads;
  plan.batches = request.batches;
  plan.headRanks = int32_t(request.headRanks);
  for (const std::vector<IndexRange> &ranges : request.layout.ranks) {
    std::vector<RowRange> &own = plan.layout.emplace_back();
    for (const IndexRange &range : ranges)
      own.push_back(rowRange(range));
  }
  addWalks(TeamRequest(request).request, plan);
  HEDDLE_TRY(plan.check());
  return plan;
}

} // namespace heddle::attn
