#include "dialect/Geometry/GroupBlocks.h"
#include "dialect/Geometry/Counts.h"
#include "dialect/Geometry/TravelRuns.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace heddle::attn {
namespace {

constexpr int64_t kRowsOfTiles = 192; ///< that blocks are cut at, within their range: what most kernels take at a time

/// The least number of a range that holds, as all above it do; its end if none does.
template <class Holds> int64_t firstThat(int64_t begin, int64_t end, const Holds &holds) {
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    if (holds(middle))
      end = middle;
    else
      begin = middle + 1;
  }
  return begin;
}

} // namespace

GroupBlocks::GroupBlocks(const GroupPlanRequest &request, Direction direction, WalkRules rules,
                         const std::vector<std::vector<IndexRange>> &rowsOfRanks)
    : request(request), rules(rules), visitor(request.analysis, direction, request.sizes),
      heads(direction == Direction::Forward ? request.kvHeads : request.sizes.heads),
      step(request.columnStep * visitor.commonRate(request.sizes.seqlenQ)) {
  findAlike();
  for (const std::vector<IndexRange> &ranges : rowsOfRanks) {
    std::vector<GroupBlock> &ofRank = blocks.emplace_back();
    for (const IndexRange &range : ranges)
      visit(ofRank.emplace_back(GroupBlock{range, /*isEarly=*/false}));
  }
}

void GroupBlocks::findAlike() {
  std::map<std::vector<int64_t>, int64_t> firstRows, firstColumns;
  for (int64_t head = 0; head < request.sizes.heads; ++head)
    rowsAlike.push_back(firstRows.try_emplace(visitor.headValues(head), head).first->second);
  const int64_t ofColumn = request.sizes.heads / heads;
  for (int64_t column = 0; column < heads; ++column) {
    const auto begin = rowsAlike.begin() + column * ofColumn;
    columnsAlike.push_back(firstColumns.try_emplace({begin, begin + ofColumn}, column).first->second);
  }
}

void GroupBlocks::visit(GroupBlock &block) const {
  if (block.rows.size() < 1)
    return block.ofHeads.resize(size_t(heads));
  const int64_t ofColumn = request.sizes.heads / heads;
  RunsByClass all;
  std::map<int64_t, std::vector<LatticeColumns>> visited;
  for (int64_t column = 0; column < heads; ++column) {
    if (const int64_t first = firstAlike(column); first < column) {
      block.ofHeads.push_back(std::vector<LatticeColumns>(block.ofHeads[size_t(first)]));
      continue;
    }
    RunsByClass classes;
    for (int64_t head = column * ofColumn; head < (column + 1) * ofColumn; ++head) {
      const auto [place, isNew] = visited.try_emplace(rowsAlike[size_t(head)]);
      if (isNew)
        place->second = visitor.visit(head, block.rows, {0, request.sizes.seqlenQ}).columns;
      addColumns(classes, place->second);
    }
    block.ofHeads.push_back(latticeColumns(std::move(classes)));
    addColumns(all, block.ofHeads.back());
  }
  const std::vector<IndexRange> hulls = hullsOf(latticeColumns(std::move(all)));
  block.clusters = clustersOf(hulls);
  if (!hulls.empty())
    block.hull = {hulls.front().begin, hulls.back().end};
}

std::vector<RowRange> GroupBlocks::clustersOf(const std::vector<IndexRange> &hulls) const {
  std::vector<RowRange> clusters;
  for (const IndexRange &hull : hulls)
    if (!clusters.empty() && (isOneLaunch() || hull.begin - clusters.back().end <= request.farthestGap))
      clusters.back().end = hull.end;
    else
      clusters.push_back(rowRange(hull));
  for (RowRange &cluster : clusters)
    if (isOneLaunch())
      cluster.begin = rules.fromFirstColumn ? 0 : cluster.begin / step * step;
  return clusters;
}

std::optional<size_t> GroupBlocks::ownRangeOf(size_t rank, const std::vector<RowRange> &clusters) const {
  for (size_t own = 0; own < rangesOf(rank).size(); ++own)
    if (std::all_of(clusters.begin(), clusters.end(),
                    [&](const RowRange &cluster) { return isInside(cluster, rowRange(rangesOf(rank)[own])); }))
      return own;
  return std::nullopt;
}

static bool hasBlock(const std::vector<std::vector<GroupBlock>> &blocks, bool GroupBlock::*is) {
  return std::any_of(blocks.begin(), blocks.end(), [&](const std::vector<GroupBlock> &ofRank) {
    return std::any_of(ofRank.begin(), ofRank.end(), [&](const GroupBlock &block) { return block.*is; });
  });
}

bool GroupBlocks::hasEarly() const { return hasBlock(blocks, &GroupBlock::isEarly); }
bool GroupBlocks::hasGuests() const { return hasBlock(blocks, &GroupBlock::isGuest); }

//===-- cuts ------------------------------------------------------------------===//

void GroupBlocks::cutThoseThatWait() {
  for (size_t rank = 0; rank < blocks.size() && request.earlyShare > 1 && !isOneLaunch(); ++rank)
    if (std::none_of(blocks[rank].begin(), blocks[rank].end(),
                     [&](const GroupBlock &block) { return ownRangeOf(rank, block.clusters).has_value(); }))
      cut(rank);
}

void GroupBlocks::cut(size_t rank) {
  std::vector<GroupBlock> cut;
  for (const GroupBlock &block : blocks[rank]) {
    const IndexRange guests = guestRows(rank, block);
    for (const IndexRange &part :
         {IndexRange{block.rows.begin, guests.begin}, guests, IndexRange{guests.end, block.rows.end}})
      if (part.begin < part.end && part.begin == guests.begin)
        cut.push_back({part, /*isEarly=*/false, /*isGuest=*/true});
      else if (part.begin < part.end)
        cutRange(rank, part, guests.begin < guests.end, cut);
  }
  blocks[rank] = std::move(cut);
  for (GroupBlock &block : blocks[rank])
    visit(block);
}

void GroupBlocks::cutRange(size_t rank, const IndexRange &range, bool hasGuests, std::vector<GroupBlock> &into) const {
  const int64_t least = (range.size() / request.earlyShare + kRowsOfTiles / 2) / kRowsOfTiles * kRowsOfTiles;
  IndexRange begins = freeRows(rank, range);
  const bool isFree = begins.size() >= std::max(least, kRowsOfTiles);
  // What a launch more costs is worth it where the columns that come are as many as the rows that begin before.
  const bool isEarly = !isFree && rules.hasEarlyLaunches && askedBy(rank, range) >= least * heads;
  if (!isFree)
    begins = {range.end - (isEarly ? least : 0), range.end};
  for (const IndexRange &part : {IndexRange{range.begin, begins.begin}, begins, IndexRange{begins.end, range.end}}) {
    const bool begin = part.begin == begins.begin, isFew = hasGuests && isFree && !begin && part.size() <= least;
    if (part.begin < part.end)
      into.push_back({part, (isEarly && begin) || isFew, /*isGuest=*/false, isFew});
  }
}

int64_t GroupBlocks::askedBy(size_t rank, const std::vector<const GroupBlock *> &visited) const {
  std::vector<int64_t> ofHeads;
  for (int64_t head = 0; head < heads; ++head) {
    if (const int64_t first = firstAlike(head); first < head) {
      ofHeads.push_back(ofHeads[size_t(first)]);
      continue;
    }
    RunsByClass classes;
    for (const GroupBlock *block : visited)
      addColumns(classes, block->ofHeads[size_t(head)]);
    const ColumnCounts counts(latticeColumns(std::move(classes)));
    ofHeads.push_back(counts.in({0, request.sizes.seqlenQ}));
    for (const IndexRange &own : rangesOf(rank))
      ofHeads.back() -= counts.in(own);
  }
  return std::accumulate(ofHeads.begin(), ofHeads.end(), int64_t(0));
}

int64_t GroupBlocks::askedBy(size_t rank, const IndexRange &rows) const {
  GroupBlock block{rows, /*isEarly=*/false};
  visit(block);
  return askedBy(rank, {&block});
}

/// Rows at an end of the block without which the rank asks for less than half, if what travels of these rows is less than
/// what it saves: q there, and results in fp32 back, against k and v. None: an empty range at its end.
IndexRange GroupBlocks::guestRows(size_t rank, const GroupBlock &block) const {
  constexpr int64_t kElementsOfQuery = 3, kElementsOfColumn = 2; // fp32 counts as two; heads are as wide as values
  const IndexRange &range = block.rows, none{range.end, range.end};
  const int64_t most = range.size() / std::max<int64_t>(1, request.earlyShare);
  if (!rules.haveGuests || most < 1)
    return none;
  std::vector<const GroupBlock *> all, others;
  for (const GroupBlock &each : blocks[rank]) {
    all.push_back(&each);
    if (&each != &block)
      others.push_back(&each);
  }
  auto askedWithout = [&](const IndexRange &rest) {
    GroupBlock left{rest, /*isEarly=*/false};
    visit(left);
    std::vector<const GroupBlock *> rows = others;
    rows.push_back(&left);
    return askedBy(rank, rows);
  };
  const int64_t ofRow = kElementsOfQuery * request.sizes.heads * int64_t(blocks.size() - 1);
  const int64_t asked = askedBy(rank, all);
  // Without some of its rows the rank asks for no less than without the block.
  if (asked * kElementsOfColumn <= ofRow || askedBy(rank, {&block}) * 2 < asked)
    return none;
  for (const bool isFront : {true, false}) {
    auto restOf = [&](int64_t rows) {
      return isFront ? IndexRange{range.begin + rows, range.end} : IndexRange{range.begin, range.end - rows};
    };
    auto isHalf = [&](int64_t rows) { return askedWithout(restOf(rows)) * 2 <= asked; };
    if (!isHalf(most))
      continue;
    const int64_t rows = firstThat(1, most, isHalf);
    if ((asked - askedWithout(restOf(rows))) * kElementsOfColumn <= rows * ofRow)
      continue;
    return isFront ? IndexRange{range.begin, range.begin + rows} : IndexRange{range.end - rows, range.end};
  }
  return none;
}

bool GroupBlocks::areDense(const GroupBlock &block) {
  return std::all_of(block.ofHeads.begin(), block.ofHeads.end(), [](const std::vector<LatticeColumns> &columns) {
    return std::all_of(columns.begin(), columns.end(), [](const LatticeColumns &of) { return of.rate == 1; });
  });
}

/// The rows need columns of one range of their own rank only.
bool GroupBlocks::areFree(size_t rank, const IndexRange &rows) const {
  GroupBlock block{rows, /*isEarly=*/false};
  visit(block);
  return ownRangeOf(rank, block.clusters).has_value();
}

/// Free rows about the middle of a range, or else at its end or its beginning; empty where those are not either.
IndexRange GroupBlocks::freeRows(size_t rank, const IndexRange &range) const {
  const int64_t tiles = (range.size() + kRowsOfTiles - 1) / kRowsOfTiles;
  auto rowsOf = [&](int64_t first, int64_t last) {
    return IndexRange{range.begin + first * kRowsOfTiles, std::min(range.end, range.begin + last * kRowsOfTiles)};
  };
  auto areFreeTiles = [&](int64_t first, int64_t last) { return areFree(rank, rowsOf(first, last)); };
  for (const int64_t of : {tiles / 2, tiles - 1, int64_t(0)}) {
    if (tiles == 0 || !areFreeTiles(of, of + 1))
      continue;
    const int64_t first = firstThat(0, of, [&](int64_t tile) { return areFreeTiles(tile, of + 1); });
    const int64_t waits = firstThat(of + 1, tiles, [&](int64_t tile) { return !areFreeTiles(first, tile + 1); });
    return rowsOf(first, waits);
  }
  return {range.begin, range.begin};
}

} // namespace heddle::attn
