// A range of rows is visited once, against all columns; columns of ranks are cut from what it keeps. Pairs of ranges are
// counted in closed form only where the visit shows neither nothing nor everything.
#include "dialect/Geometry/ShardPlan.h"
#include "dialect/Geometry/Counts.h"
#include "dialect/Geometry/PairCounter.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace heddle::attn {

/// Adds the kept pairs of a range of rows to the steps of its rank.
class ShardPlan::PairSum {
public:
  PairSum(const ShardPlanRequest &request, const std::vector<OwnedRange> &columns)
      : counter(request.analysis, request.sizes), columns(columns), direction(request.direction),
        copies(WideInt(request.sizes.heads) * WideInt(request.analysis.variants.front().branches.size())) {}

  void add(IndexRange rows, const RangeNeeds &needs, ShardStep *steps) {
    for (const IndexRange &hull : needs.touched)
      for (auto own = firstWith(hull.begin); own != columns.end() && own->range.begin < hull.end; ++own)
        if (own->range.begin >= hull.begin || isFirstHull(hull, needs, own->range))
          addStep(rows, own->range, needs, steps[own->rank]);
  }

  /// The rows keep all columns of the range.
  static bool isWhole(const std::vector<TileRun> &whole, IndexRange range) {
    auto run = std::upper_bound(whole.begin(), whole.end(), range.begin,
                                [](int64_t column, const TileRun &other) { return column < other.end; });
    return run != whole.end() && run->begin <= range.begin && range.end <= run->end;
  }

private:
  std::vector<OwnedRange>::const_iterator firstWith(int64_t column) const {
    return std::upper_bound(columns.begin(), columns.end(), column,
                            [](int64_t wanted, const OwnedRange &own) { return wanted < own.range.end; });
  }

  /// No earlier hull meets the range, too.
  static bool isFirstHull(const IndexRange &hull, const RangeNeeds &needs, IndexRange range) {
    return &hull == needs.touched.data() || (&hull - 1)->end <= range.begin;
  }

  void addStep(IndexRange rows, IndexRange of, const RangeNeeds &needs, ShardStep &step) {
    if (!step.pairs)
      return;
    std::optional<WideInt> pairs;
    if (isWhole(needs.whole, of))
      pairs = copies * rows.size() * of.size();
    else
      pairs = direction == Direction::Forward ? counter.count(rows, of) : counter.count(of, rows);
    step.pairs = pairs ? std::optional<WideInt>(*step.pairs + *pairs) : std::nullopt;
  }

  PairCounter counter;
  const std::vector<OwnedRange> &columns;
  Direction direction;
  WideInt copies; ///< of a pair that all heads and branches keep
};

Result<ShardPlan> ShardPlan::create(const ShardPlanRequest &request) {
  HEDDLE_TRY(checkShared(request.analysis, request.sizes, request.layout, request.kvHeads));
  ShardPlan plan(request);
  PairSum pairs(request, plan.ranges);
  for (size_t rank = 0; rank < plan.ranks(); ++rank) {
    if (request.progress)
      request.progress(double(rank) / double(plan.ranks()));
    plan.plan(rank, pairs);
  }
  return plan;
}

ShardPlan::ShardPlan(const ShardPlanRequest &request)
    : layout(&request.layout), columnCount(request.sizes.seqlenK),
      visitor(request.analysis, request.direction, request.sizes), steps(ranks() * ranks()) {
  for (size_t rank = 0; rank < ranks(); ++rank)
    for (const IndexRange &range : layout->ranks[rank])
      ranges.push_back({range, rank});
  std::sort(ranges.begin(), ranges.end(),
            [](const OwnedRange &a, const OwnedRange &b) { return a.range.begin < b.range.begin; });
  groupHeads(request);
}

void ShardPlan::groupHeads(const ShardPlanRequest &request) {
  const int64_t heads = request.sizes.heads;
  const bool isOneClass = headGroups(request.analysis, request.sizes).size() == 1;
  std::map<std::vector<int64_t>, size_t> known;
  auto classOf = [&](int64_t head) {
    const auto [place, isNew] =
        known.try_emplace(isOneClass ? std::vector<int64_t>() : visitor.headValues(head), representatives.size());
    if (isNew)
      representatives.push_back(head);
    return place->second;
  };
  const int64_t ofColumns = request.direction == Direction::Forward ? request.kvHeads : heads;
  std::map<std::set<size_t>, int64_t> groups;
  for (int64_t column = 0; column < ofColumns; ++column) {
    std::set<size_t> classes;
    for (int64_t head = column * (heads / ofColumns); head < (column + 1) * (heads / ofColumns); ++head)
      classes.insert(classOf(head));
    ++groups[classes];
  }
  for (const auto &[classes, count] : groups)
    columnHeads.push_back({count, {classes.begin(), classes.end()}});
}

ShardPlan::RangeNeeds ShardPlan::needsOf(IndexRange rows) const {
  RangeNeeds needs;
  RunsByClass all;
  needs.whole = {{0, columnCount}};
  for (int64_t head : representatives) {
    needs.visits.push_back(visitor.visit(head, rows, {0, columnCount}));
    addColumns(all, needs.visits.back().columns);
    std::vector<TileRun> both;
    for (const TileRun &run : visitor.wholeColumns(head, rows))
      for (const TileRun &other : needs.whole)
        if (const TileRun common{std::max(run.begin, other.begin), std::min(run.end, other.end)};
            common.begin < common.end)
          both.push_back(common);
    needs.whole = std::move(both);
  }
  needs.touched = hullsOf(latticeColumns(std::move(all)));
  return needs;
}

std::vector<ColumnNeed> ShardPlan::needsOf(const std::vector<RangeNeeds> &ofRows) const {
  std::vector<ColumnNeed> needs;
  for (const ColumnHeads &heads : columnHeads) {
    ColumnNeed need{heads.heads, {}, true};
    RunsByClass classes;
    for (const RangeNeeds &of : ofRows)
      for (size_t index : heads.classes) {
        addColumns(classes, of.visits[index].columns);
        need.isExact &= of.visits[index].isExact;
      }
    need.columns = latticeColumns(std::move(classes));
    needs.push_back(std::move(need));
  }
  return needs;
}

void ShardPlan::plan(size_t rank, PairSum &pairs) {
  ShardStep *row = &steps[rank * ranks()];
  std::vector<RangeNeeds> ofRows;
  for (const IndexRange &rows : layout->ranks[rank]) {
    ofRows.push_back(needsOf(rows));
    pairs.add(rows, ofRows.back(), row);
  }
  RunsByClass all;
  for (const ColumnNeed &need : needsOf(ofRows)) {
    addColumns(all, need.columns);
    const ColumnCounts counts(need.columns);
    for (const OwnedRange &own : ranges)
      if (const int64_t columns = counts.in(own.range)) {
        row[own.rank].headColumns += WideInt(columns) * need.heads;
        row[own.rank].isExact &= need.isExact && !counts.isBound();
      }
  }
  const ColumnCounts counts(latticeColumns(std::move(all)));
  for (const OwnedRange &own : ranges) {
    row[own.rank].columns += counts.in(own.range);
    row[own.rank].isWhole &= std::all_of(ofRows.begin(), ofRows.end(), [&](const RangeNeeds &needs) {
      return PairSum::isWhole(needs.whole, own.range);
    });
  }
}

std::vector<ColumnNeed> ShardPlan::needs(size_t rank, size_t peer) const {
  std::vector<RangeNeeds> ofRows;
  for (const IndexRange &rows : layout->ranks[rank])
    ofRows.push_back(needsOf(rows));
  std::vector<ColumnNeed> needs = needsOf(ofRows);
  for (ColumnNeed &need : needs)
    need.columns = within(need.columns, layout->ranks[peer]);
  return needs;
}

std::optional<WideInt> ShardPlan::pairsOf(size_t rank) const {
  WideInt pairs = 0;
  for (size_t peer = 0; peer < ranks(); ++peer) {
    if (!step(rank, peer).pairs)
      return std::nullopt;
    pairs += *step(rank, peer).pairs;
  }
  return pairs;
}

std::optional<double> ShardPlan::balance() const {
  WideInt most = 0, sum = 0;
  for (size_t rank = 0; rank < ranks(); ++rank) {
    const std::optional<WideInt> pairs = pairsOf(rank);
    if (!pairs)
      return std::nullopt;
    most = std::max(most, *pairs);
    sum += *pairs;
  }
  return sum > 0 ? static_cast<double>(most) * double(ranks()) / static_cast<double>(sum) : 1;
}

WideInt ShardPlan::travelling() const {
  WideInt sum = 0;
  for (size_t rank = 0; rank < ranks(); ++rank)
    for (size_t peer = 0; peer < ranks(); ++peer)
      sum += rank == peer ? 0 : step(rank, peer).headColumns;
  return sum;
}

LayoutChoice chooseLayout(const std::vector<LayoutFigures> &layouts) {
  constexpr double kAlike = 1.02;
  const bool hasTimes = std::any_of(layouts.begin(), layouts.end(), [](const auto &layout) { return layout.ms; });
  auto loadOf = [&](const LayoutFigures &layout) { return hasTimes ? layout.ms : layout.balance; };
  std::optional<double> best;
  size_t unknown = 0;
  for (const LayoutFigures &layout : layouts)
    if (const std::optional<double> load = loadOf(layout))
      best = std::min(best.value_or(*load), *load);
    else
      ++unknown;
  auto isAlike = [&](const LayoutFigures &layout) {
    return !best || loadOf(layout).value_or(INFINITY) <= *best * kAlike;
  };
  const bool hasEven = std::any_of(layouts.begin(), layouts.end(),
                                   [&](const auto &layout) { return isAlike(layout) && !layout.isUneven; });
  std::optional<size_t> chosen;
  for (size_t index = 0; index < layouts.size(); ++index)
    if (isAlike(layouts[index]) && !(hasEven && layouts[index].isUneven) &&
        (!chosen || layouts[index].travelling < layouts[*chosen].travelling))
      chosen = index;
  if (!best)
    return {*chosen, "sends least; kept pairs are unknown, and so is which layout is even"};
  const bool hasUneven =
      std::any_of(layouts.begin(), layouts.end(), [](const auto &layout) { return layout.isUneven; });
  return {*chosen, std::string("sends least of the layouts ") + (hasEven && hasUneven ? "of equal parts " : "") +
                       (hasTimes ? "within 2% of the least predicted time"
                                 : "whose heaviest rank is within 2% of the best one's") +
                       (hasEven ? "" : ", of which none has equal parts") + (unknown ? ", where that is known" : "")};
}

} // namespace heddle::attn
