#include "dialect/Geometry/ShardLayout.h"
#include "runtime/Core/CountText.h"
#include "runtime/Core/GroupPlan.h"

#include <algorithm>

namespace heddle::attn {
namespace {

/// Part `index` of rows in `parts` of as equal lengths as there are.
IndexRange part(int64_t rows, int64_t parts, int64_t index) {
  auto begin = [&](int64_t number) { return static_cast<int64_t>(static_cast<__int128>(rows) * number / parts); };
  return {begin(index), begin(index + 1)};
}

Status checkRanks(int64_t rows, int64_t ranks, int64_t parts, const char *layout) {
  if (ranks < 1)
    return Status::invalidArgument("expected at least 1 rank, got " + std::to_string(ranks));
  if (parts > kMostShardRanges)
    return Status::invalidArgument(std::string(layout) + " layout: " + grouped(parts) +
                                   " ranges of rows are more than " + grouped(kMostShardRanges) +
                                   ": take fewer ranks or larger stripes");
  if (rows < parts)
    return Status::invalidArgument(std::string(layout) + " layout: " + counted(rows, "token") + " leave a part of " +
                                   counted(parts, "part") + " without rows: take at most " +
                                   counted(rows / (parts / ranks), "rank"));
  return {};
}

void append(std::vector<IndexRange> &ranges, IndexRange range) {
  if (!ranges.empty() && ranges.back().end == range.begin)
    ranges.back().end = range.end;
  else
    ranges.push_back(range);
}

} // namespace

int64_t ShardLayout::rowsOf(size_t rank) const {
  int64_t rows = 0;
  for (const IndexRange &range : ranks[rank])
    rows += range.size();
  return rows;
}

Result<ShardLayout> contiguousLayout(int64_t rows, int64_t ranks) {
  HEDDLE_TRY(checkRanks(rows, ranks, ranks, "contiguous"));
  ShardLayout layout;
  for (int64_t rank = 0; rank < ranks; ++rank)
    layout.ranks.push_back({part(rows, ranks, rank)});
  return layout;
}

ShardLayout pieceLayout(int64_t rows, IndexRange piece) {
  ShardLayout layout;
  layout.ranks.push_back({piece});
  std::vector<IndexRange> others;
  for (const IndexRange &rest : {IndexRange{0, piece.begin}, IndexRange{piece.end, rows}})
    if (rest.begin < rest.end)
      others.push_back(rest);
  if (!others.empty())
    layout.ranks.push_back(others);
  return layout;
}

Result<ShardLayout> zigzagLayout(int64_t rows, int64_t ranks) {
  HEDDLE_TRY(checkRanks(rows, ranks, 2 * ranks, "zigzag"));
  ShardLayout layout;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    std::vector<IndexRange> &ranges = layout.ranks.emplace_back();
    append(ranges, part(rows, 2 * ranks, rank));
    append(ranges, part(rows, 2 * ranks, 2 * ranks - 1 - rank));
  }
  return layout;
}

Result<ShardLayout> stripedLayout(int64_t rows, int64_t ranks, int64_t stripe) {
  if (stripe < 1)
    return Status::invalidArgument("striped layout: expected stripes of at least 1 row, got " + std::to_string(stripe));
  const int64_t stripes = (rows + stripe - 1) / stripe;
  if (stripes < ranks)
    return Status::invalidArgument("striped layout: " + counted(stripes, "stripe") + " of " + grouped(stripe) +
                                   " rows leave rank " + std::to_string(stripes) + " of " + std::to_string(ranks) +
                                   " without rows: take stripes of at most " +
                                   std::to_string(std::max<int64_t>(rows / std::max<int64_t>(ranks, 1), 1)) + " rows");
  HEDDLE_TRY(checkRanks(stripes, ranks, std::max(stripes, ranks), "striped"));
  ShardLayout layout;
  layout.ranks.resize(ranks);
  for (int64_t index = 0; index < stripes; ++index)
    append(layout.ranks[index % ranks], {index * stripe, std::min(rows, (index + 1) * stripe)});
  return layout;
}

int64_t defaultStripe(int64_t rows, int64_t ranks) {
  const int64_t stripesOfRank = std::clamp<int64_t>(8192 / ranks, 2, 64), stripes = ranks * stripesOfRank;
  return std::clamp<int64_t>((rows + stripes - 1) / stripes, 128, std::max<int64_t>(rows / ranks, 128));
}

ShardLayout teamLayout(const ShardLayout &layout, int64_t ranksOfTeam) {
  ShardLayout teams;
  for (size_t first = 0; first < layout.ranks.size(); first += size_t(ranksOfTeam)) {
    std::vector<RowRange> rows;
    for (size_t rank = first; rank < first + size_t(ranksOfTeam); ++rank)
      for (const IndexRange &range : layout.ranks[rank])
        rows.push_back({range.begin, range.end});
    std::vector<IndexRange> &ofTeam = teams.ranks.emplace_back();
    for (const RowRange &range : joined(std::move(rows)))
      ofTeam.push_back({range.begin, range.end});
  }
  return teams;
}

Status checkLayout(const ShardLayout &layout, int64_t rows) {
  std::vector<IndexRange> all;
  for (size_t rank = 0; rank < layout.ranks.size(); ++rank) {
    const std::string who = "rank " + std::to_string(rank);
    if (layout.ranks[rank].empty())
      return Status::invalidArgument(who + " has no rows: every rank needs some, leave it out");
    for (const IndexRange &range : layout.ranks[rank]) {
      const std::string words = who + ", rows " + std::to_string(range.begin) + " to " + std::to_string(range.end);
      if (range.begin < 0 || range.end <= range.begin || range.end > rows)
        return Status::invalidArgument(words + ": expected an ascending range within " + counted(rows, "row"));
      if (&range != &layout.ranks[rank].front() && range.begin <= all.back().end)
        return Status::invalidArgument(words + ": expected it behind the range before, with a row between them");
      all.push_back(range);
    }
  }
  if (all.size() > size_t(kMostShardRanges))
    return Status::invalidArgument(counted(all.size(), "range") + " of rows are more than " +
                                   grouped(kMostShardRanges));
  std::sort(all.begin(), all.end(), [](IndexRange a, IndexRange b) { return a.begin < b.begin; });
  int64_t end = 0;
  for (const IndexRange &range : all) {
    if (range.begin != end)
      return Status::invalidArgument("row " + std::to_string(std::min(range.begin, end)) +
                                     (range.begin < end ? " is in two ranges" : " is no rank's"));
    end = range.end;
  }
  return end == rows ? Status() : Status::invalidArgument("row " + std::to_string(end) + " is no rank's");
}

} // namespace heddle::attn
