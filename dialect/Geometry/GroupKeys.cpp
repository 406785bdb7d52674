// Queries that keep keys of a block are rows whose columns are asked for once more, forward. Kernels look at whatever else lies in
// a window of queries or of keys, so all of it is blank.
#include "dialect/Geometry/GroupKeys.h"
#include "dialect/Geometry/GroupBlanks.h"

#include <algorithm>

namespace heddle::attn {
namespace {

std::vector<std::vector<IndexRange>> queriesOf(const GroupPlanRequest &request, const GroupBlocks &blocks) {
  std::vector<std::vector<IndexRange>> queries;
  for (size_t rank = 0; rank < request.layout.ranks.size(); ++rank) {
    queries.emplace_back();
    for (const GroupBlock &block : blocks.of(rank))
      queries.back().push_back(block.hull);
  }
  return queries;
}

/// From the first key to the last one that a query keeps, or the block has. False: the block has all of them.
bool meet(const RowRange &own, int32_t block, size_t rank, const GroupBlocks &queries, ShardStep &share) {
  RowRange keys{0, own.end};
  for (const RowRange &cluster : queries.of(rank)[size_t(block)].clusters)
    keys.end = std::max(keys.end, cluster.end);
  if (isInside(keys, own)) {
    share.launches.push_back({block, -1, int32_t(*queries.ownRangeOf(rank, {own})), own});
    return false;
  }
  share.launches.push_back({block, 0, 0, keys});
  addWindows(share.windows, {keys}); // which all begin with key 0: there is one
  return true;
}

} // namespace

GroupWalk keysOf(const GroupPlanRequest &request, const GroupBlocks &blocks) {
  const GroupBlocks queries(request, Direction::Forward, {/*hasEarlyLaunches=*/false, /*fromFirstColumn=*/true},
                            queriesOf(request, blocks));
  const size_t ranks = request.layout.ranks.size();
  GroupWalk walk;
  GroupStep &step = walk.steps.emplace_back();
  step.ranks.resize(ranks);
  for (size_t rank = 0; rank < ranks; ++rank) {
    std::vector<RowRange> &own = walk.blocks.emplace_back();
    std::vector<size_t> asking;
    for (const GroupBlock &block : blocks.of(rank)) {
      own.push_back(rowRange(block.rows));
      if (meet(own.back(), int32_t(own.size()) - 1, rank, queries, step.ranks[rank]))
        asking.push_back(own.size() - 1);
    }
    for (size_t peer = 0; peer < ranks; ++peer)
      if (peer != rank)
        queries.addHop(step, peer, rank, asking);
  }
  for (size_t rank = 0; rank < ranks; ++rank)
    addBlanks(step, rank, request.layout.ranks[rank], {queries.columnHeads(), /*areDense=*/false});
  return walk;
}

} // namespace heddle::attn
