#include "runtime/Core/GroupPlan.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <set>

namespace heddle {
namespace {

constexpr int64_t kMostEntryBytes = 8; // of tensors of a pattern

// Of printf, whose numbers are all long long: sums of strings would be a good part of this file.
[[gnu::format(printf, 1, 2), gnu::noinline]] Status wrong(const char *format, ...) {
  char text[256];
  va_list numbers;
  va_start(numbers, format);
  std::vsnprintf(text, sizeof text, format, numbers);
  va_end(numbers);
  return Status::invalidArgument(std::string("group plan: ") + text);
}
long long num(int64_t value) { return value; }

bool isInside(const RowRange &range, const RowRange &of) {
  return of.begin <= range.begin && range.begin <= range.end && range.end <= of.end;
}

bool lastIsInside(const RowRun &run, int64_t rows) {
  return run.first >= 0 && run.rate > 0 && run.count > 0 && run.first < rows &&
         run.count - 1 <= (rows - 1 - run.first) / run.rate;
}

Status checkLayout(const GroupPlan &plan) {
  std::vector<RowRange> all;
  for (int32_t rank = 0; rank < plan.ranks(); ++rank) {
    if (plan.rowsOf(rank) < 1)
      return wrong("rank %lld has no row", num(rank));
    int64_t behind = -1;
    for (const RowRange &range : plan.layout[size_t(rank)]) {
      if (range.begin <= behind || range.end <= range.begin)
        return wrong("rank %lld: expected ranges that ascend and are not adjacent, got %lld to %lld", num(rank),
                     num(range.begin), num(range.end));
      behind = range.end;
      all.push_back(range);
    }
  }
  std::sort(all.begin(), all.end(), [](const RowRange &a, const RowRange &b) { return a.begin < b.begin; });
  int64_t next = 0;
  for (const RowRange &range : all) {
    if (range.begin != next)
      return wrong("expected every row on one rank, got %lld to %lld behind row %lld", num(range.begin), num(range.end),
                   num(next));
    next = range.end;
  }
  return next == plan.rows ? Status() : wrong("expected %lld rows, the ranks have %lld", num(plan.rows), num(next));
}

// Of one walk, whose ranks have these rows.
class WalkCheck {
public:
  WalkCheck(int64_t allRows, const std::vector<std::vector<RowRange>> &layout, int64_t heads)
      : allRows(allRows), layout(layout), heads(heads) {}

  Status check(const GroupWalk &walk) const {
    for (int32_t rank = 0; rank < ranks() && !walk.steps.empty(); ++rank)
      HEDDLE_TRY(checkBlocks(walk, rank));
    for (const GroupStep &step : walk.steps) {
      if (step.ranks.size() != layout.size())
        return wrong("a step has %lld ranks, the layout %lld", num(int64_t(step.ranks.size())), num(ranks()));
      std::set<std::pair<int32_t, int32_t>> pairs;
      for (const Hop &hop : step.hops) {
        HEDDLE_TRY(checkHop(hop, step));
        if (!pairs.insert({hop.from, hop.to}).second)
          return wrong("two hops from rank %lld to rank %lld in a step", num(hop.from), num(hop.to));
      }
      for (int32_t rank = 0; rank < ranks(); ++rank)
        for (const ShardLaunch &launch : step.ranks[size_t(rank)].launches)
          HEDDLE_TRY(checkLaunch(launch, step.ranks[size_t(rank)], walk, rank));
      for (const ShardStep &share : step.ranks)
        for (const RowRange &blank : share.blanks)
          if (!hasWindow(share, blank))
            return wrong("columns %lld to %lld are blank in no window", num(blank.begin), num(blank.end));
    }
    for (const GuestRows &guests : walk.guests)
      HEDDLE_TRY(checkGuests(guests, walk));
    return {};
  }

private:
  Status checkBlocks(const GroupWalk &walk, int32_t rank) const {
    if (walk.blocks.size() != size_t(ranks()))
      return wrong("expected blocks of %lld ranks, got %lld", num(ranks()), num(int64_t(walk.blocks.size())));
    int64_t rows = 0, end = 0;
    for (const RowRange &block : walk.blocks[size_t(rank)]) {
      if (block.size() < 1 || block.begin < end || ownRow(rank, block.begin) < 0 ||
          ownRow(rank, block.end - 1) != ownRow(rank, block.begin) + block.size() - 1)
        return wrong("blocks of rank %lld: expected rows of one of its ranges behind %lld, got %lld to %lld", num(rank),
                     num(end), num(block.begin), num(block.end));
      rows += block.size();
      end = block.end;
    }
    return rows == rowCount(layout[size_t(rank)]) ? Status()
                                                  : wrong("blocks of rank %lld: expected %lld rows, got %lld",
                                                          num(rank), num(rowCount(layout[size_t(rank)])), num(rows));
  }

  int32_t ranks() const { return int32_t(layout.size()); }
  int64_t ownRow(int32_t rank, int64_t row) const { return placeOfRow(layout[size_t(rank)], row); }
  bool isRank(int32_t rank) const { return rank >= 0 && rank < ranks(); }

  Status checkHop(const Hop &hop, const GroupStep &step) const {
    if (!isRank(hop.from) || !isRank(hop.to) || hop.from == hop.to)
      return wrong("hop from rank %lld to rank %lld: expected two of %lld ranks", num(hop.from), num(hop.to),
                   num(ranks()));
    for (const HeadRows &part : hop.parts) {
      if (part.firstHead < 0 || part.heads < 1 || part.firstHead + part.heads > heads)
        return wrong("hop from rank %lld to rank %lld: heads %lld and %lld more of %lld", num(hop.from), num(hop.to),
                     num(part.firstHead), num(part.heads - 1), num(heads));
      for (const RowRun &run : part.rows)
        if (!lastIsInside(run, allRows) || !areOwn(hop.from, run) ||
            !hasWindow(step.ranks[size_t(hop.to)], {run.first, run.last() + 1}))
          return wrong("hop from rank %lld to rank %lld: rows %lld and %lld more at a stride of %lld are not the "
                       "sender's, or have no window",
                       num(hop.from), num(hop.to), num(run.first), num(run.count - 1), num(run.rate));
    }
    return {};
  }

  bool areOwn(int32_t rank, const RowRun &run) const {
    return ownRow(rank, run.first) >= 0 && ownRow(rank, run.last()) == ownRow(rank, run.first) + run.last() - run.first;
  }
  static bool hasWindow(const ShardStep &step, const RowRange &rows) {
    return std::any_of(step.windows.begin(), step.windows.end(),
                       [&](const RowRange &window) { return isInside(rows, window); });
  }

  Status checkGuests(const GuestRows &guests, const GroupWalk &walk) const {
    if (!isRank(guests.home) || guests.rows < 0 || size_t(guests.rows) >= walk.blocks[size_t(guests.home)].size())
      return wrong("rows %lld of rank %lld, which travel: expected a block of a rank", num(guests.rows),
                   num(guests.home));
    int64_t last = 0;
    for (const ShardLaunch &launch : walk.steps.back().ranks[size_t(guests.home)].launches)
      last += launch.rows == guests.rows;
    if (walk.steps.size() < 2 || last != 1)
      return wrong("rows %lld of rank %lld, which travel: expected two steps, and one launch in the last one",
                   num(guests.rows), num(guests.home));
    int32_t before = -1;
    for (const GuestRows::Meeting &meeting : guests.meetings) {
      if (!isRank(meeting.rank) || meeting.rank < before || meeting.rank == guests.home || meeting.own < 0 ||
          size_t(meeting.own) >= layout[size_t(meeting.rank)].size() ||
          !isInside(meeting.columns, layout[size_t(meeting.rank)][size_t(meeting.own)]))
        return wrong(
            "rows %lld of rank %lld, which travel: columns %lld to %lld are of no other rank in ascending order",
            num(guests.rows), num(guests.home), num(meeting.columns.begin), num(meeting.columns.end));
      before = meeting.rank;
    }
    return {};
  }

  Status checkLaunch(const ShardLaunch &launch, const ShardStep &step, const GroupWalk &walk, int32_t rank) const {
    const std::vector<RowRange> &own = layout[size_t(rank)], &blocks = walk.blocks[size_t(rank)];
    if (launch.rows < 0 || size_t(launch.rows) >= blocks.size())
      return wrong("launch of rank %lld: expected one of its %lld blocks, got %lld", num(rank),
                   num(int64_t(blocks.size())), num(launch.rows));
    const bool isOfWindow = launch.window >= 0;
    if (isOfWindow && launch.isAside)
      return wrong("launch of rank %lld: expected own columns beside other launches", num(rank));
    const std::vector<RowRange> &places = isOfWindow ? step.windows : own;
    const int32_t place = isOfWindow ? launch.window : launch.own;
    if (place < 0 || size_t(place) >= places.size() || !isInside(launch.columns, places[size_t(place)]))
      return wrong("launch of rank %lld: columns %lld to %lld are not in the %s that they are taken from", num(rank),
                   num(launch.columns.begin), num(launch.columns.end), (isOfWindow ? "window" : "range"));
    return {};
  }

  const int64_t allRows;
  const std::vector<std::vector<RowRange>> &layout;
  const int64_t heads;
};

bool areEqual(const RowRange &a, const RowRange &b) { return a.begin == b.begin && a.end == b.end; }

// Behind the checks of both walks.
Status checkKeys(const GroupPlan &plan) {
  if (plan.keys.steps.empty())
    return {};
  if (plan.keys.steps.size() != 1 || !plan.keys.guests.empty() || plan.transposed.steps.empty())
    return wrong("keys of the transposed walk: expected one step beside it, and no rows that travel");
  for (size_t rank = 0; rank < plan.keys.blocks.size(); ++rank) {
    const std::vector<RowRange> &blocks = plan.keys.blocks[rank], &own = plan.transposed.blocks[rank];
    if (!std::equal(blocks.begin(), blocks.end(), own.begin(), own.end(), areEqual))
      return wrong("keys of the transposed walk: expected its blocks of rank %lld", num(int64_t(rank)));
    for (const ShardLaunch &launch : plan.keys.steps[0].ranks[rank].launches)
      if (const RowRange &block = blocks[size_t(launch.rows)];
          launch.window < 0 ? !areEqual(launch.columns, block) : !isInside(block, launch.columns))
        return wrong("keys of the transposed walk: rank %lld: %lld to %lld are not those of block %lld, or it and more",
                     num(int64_t(rank)), num(launch.columns.begin), num(launch.columns.end), num(launch.rows));
  }
  return {};
}

} // namespace

int64_t HeadRows::rowCount() const {
  int64_t count = 0;
  for (const RowRun &run : rows)
    count += run.count;
  return count;
}

int64_t Hop::headRows() const {
  int64_t count = 0;
  for (const HeadRows &part : parts)
    count += part.heads * part.rowCount();
  return count;
}

int64_t GroupWalk::headRows() const {
  int64_t count = 0;
  for (const GroupStep &step : steps)
    for (const Hop &hop : step.hops)
      count += hop.headRows();
  return count;
}

int64_t rowCount(const std::vector<RowRange> &ranges) {
  int64_t count = 0;
  for (const RowRange &range : ranges)
    count += range.size();
  return count;
}

int64_t placeOfRow(const std::vector<RowRange> &ranges, int64_t row) {
  int64_t before = 0;
  for (const RowRange &range : ranges) {
    if (range.begin <= row && row < range.end)
      return before + row - range.begin;
    before += range.size();
  }
  return -1;
}

bool canExchange(int64_t heads, int64_t kvHeads, int64_t ranks) {
  return heads % ranks == 0 && (kvHeads % ranks == 0 || ranks % kvHeads == 0);
}

std::vector<RowRange> joined(std::vector<RowRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const RowRange &a, const RowRange &b) { return a.begin < b.begin; });
  std::vector<RowRange> rows;
  for (const RowRange &range : ranges)
    if (!rows.empty() && rows.back().end == range.begin)
      rows.back().end = range.end;
    else
      rows.push_back(range);
  return rows;
}

std::vector<RowRange> GroupPlan::rowsOfTeam(int32_t team) const {
  std::vector<RowRange> rows;
  for (int32_t member = 0; member < headRanks; ++member) {
    const std::vector<RowRange> &own = layout[size_t(team * headRanks + member)];
    rows.insert(rows.end(), own.begin(), own.end());
  }
  return joined(std::move(rows));
}

WalkShare GroupPlan::shareOf(int32_t rank) const {
  const int32_t team = rank / headRanks, member = rank % headRanks;
  return {team, rowsOfTeam(team), headsOf(member, /*areKeys=*/false).count, headsOf(member, /*areKeys=*/true).count};
}

HeadRange GroupPlan::headsOf(int32_t member, bool areKeys) const {
  const int64_t ofMember = heads / headRanks, first = ofMember * member, ofKey = areKeys ? heads / kvHeads : 1;
  return {first / ofKey, std::max<int64_t>(1, ofMember / ofKey)};
}

std::vector<std::vector<RowRange>> GroupPlan::layoutOfTeam(int32_t team) const {
  const std::vector<RowRange> all = rowsOfTeam(team);
  std::vector<std::vector<RowRange>> members(static_cast<size_t>(headRanks));
  for (int32_t member = 0; member < headRanks; ++member)
    for (const RowRange &range : layout[size_t(team * headRanks + member)]) {
      const int64_t first = placeOfRow(all, range.begin);
      std::vector<RowRange> &rows = members[size_t(member)];
      if (!rows.empty() && rows.back().end == first) // what lies between is another team's
        rows.back().end += range.size();
      else
        rows.push_back({first, first + range.size()});
    }
  return members;
}

GroupWalk GroupPlan::walkOfHeads(int32_t team, bool areKeys) const {
  const std::vector<std::vector<RowRange>> members = layoutOfTeam(team);
  GroupWalk walk;
  GroupStep &step = walk.steps.emplace_back();
  step.ranks.assign(members.size(), {{{0, rowCount(rowsOfTeam(team))}}, {}, {}});
  for (int32_t from = 0; from < headRanks; ++from)
    for (int32_t to = 0; to < headRanks; ++to) {
      if (from == to)
        continue;
      const HeadRange ofMember = headsOf(to, areKeys);
      HeadRows part{ofMember.first, ofMember.count, {}};
      for (const RowRange &range : members[size_t(from)])
        part.rows.push_back({range.begin, 1, range.size()});
      step.hops.push_back({from, to, {std::move(part)}});
    }
  return walk;
}

int64_t GroupPlan::travellingKeys() const {
  int64_t count = forward.headRows() * headRanks;
  for (int32_t team = 0; team < teams() && headRanks > 1; ++team)
    count += walkOfHeads(team, /*areKeys=*/true).headRows();
  return count;
}

const ShardLaunch *GroupPlan::keysOf(int32_t rank, int32_t block) const {
  for (const GroupStep &step : keys.steps)
    for (const ShardLaunch &launch : step.ranks[size_t(rank)].launches)
      if (launch.rows == block)
        return launch.window < 0 ? nullptr : &launch;
  return nullptr;
}

RowRange GroupPlan::keysMetBy(int32_t rank, int32_t block) const {
  const ShardLaunch *all = keysOf(rank, block);
  return all ? all->columns : transposed.blocks[size_t(rank)][size_t(block)];
}

bool GroupPlan::writesQueryGradients() const {
  std::set<std::pair<size_t, int32_t>> met;
  for (const GroupStep &step : walkOfGradients().steps)
    for (size_t rank = 0; rank < step.ranks.size(); ++rank)
      for (const ShardLaunch &launch : step.ranks[rank].launches)
        if (!met.insert({rank, launch.rows}).second)
          return false;
  return true;
}

Status GroupPlan::check() const {
  if (rows < 1 || heads < 1 || kvHeads < 1 || batches < 0 || heads % kvHeads != 0)
    return wrong("expected rows, and heads that are a multiple of kv heads, got %lld, %lld and %lld", num(rows),
                 num(heads), num(kvHeads));
  HEDDLE_TRY(checkLayout(*this));
  if (headRanks < 1 || ranks() % headRanks != 0 || !canExchange(heads, kvHeads, headRanks))
    return wrong(
        "heads are exchanged by teams that the ranks are a multiple of, which divide the heads, and those of k and "
        "v or are a multiple of these; got %lld of %lld ranks, %lld heads and %lld of k and v",
        num(headRanks), num(ranks()), num(heads), num(kvHeads));
  for (const RowTensor &tensor : rowTensors)
    if (tensor.rowBytes < 1 || tensor.rowBytes > rows * kMostEntryBytes || headRanks > 1 || !forward.guests.empty() ||
        (tensor.isOfKeys && (tensor.rowBytes % rows != 0 || (!transposed.steps.empty() && wholes.size() < 3))))
      return wrong("tensor '%.100s' has rows of queries, which are met where they lie", tensor.name.c_str());
  if (forward.steps.empty())
    return wrong("expected a walk forward, by which rows meet their keys");
  std::vector<std::vector<RowRange>> ofTeams;
  for (int32_t team = 0; team < teams(); ++team)
    ofTeams.push_back(rowsOfTeam(team));
  const WalkShare share = shareOf(0);
  HEDDLE_TRY(WalkCheck(rows, ofTeams, share.kvHeads).check(forward));
  HEDDLE_TRY(WalkCheck(rows, ofTeams, share.kvHeads).check(gradients));
  HEDDLE_TRY(WalkCheck(rows, ofTeams, share.heads).check(transposed));
  HEDDLE_TRY(WalkCheck(rows, ofTeams, share.kvHeads).check(keys));
  return checkKeys(*this);
}

} // namespace heddle
