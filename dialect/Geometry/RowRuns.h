// Owns the keys that single rows of two patterns keep, for many rows at once: rows that evaluate alike keep runs of keys
// whose ends are affine in the row. Cost follows the bends of the patterns, not their length. It is exact, also for
// unions of many pieces, which are never merged here, and knows how many branches keep a pair.
#pragma once

#include "dialect/Geometry/ExprProgram.h"
#include "dialect/Geometry/IndexRange.h"
#include "dialect/Geometry/Period.h"
#include "dialect/Geometry/Variant.h"

#include <array>
#include <functional>
#include <memory>
#include <optional>

namespace heddle::attn {

/// Keys residue + rate * n, begin <= n < end, which none of the rows has an empty run of.
struct KeyStretch {
  int64_t rate, residue;
  SweepNumber begin, end;        ///< over the steps and turns of the rows
  std::array<int64_t, 2> copies; ///< how many branches of each pattern keep them; one of them at least 1
};

/// Rows first + step * (i + period * j), i < steps and j < turns. Their stretches are disjoint, and hold every key that
/// one of the patterns keeps.
struct AlikeRows {
  int64_t first, step, period, steps, turns;
  std::vector<KeyStretch> stretches;

  /// Of all these rows.
  WideInt pairsOf(const KeyStretch &stretch) const;
};

class RowRuns {
public:
  /// Of two patterns, for as many heads, queries and keys; what they refer to outlives it. None: a part has no closed
  /// form, or reads a tensor that is not given.
  static std::optional<RowRuns> create(const AnalysedCall &first, const AnalysedCall &second);
  RowRuns(RowRuns &&) noexcept;
  ~RowRuns();

  /// Heads with equal values keep alike in both.
  std::vector<int64_t> headValues(int64_t head) const;

  /// Calls `use` so that every one of the rows, numbered from the first of the call, is in it once. False: that takes
  /// more evaluations than the sizes of the first call allow for all visits together.
  bool visit(int64_t head, IndexRange rows, const std::function<void(const AlikeRows &)> &use);

  int64_t evaluations() const { return spent; } ///< of all visits

private:
  struct Part;
  struct Side;
  struct Sweep;

  RowRuns();
  Rectangle visitCorner(Sweep &sweep, const Rectangle &all, const std::function<void(const AlikeRows &)> &use);

  std::array<std::unique_ptr<Side>, 2> sides;
  int64_t most = 0, spent = 0;
};

} // namespace heddle::attn
