// Owns the plan of one attention call whose rows lie on several ranks: for each ordered pair of ranks, which columns of
// the second some row of the first keeps, in how many heads they travel, and how many pairs that step computes. Forward,
// rows are queries and columns the keys that travel (k, v), whose gradients go home the same way. Transposed, rows are
// keys and columns the queries that travel (q, d_out, lse, delta), while dK and dV stay.
#pragma once

#include "dialect/Geometry/Shard.h"
#include "dialect/Geometry/ShardLayout.h"

#include <functional>

namespace heddle::attn {

/// Rows of one rank, columns of another, or of itself.
struct ShardStep {
  int64_t columns = 0;              ///< that some row of some head keeps; 0: the step is none
  WideInt headColumns = 0;          ///< that travel: of each head of the columns those that a head of its group keeps
  std::optional<WideInt> pairs = 0; ///< kept, summed over query heads and branches; none: unknown
  bool isExact = true;              ///< false: some of these columns may be kept by no row
  bool isWhole = true;              ///< every row is shown to keep every column in every branch and head: no mask
};

/// Columns that so many heads of columns need alike.
struct ColumnNeed {
  int64_t heads;
  std::vector<LatticeColumns> columns; ///< classes may overlap
  bool isExact;
};

struct ShardPlanRequest {
  const PatternAnalysis &analysis;
  const ProblemSizes &sizes; ///< seqlenQ = seqlenK; its evaluations bound the closed forms of all steps together
  const ShardLayout &layout;
  int64_t kvHeads; ///< of which the query heads are a multiple
  Direction direction = Direction::Forward;
  std::function<void(double share)> progress = {};
};

class ShardPlan {
public:
  /// What the request refers to outlives the plan. invalidArgument: the layout is none of these rows. unsupported:
  /// lengths of queries and keys differ, or a tensor that a mask reads is not given: nothing is known of any step.
  static Result<ShardPlan> create(const ShardPlanRequest &request);

  size_t ranks() const { return layout->ranks.size(); }
  const ShardStep &step(size_t rank, size_t peer) const { return steps[rank * ranks() + peer]; }
  /// The lists behind a step; cost as of making the row of the plan again.
  std::vector<ColumnNeed> needs(size_t rank, size_t peer) const;

  /// Of all steps of a rank; none if one is unknown.
  std::optional<WideInt> pairsOf(size_t rank) const;
  /// Kept pairs of the rank that has most over their mean; 1 if nothing is kept, none if they are unknown.
  std::optional<double> balance() const;
  /// That travel, over all pairs of different ranks.
  WideInt travelling() const;

private:
  struct ColumnHeads {
    int64_t heads;
    std::vector<size_t> classes; ///< indices into representatives
  };
  /// What the rows of one range keep, by class of query heads.
  struct RangeNeeds {
    std::vector<ShardVisit> visits;
    std::vector<IndexRange> touched; ///< hulls over all classes
    std::vector<TileRun> whole;      ///< of all classes
  };
  struct OwnedRange {
    IndexRange range;
    size_t rank;
  };
  class PairSum;

  explicit ShardPlan(const ShardPlanRequest &request);
  void groupHeads(const ShardPlanRequest &request);
  RangeNeeds needsOf(IndexRange rows) const;
  std::vector<ColumnNeed> needsOf(const std::vector<RangeNeeds> &ranges) const;
  void plan(size_t rank, PairSum &pairs);

  const ShardLayout *layout;
  int64_t columnCount;
  ShardVisitor visitor;
  std::vector<int64_t> representatives; ///< a query head of each class that is visited alike
  std::vector<ColumnHeads> columnHeads;
  std::vector<OwnedRange> ranges; ///< of all ranks, ascending
  std::vector<ShardStep> steps;
};

/// A layout that may be chosen, by its plan.
struct LayoutFigures {
  std::string name;
  std::optional<double> balance;
  WideInt travelling;
  std::optional<double> ms = {}; ///< of the call, as somebody predicts who knows rates
  bool isUneven = false;         ///< ranks have different numbers of rows, and so does all else that lies with these
};

struct LayoutChoice {
  size_t index;
  std::string why;
};

/// The first of those that send least among those within 2% of the least predicted time, or, if none has one, of the best
/// balance that is known; among all where none is. Uneven ones only where no other one is among these. There is at least one.
LayoutChoice chooseLayout(const std::vector<LayoutFigures> &layouts);

} // namespace heddle::attn
