#include "dialect/Geometry/GroupBlanks.h"

#include "runtime/Core/TileReach.h"

#include <algorithm>

namespace heddle::attn {
namespace {

struct ByReceiver {
  bool operator()(const Hop &hop, int32_t rank) const { return hop.to < rank; }
  bool operator()(int32_t rank, const Hop &hop) const { return rank < hop.to; }
};

/// Columns of a window that are there in every head: the rank's own, and those that come.
std::vector<RowRange> filledOf(const RowRange &window, const GroupStep &step, size_t rank,
                               const std::vector<IndexRange> &own, int64_t heads) {
  std::vector<RowRange> filled;
  auto add = [&](int64_t begin, int64_t end) {
    const RowRange common{std::max(begin, window.begin), std::min(end, window.end)};
    if (common.size() > 0)
      filled.push_back(common);
  };
  for (const IndexRange &range : own)
    add(range.begin, range.end);
  const auto hops = std::equal_range(step.hops.begin(), step.hops.end(), int32_t(rank), ByReceiver());
  for (auto hop = hops.first; hop != hops.second; ++hop)
    for (const HeadRows &part : hop->parts)
      for (const RowRun &run : part.rows)
        if (part.heads == heads && run.last() + 1 - run.first == run.count)
          add(run.first, run.last() + 1);
  std::sort(filled.begin(), filled.end(), [](const RowRange &a, const RowRange &b) { return a.begin < b.begin; });
  return filled;
}

void addBlank(const RowRange &gap, bool areDense, std::vector<RowRange> &blanks) {
  if (areDense && gap.size() > 2 * kMostKeysOfTile) {
    blanks.push_back({gap.begin, gap.begin + kMostKeysOfTile});
    blanks.push_back({gap.end - kMostKeysOfTile, gap.end});
  } else if (gap.size() > 0) {
    blanks.push_back(gap);
  }
}

} // namespace

void addBlanks(GroupStep &step, size_t rank, const std::vector<IndexRange> &own, const BlankRules &rules) {
  ShardStep &share = step.ranks[rank];
  for (const RowRange &window : share.windows) {
    int64_t next = window.begin;
    for (const RowRange &full : filledOf(window, step, rank, own, rules.heads)) {
      addBlank({next, full.begin}, rules.areDense, share.blanks);
      next = std::max(next, full.end);
    }
    addBlank({next, window.end}, rules.areDense, share.blanks);
  }
}

} // namespace heddle::attn
