#include "dialect/Geometry/TravelRuns.h"
#include "dialect/Geometry/ExprProgram.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace heddle::attn {
namespace {

constexpr int64_t kMostPeriod = 4096;

using Class = std::pair<int64_t, int64_t>; ///< rate and residue

struct Edge {
  int64_t column;
  bool isEnd;
  Class of;
};

std::vector<Edge> edgesOf(const std::vector<LatticeColumns> &columns) {
  std::vector<Edge> edges;
  for (const LatticeColumns &of : columns)
    for (const TileRun &run : of.runs) {
      const Class own{of.rate, of.residue - floorDivide(of.residue, of.rate) * of.rate};
      edges.push_back({of.residue + of.rate * run.begin, false, own});
      edges.push_back({of.residue + of.rate * (run.end - 1) + 1, true, own});
    }
  std::sort(edges.begin(), edges.end(), [](const Edge &a, const Edge &b) { return a.column < b.column; });
  return edges;
}

/// Classes without a common number, of the same numbers together.
std::vector<Class> apart(const std::multiset<Class> &active) {
  const std::set<Class> classes(active.begin(), active.end());
  if (classes.size() < 2 || classes.begin()->first == 1)
    return {classes.empty() ? Class{1, 0} : *classes.begin()};
  int64_t period = 1;
  for (const Class &one : classes)
    if (period = std::lcm(period, one.first); period > kMostPeriod)
      return {{1, 0}};
  std::vector<char> isTaken(size_t(period), 0);
  std::vector<Class> result;
  for (const auto &[rate, residue] : classes) {
    std::vector<int64_t> fresh;
    for (int64_t number = residue; number < period; number += rate)
      if (!isTaken[size_t(number)])
        fresh.push_back(number), isTaken[size_t(number)] = 1;
    if (int64_t(fresh.size()) == period / rate)
      result.push_back({rate, residue});
    else
      for (int64_t number : fresh)
        result.push_back({period, number});
  }
  return result;
}

class Runs {
public:
  void add(int64_t begin, int64_t end, const Class &of) {
    const auto &[rate, residue] = of;
    const int64_t first = residue + floorDivide(begin - residue + rate - 1, rate) * rate;
    if (first >= end)
      return;
    const int64_t count = (end - 1 - first) / rate + 1;
    const auto [place, isNew] = last.try_emplace(of, runs.size());
    if (!isNew && runs[place->second].last() + rate == first) {
      runs[place->second].count += count;
      return;
    }
    place->second = runs.size();
    runs.push_back({first, rate, count});
  }
  std::vector<RowRun> take() {
    std::sort(runs.begin(), runs.end(), [](const RowRun &a, const RowRun &b) { return a.first < b.first; });
    return std::move(runs);
  }

private:
  std::vector<RowRun> runs;
  std::map<Class, size_t> last;
};

} // namespace

std::vector<RowRun> travelRuns(const std::vector<LatticeColumns> &columns) {
  const std::vector<Edge> edges = edgesOf(columns);
  std::multiset<Class> active;
  Runs runs;
  for (size_t i = 0; i < edges.size(); ++i) {
    if (edges[i].isEnd)
      active.erase(active.find(edges[i].of));
    else
      active.insert(edges[i].of);
    if (i + 1 < edges.size() && !active.empty() && edges[i].column < edges[i + 1].column)
      for (const Class &one : apart(active))
        runs.add(edges[i].column, edges[i + 1].column, one);
  }
  return runs.take();
}

} // namespace heddle::attn
