//===- GroupPlanner.cpp - from a pattern to a plan over ranks -------------===//
// A range of rows is visited once, against all columns; windows and messages are cut from what it keeps.
//===----------------------------------------------------------------------===//
#include "dialect/Geometry/GroupPlanner.h"
#include "dialect/Geometry/Counts.h"
#include "dialect/Geometry/TravelRuns.h"

#include <algorithm>
#include <optional>

namespace heddle::attn {
namespace {

constexpr int64_t kRowsOfTiles = 256; // that blocks are cut at, within their range

RowRange rowRange(const IndexRange &range) { return {range.begin, range.end}; }
bool isInside(const RowRange &range, const RowRange &of) { return of.begin <= range.begin && range.end <= of.end; }

/// What the rows of one block keep.
struct BlockNeeds {
  std::vector<std::vector<LatticeColumns>> ofHeads; ///< by head of columns
  std::vector<RowRange> clusters;                   ///< columns that lie near each other: hulls, ascending
};

struct WalkRules {
  bool hasEarlyLaunches =
      true; ///< rows may meet their own rank's columns before the others are there, in another launch
  bool fromFirstColumn = false; ///< every row meets its columns in one launch that begins with column 0
};

/// Makes the walk of one direction.
class WalkPlanner {
public:
  WalkPlanner(const GroupPlanRequest &request, Direction direction, WalkRules rules = {})
      : request(request), rules(rules), visitor(request.analysis, direction, request.sizes),
        columnHeads(direction == Direction::Forward ? request.kvHeads : request.sizes.heads),
        rows(request.sizes.seqlenQ) {
    for (const std::vector<IndexRange> &ranges : request.layout.ranks) {
      blocks.push_back(ranges);
      std::vector<BlockNeeds> &ofRank = needs.emplace_back();
      for (const IndexRange &range : ranges)
        if (request.form != GroupForm::Piece || needs.size() == 1)
          ofRank.push_back(needsOf(range));
    }
  }

  GroupWalk gather() {
    for (size_t rank = 0; rank < ranks(); ++rank)
      cutEarlyBlocks(rank);
    GroupWalk walk = emptyWalk(2);
    std::vector<std::vector<size_t>> waiting(ranks());
    for (size_t rank = 0; rank < ranks(); ++rank)
      for (size_t block = 0; block < needs[rank].size(); ++block)
        if (!meetOwn(rank, block, walk.steps[0].ranks[rank]))
          waiting[rank].push_back(block);
    for (size_t rank = 0; rank < ranks(); ++rank) {
      ShardStep &share = walk.steps[1].ranks[rank];
      std::vector<std::pair<size_t, RowRange>> met;
      for (size_t block : waiting[rank])
        for (const RowRange &cluster : leftFor(rank, block, walk.steps[0].ranks[rank]))
          met.push_back({block, cluster});
      for (const auto &[block, cluster] : met)
        addWindows(share.windows, {cluster});
      for (const auto &[block, cluster] : met)
        share.launches.push_back({int32_t(block), windowWith(share, cluster), 0, cluster});
      for (size_t peer = 0; peer < ranks(); ++peer)
        if (peer != rank)
          addHop(walk.steps[1], peer, rank, waiting[rank]);
    }
    if (std::all_of(waiting.begin(), waiting.end(), [](const auto &blocks) { return blocks.empty(); }))
      walk.steps.pop_back();
    return walk;
  }

  GroupWalk ring() {
    GroupWalk walk = emptyWalk(ranks());
    for (size_t step = 0; step < ranks(); ++step)
      for (size_t rank = 0; rank < ranks(); ++rank)
        meet(rank, (rank + ranks() - step) % ranks(), walk.steps[step]);
    for (size_t rank = 0; rank < ranks(); ++rank)
      for (size_t range = 0; range < needs[rank].size(); ++range)
        if (needs[rank][range].clusters.empty())
          meetOwn(rank, range, walk.steps[0].ranks[rank]);
    return walk;
  }

  bool hasEarlyLaunches() const {
    return std::any_of(isEarly.begin(), isEarly.end(), [](const std::vector<bool> &ofRank) {
      return std::find(ofRank.begin(), ofRank.end(), true) != ofRank.end();
    });
  }

  /// Rank 0 has one range.
  GroupWalk piece() {
    GroupWalk walk = emptyWalk(1);
    if (!meetOwn(0, 0, walk.steps[0].ranks[0]))
      for (const RowRange &cluster : needs[0][0].clusters)
        for (const RowRange &part : partsOfCluster(cluster, rowRange(rangesOf(0)[0])))
          meetPart(walk, part);
    for (GroupStep &step : walk.steps)
      if (!step.ranks[0].windows.empty())
        addHop(step, 1, 0, {0});
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
    for (const std::vector<IndexRange> &ofRank : blocks) {
      std::vector<RowRange> &own = walk.blocks.emplace_back();
      for (const IndexRange &block : ofRank)
        own.push_back(rowRange(block));
    }
    walk.steps.resize(steps);
    for (GroupStep &step : walk.steps)
      step.ranks.resize(ranks());
    return walk;
  }

  /// Of a rank that would only wait: its ranges are cut, so that rows which need no other rank's columns, or else the last
  /// rows, can begin.
  void cutEarlyBlocks(size_t rank) {
    if (request.earlyShare < 2 || isOneLaunch())
      return;
    for (size_t block = 0; block < blocks[rank].size(); ++block)
      if (ownRangeOf(rank, needs[rank][block].clusters))
        return;
    std::vector<IndexRange> cut;
    std::vector<bool> early;
    for (const IndexRange &range : blocks[rank])
      cutRange(rank, range, cut, early);
    isEarly.resize(ranks());
    isEarly[rank] = std::move(early);
    blocks[rank] = std::move(cut);
    needs[rank].clear();
    for (const IndexRange &block : blocks[rank])
      needs[rank].push_back(needsOf(block));
  }

  void cutRange(size_t rank, const IndexRange &range, std::vector<IndexRange> &cut, std::vector<bool> &early) const {
    const int64_t least = range.size() / request.earlyShare / kRowsOfTiles * kRowsOfTiles;
    IndexRange begins = freeRows(rank, range);
    const bool isFree = begins.size() >= std::max(least, kRowsOfTiles);
    if (!isFree)
      begins = {range.end - (rules.hasEarlyLaunches ? least : 0), range.end};
    for (const IndexRange &part : {IndexRange{range.begin, begins.begin}, begins, IndexRange{begins.end, range.end}})
      if (part.begin < part.end) {
        cut.push_back(part);
        early.push_back(!isFree && part.begin == begins.begin);
      }
  }

  /// Rows about the middle of a range that need columns of one range of their own rank only; empty where those of the
  /// middle need others.
  IndexRange freeRows(size_t rank, const IndexRange &range) const {
    const int64_t tiles = (range.size() + kRowsOfTiles - 1) / kRowsOfTiles, middle = tiles / 2;
    auto rowsOf = [&](int64_t first, int64_t last) {
      return IndexRange{range.begin + first * kRowsOfTiles, std::min(range.end, range.begin + last * kRowsOfTiles)};
    };
    auto isFree = [&](int64_t first, int64_t last) {
      return ownRangeOf(rank, needsOf(rowsOf(first, last)).clusters).has_value();
    };
    if (tiles == 0 || !isFree(middle, middle + 1))
      return {range.begin, range.begin};
    const int64_t first = firstThat(0, middle, [&](int64_t tile) { return isFree(tile, middle + 1); });
    const int64_t waits = firstThat(middle + 1, tiles, [&](int64_t tile) { return !isFree(first, tile + 1); });
    return rowsOf(first, waits);
  }

  /// The least number of a range that holds, as all above it do; its end if none does.
  template <class Holds> static int64_t firstThat(int64_t begin, int64_t end, const Holds &holds) {
    while (begin < end) {
      const int64_t middle = begin + (end - begin) / 2;
      if (holds(middle))
        end = middle;
      else
        begin = middle + 1;
    }
    return begin;
  }

  /// Columns that a block has not met in its own ranks' step. Those of an early block outside of the range that it lies in.
  std::vector<RowRange> leftFor(size_t rank, size_t block, ShardStep &before) const {
    const std::vector<RowRange> &clusters = needs[rank][block].clusters;
    if (isEarly.size() <= rank || isEarly[rank].size() <= block || !isEarly[rank][block])
      return clusters;
    size_t own = 0;
    while (rangesOf(rank)[own].end < blocks[rank][block].end)
      ++own;
    const RowRange range = rowRange(rangesOf(rank)[own]);
    std::vector<RowRange> left;
    for (const RowRange &cluster : clusters) {
      const RowRange met{std::max(cluster.begin, range.begin), std::min(cluster.end, range.end)};
      if (met.begin >= met.end) {
        left.push_back(cluster);
        continue;
      }
      before.launches.push_back({int32_t(block), -1, int32_t(own), met});
      for (const RowRange &rest : {RowRange{cluster.begin, met.begin}, RowRange{met.end, cluster.end}})
        if (rest.begin < rest.end)
          left.push_back(rest);
    }
    return left;
  }

  size_t ranks() const { return request.layout.ranks.size(); }
  const std::vector<IndexRange> &rangesOf(size_t rank) const { return request.layout.ranks[rank]; }

  BlockNeeds needsOf(IndexRange range) const {
    BlockNeeds found;
    const int64_t heads = request.sizes.heads, ofColumn = heads / columnHeads;
    RunsByClass all;
    std::map<std::vector<int64_t>, std::vector<LatticeColumns>> visited; // heads of equal values are alike
    for (int64_t column = 0; column < columnHeads; ++column) {
      RunsByClass classes;
      for (int64_t head = column * ofColumn; head < (column + 1) * ofColumn; ++head) {
        const auto [place, isNew] = visited.try_emplace(visitor.headValues(head));
        if (isNew)
          place->second = visitor.visit(head, range, {0, rows}).columns;
        addColumns(classes, place->second);
      }
      found.ofHeads.push_back(latticeColumns(std::move(classes)));
      addColumns(all, found.ofHeads.back());
    }
    found.clusters = clustersOf(hullsOf(latticeColumns(std::move(all))));
    return found;
  }

  bool isOneLaunch() const { return request.isPlacementFree || rules.fromFirstColumn; }

  std::vector<RowRange> clustersOf(const std::vector<IndexRange> &hulls) const {
    std::vector<RowRange> clusters;
    for (const IndexRange &hull : hulls)
      if (!clusters.empty() && (isOneLaunch() || hull.begin - clusters.back().end <= request.farthestGap))
        clusters.back().end = hull.end;
      else
        clusters.push_back(rowRange(hull));
    for (RowRange &cluster : clusters)
      if (isOneLaunch())
        cluster.begin = rules.fromFirstColumn ? 0 : cluster.begin / request.columnStep * request.columnStep;
    return clusters;
  }

  /// The range of the rank's own that has all of these columns.
  std::optional<size_t> ownRangeOf(size_t rank, const std::vector<RowRange> &clusters) const {
    for (size_t own = 0; own < rangesOf(rank).size(); ++own)
      if (std::all_of(clusters.begin(), clusters.end(),
                      [&](const RowRange &cluster) { return isInside(cluster, rowRange(rangesOf(rank)[own])); }))
        return own;
    return std::nullopt;
  }

  /// The block meets nothing but columns of one range of its own rank, if that is so.
  bool meetOwn(size_t rank, size_t block, ShardStep &share) const {
    const std::vector<RowRange> &clusters = needs[rank][block].clusters;
    const std::optional<size_t> own = ownRangeOf(rank, clusters);
    if (own && clusters.empty()) { // its rows are written all the same
      const int64_t begin = rangesOf(rank)[*own].begin;
      share.launches.push_back({int32_t(block), -1, int32_t(*own), {begin, begin}});
    }
    for (const RowRange &cluster : clusters)
      if (own)
        share.launches.push_back({int32_t(block), -1, int32_t(*own), cluster});
    return own.has_value();
  }

  static void addWindows(std::vector<RowRange> &windows, const std::vector<RowRange> &clusters) {
    windows.insert(windows.end(), clusters.begin(), clusters.end());
    std::sort(windows.begin(), windows.end(), [](const RowRange &a, const RowRange &b) { return a.begin < b.begin; });
    std::vector<RowRange> joined;
    for (const RowRange &window : windows)
      if (!joined.empty() && window.begin <= joined.back().end)
        joined.back().end = std::max(joined.back().end, window.end);
      else
        joined.push_back(window);
    windows = std::move(joined);
  }

  static int32_t windowWith(const ShardStep &share, const RowRange &cluster) {
    int32_t window = 0;
    while (!isInside(cluster, share.windows[size_t(window)]))
      ++window;
    return window;
  }

  /// What `from` has of what those blocks of `to` keep, as far as windows of the step hold it.
  void addHop(GroupStep &step, size_t from, size_t to, const std::vector<size_t> &ranges) const {
    std::vector<IndexRange> places;
    for (const IndexRange &own : rangesOf(from))
      for (const RowRange &window : step.ranks[to].windows)
        if (const IndexRange common{std::max(own.begin, window.begin), std::min(own.end, window.end)};
            common.begin < common.end)
          places.push_back(common);
    Hop hop{int32_t(from), int32_t(to), {}};
    for (int64_t head = 0; head < columnHeads; ++head) {
      HeadRows part{head, 1, {}};
      RunsByClass classes;
      for (size_t range : ranges)
        addColumns(classes, needs[to][range].ofHeads[size_t(head)]);
      const std::vector<LatticeColumns> asked = latticeColumns(std::move(classes));
      for (const IndexRange &place : places)
        for (const RowRun &run : travelRuns(within(asked, {place})))
          part.rows.push_back(run);
      addPart(hop, std::move(part));
    }
    if (!hop.parts.empty())
      step.hops.push_back(std::move(hop));
  }

  static bool areEqual(const std::vector<RowRun> &a, const std::vector<RowRun> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const RowRun &x, const RowRun &y) {
      return x.first == y.first && x.rate == y.rate && x.count == y.count;
    });
  }

  static void addPart(Hop &hop, HeadRows part) {
    if (part.rows.empty())
      return;
    HeadRows *last = hop.parts.empty() ? nullptr : &hop.parts.back();
    if (last && last->firstHead + last->heads == part.firstHead && areEqual(last->rows, part.rows))
      ++last->heads;
    else
      hop.parts.push_back(std::move(part));
  }

  /// Clusters of what a range keeps of one range of a peer.
  std::vector<RowRange> clustersIn(const BlockNeeds &of, const IndexRange &place) const {
    RunsByClass all;
    for (const std::vector<LatticeColumns> &columns : of.ofHeads)
      addColumns(all, within(columns, {place}));
    return clustersOf(hullsOf(latticeColumns(std::move(all))));
  }

  /// The rows of a rank meet what a peer has.
  void meet(size_t rank, size_t peer, GroupStep &step) const {
    ShardStep &share = step.ranks[rank];
    std::vector<size_t> ranges;
    for (size_t range = 0; range < needs[rank].size(); ++range)
      for (size_t place = 0; place < rangesOf(peer).size(); ++place)
        for (const RowRange &cluster : clustersIn(needs[rank][range], rangesOf(peer)[place])) {
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
    addHop(step, peer, rank, ranges);
  }

  const GroupPlanRequest &request;
  const WalkRules rules;
  ShardVisitor visitor;
  int64_t columnHeads, rows;
  std::vector<std::vector<IndexRange>> blocks; ///< of rows, by rank
  std::vector<std::vector<BlockNeeds>> needs;  ///< by rank, then by its block
  std::vector<std::vector<bool>> isEarly;      ///< the same, of ranks whose ranges were cut
};

Status checkRequest(const GroupPlanRequest &request) {
  const ProblemSizes &sizes = request.sizes;
  if (sizes.seqlenQ != sizes.seqlenK)
    return Status::unsupported("queries and keys are laid out alike: expected as many, got " +
                               std::to_string(sizes.seqlenQ) + " and " + std::to_string(sizes.seqlenK));
  if (request.kvHeads < 1 || sizes.heads % request.kvHeads)
    return Status::invalidArgument("expected query heads that are a multiple of the " +
                                   std::to_string(request.kvHeads) + " kv heads, got " + std::to_string(sizes.heads));
  if (lacksTensors(request.analysis, sizes))
    return Status::unsupported("a mask reads a tensor that is not given: what ranks ask for depends on it");
  if (request.form == GroupForm::Piece && request.mostColumns < 1)
    return Status::invalidArgument("windows of a piece: expected room for a column or more");
  if (request.form != GroupForm::Gather && request.isPlacementFree)
    return Status::invalidArgument("a ring adds up what each rank computes of its own: expected a gather where every "
                                   "row meets its columns in one launch");
  if (request.isPlacementFree && request.areGradientsDetached)
    return Status::unsupported(
        "the pattern says gradient(detached): gradients of keys need all keys of their queries, so "
        "that they depend on where these lie; gradient(full) does not");
  return checkLayout(request.layout, sizes.seqlenQ);
}

} // namespace

Result<GroupPlan> makeGroupPlan(const GroupPlanRequest &request) {
  HEDDLE_TRY(checkRequest(request));
  GroupPlan plan;
  plan.digest = request.digest;
  plan.wholes = request.wholes;
  plan.rows = request.sizes.seqlenQ;
  plan.heads = request.sizes.heads;
  plan.kvHeads = request.kvHeads;
  plan.batches = request.batches;
  for (const std::vector<IndexRange> &ranges : request.layout.ranks) {
    std::vector<RowRange> &own = plan.layout.emplace_back();
    for (const IndexRange &range : ranges)
      own.push_back(rowRange(range));
  }
  WalkPlanner forward(request, Direction::Forward);
  plan.forward = request.form == GroupForm::Ring    ? forward.ring()
                 : request.form == GroupForm::Piece ? forward.piece()
                                                    : forward.gather();
  const bool hasOwnGradients = request.form == GroupForm::Gather && forward.hasEarlyLaunches();
  if (request.form != GroupForm::Piece && (request.areGradientsDetached || hasOwnGradients))
    plan.gradients = WalkPlanner(request, Direction::Forward,
                                 {/*hasEarlyLaunches=*/false, /*fromFirstColumn=*/request.areGradientsDetached})
                         .gather();
  if (request.isPlacementFree)
    plan.transposed = WalkPlanner(request, Direction::Transposed).gather();
  HEDDLE_TRY(plan.check());
  return plan;
}

} // namespace heddle::attn
