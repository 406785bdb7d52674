// Owns sets of columns that are runs on lattices, as visits of shards give them, and how many columns such a set has.
#pragma once

#include "dialect/Geometry/IndexRange.h"
#include "dialect/Geometry/TileVisitor.h"

#include <map>

namespace heddle::attn {

/// The columns residue + rate * n with n in one of the runs, which ascend, are disjoint and not adjacent.
struct LatticeColumns {
  int64_t rate, residue;
  std::vector<TileRun> runs;
};

/// By rate and residue, in any order, overlapping or not.
using RunsByClass = std::map<std::pair<int64_t, int64_t>, std::vector<TileRun>>;
void addColumns(RunsByClass &classes, const std::vector<LatticeColumns> &columns);
/// The same set; classes may overlap.
std::vector<LatticeColumns> latticeColumns(RunsByClass classes);

/// The columns of the set in one of the ranges, which ascend.
std::vector<LatticeColumns> within(const std::vector<LatticeColumns> &columns, const std::vector<IndexRange> &ranges);

/// From the first to the last column of every run, whatever lies between on other classes; ascending and disjoint.
std::vector<IndexRange> hullsOf(const std::vector<LatticeColumns> &columns);

/// How many columns of a set lie below any one, each counted once.
class ColumnCounts {
public:
  explicit ColumnCounts(const std::vector<LatticeColumns> &columns);
  ColumnCounts(ColumnCounts &&) = default; // stretches point into it

  int64_t in(IndexRange range) const {
    const bool isOutside = range.end <= firstColumn || range.begin >= stretches.back().begin;
    return isOutside ? 0 : below(range.end) - below(range.begin);
  }
  /// Classes overlap that have no common multiple up to kMostPeriod: columns in several count several times.
  bool isBound() const { return isAbove; }

private:
  using Class = std::pair<int64_t, int64_t>;
  /// Numbers that lie in one of several classes, below any number >= 0.
  struct Classes {
    int64_t period = 1;
    std::vector<int64_t> below; ///< numbers of [0, period] in a class below this one; empty: one class, all, or none
    std::vector<Class> classes;
    int64_t countBelow(int64_t number) const;
  };
  /// Columns [begin, next begin), where the same classes count.
  struct Stretch {
    int64_t begin, before; ///< columns before it
    const Classes *classes;
  };
  int64_t below(int64_t column) const;
  const Classes *classesOf(std::vector<Class> active);

  static constexpr int64_t kMostPeriod = int64_t(1) << 20;
  int64_t firstColumn = 0;
  std::vector<Stretch> stretches; ///< the first one is of none, as is the last
  std::map<std::vector<Class>, Classes> known;
  bool isAbove = false;
};

} // namespace heddle::attn
