#include "dialect/Geometry/LatticeColumns.h"
#include "dialect/Geometry/ExprProgram.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace heddle::attn {
namespace {

std::vector<TileRun> joined(std::vector<TileRun> runs) {
  std::sort(runs.begin(), runs.end(), [](TileRun a, TileRun b) { return a.begin < b.begin; });
  std::vector<TileRun> result;
  for (const TileRun &run : runs)
    if (result.empty() || result.back().end < run.begin)
      result.push_back(run);
    else
      result.back().end = std::max(result.back().end, run.end);
  return result;
}

/// Numbers of a class below `number`.
int64_t ofClassBelow(int64_t number, int64_t rate, int64_t residue) {
  return std::max<int64_t>(floorDivide(number - residue + rate - 1, rate), 0);
}

bool contains(const std::pair<int64_t, int64_t> &wide, const std::pair<int64_t, int64_t> &narrow) {
  return narrow.first % wide.first == 0 && narrow.second % wide.first == wide.second;
}

} // namespace

void addColumns(RunsByClass &classes, const std::vector<LatticeColumns> &columns) {
  for (const LatticeColumns &lattice : columns) {
    std::vector<TileRun> &runs = classes[{lattice.rate, lattice.residue}];
    runs.insert(runs.end(), lattice.runs.begin(), lattice.runs.end());
  }
}

std::vector<LatticeColumns> latticeColumns(RunsByClass classes) {
  std::vector<LatticeColumns> columns;
  for (auto &[lattice, runs] : classes)
    if (!runs.empty())
      columns.push_back({lattice.first, lattice.second, joined(std::move(runs))});
  return columns;
}

std::vector<LatticeColumns> within(const std::vector<LatticeColumns> &columns, const std::vector<IndexRange> &ranges) {
  RunsByClass classes;
  for (const LatticeColumns &of : columns)
    for (const IndexRange &range : ranges) {
      const TileRun inside{ofClassBelow(range.begin, of.rate, of.residue),
                           ofClassBelow(range.end, of.rate, of.residue)};
      if (inside.begin >= inside.end)
        continue;
      auto run = std::upper_bound(of.runs.begin(), of.runs.end(), inside.begin,
                                  [](int64_t number, const TileRun &other) { return number < other.end; });
      for (; run != of.runs.end() && run->begin < inside.end; ++run)
        classes[{of.rate, of.residue}].push_back({std::max(run->begin, inside.begin), std::min(run->end, inside.end)});
    }
  return latticeColumns(std::move(classes));
}

std::vector<IndexRange> hullsOf(const std::vector<LatticeColumns> &columns) {
  std::vector<TileRun> hulls;
  for (const LatticeColumns &of : columns)
    for (const TileRun &run : of.runs)
      hulls.push_back({of.residue + of.rate * run.begin, of.residue + of.rate * (run.end - 1) + 1});
  std::vector<IndexRange> result;
  for (const TileRun &hull : joined(std::move(hulls)))
    result.push_back({hull.begin, hull.end});
  return result;
}

int64_t ColumnCounts::Classes::countBelow(int64_t number) const {
  if (!below.empty())
    return number / period * below.back() + below[number % period];
  int64_t count = 0;
  for (const auto &[rate, residue] : classes)
    count += ofClassBelow(number, rate, residue);
  return count;
}

const ColumnCounts::Classes *ColumnCounts::classesOf(std::vector<Class> active) {
  auto [place, isNew] = known.try_emplace(active);
  Classes &made = place->second;
  if (!isNew)
    return &made;
  for (const Class &one : active)
    if (std::none_of(active.begin(), active.end(),
                     [&](const Class &other) { return other != one && contains(other, one); }))
      made.classes.push_back(one);
  if (made.classes.size() <= 1)
    return &made;
  for (const Class &one : made.classes)
    if (made.period <= kMostPeriod)
      made.period = std::lcm(made.period, one.first);
  if (made.period > kMostPeriod) {
    isAbove = true;
    return &made;
  }
  std::vector<char> isIn(made.period, 0);
  for (const auto &[rate, residue] : made.classes)
    for (int64_t number = residue; number < made.period; number += rate)
      isIn[number] = 1;
  made.below.assign(1, 0);
  for (char in : isIn)
    made.below.push_back(made.below.back() + in);
  return &made;
}

ColumnCounts::ColumnCounts(const std::vector<LatticeColumns> &columns) {
  struct Edge {
    int64_t column;
    bool isEnd;
    Class lattice;
  };
  std::vector<Edge> edges;
  for (const LatticeColumns &of : columns)
    for (const TileRun &run : of.runs) {
      edges.push_back({of.residue + of.rate * run.begin, false, {of.rate, of.residue}});
      edges.push_back({of.residue + of.rate * (run.end - 1) + 1, true, {of.rate, of.residue}});
    }
  std::sort(edges.begin(), edges.end(), [](const Edge &a, const Edge &b) { return a.column < b.column; });
  if (!edges.empty())
    firstColumn = edges.front().column;
  std::multiset<Class> active;
  stretches.push_back({0, 0, classesOf({})});
  for (size_t i = 0; i < edges.size();) {
    const int64_t column = edges[i].column, before = below(column);
    for (; i < edges.size() && edges[i].column == column; ++i)
      if (edges[i].isEnd)
        active.erase(active.find(edges[i].lattice));
      else
        active.insert(edges[i].lattice);
    stretches.push_back({column, before, classesOf({active.begin(), active.end()})});
  }
}

int64_t ColumnCounts::below(int64_t column) const {
  auto after = std::upper_bound(stretches.begin(), stretches.end(), column,
                                [](int64_t number, const Stretch &stretch) { return number < stretch.begin; });
  const Stretch &stretch = *std::prev(after);
  return stretch.before + stretch.classes->countBelow(column) - stretch.classes->countBelow(stretch.begin);
}

} // namespace heddle::attn
