// Owns the answer for a whole rectangle: of consecutive rows, as many as a rank has, and consecutive columns of another
// rank, which columns some row keeps. Where none is kept nothing has to be sent, and only these have to be.
#pragma once

#include "dialect/Geometry/IndexRange.h"
#include "dialect/Geometry/LatticeColumns.h"
#include "dialect/Geometry/ShardLayout.h"
#include "dialect/Geometry/TileVisitor.h"
#include "dialect/Geometry/Variant.h"

namespace heddle::attn {

struct ShardVisit {
  std::vector<LatticeColumns>
      columns;           ///< that some row keeps, inside the shard; classes may overlap. None: nothing is kept
  bool isExact = true;   ///< false: some of these columns may be kept by no row
  bool keepsAll = false; ///< every row keeps every column in some branch; a union of pieces may fail to show it

  bool keepsNothing() const { return columns.empty(); }
};

/// Asks one pattern about many shards. Rows and columns are those of the direction; what does not exist of them keeps
/// nothing. Cost follows the pieces, the row classes and the cells that a shard crosses, not the rows.
class ShardVisitor {
public:
  /// Both outlive it; sizes are those of the whole call.
  ShardVisitor(const PatternAnalysis &analysis, Direction direction, const ProblemSizes &sizes);

  /// Of one head.
  ShardVisit visit(int64_t head, IndexRange rows, IndexRange columns) const;
  /// Columns that every one of the rows keeps in every branch of the head; not all of them where pieces overlap, or lie
  /// on lattices.
  std::vector<TileRun> wholeColumns(int64_t head, IndexRange rows) const;
  /// Distance at which columns of every branch's lattice lie alike; as many as `most` where that is further.
  int64_t commonRate(int64_t most) const;
  /// Heads with equal values are visited alike.
  std::vector<int64_t> headValues(int64_t head) const;

private:
  struct Part {
    TileVisitor visitor;
    int64_t rowRate, columnRate;
    bool isExact;
  };
  struct Parts {
    std::vector<Part> pieces;   ///< each on its own lattice
    std::vector<Part> branches; ///< as kernels see them: a tile that several pieces keep together is full here only
  };
  static Part partOf(const VariantRanges &variant, unsigned branch, Direction direction, const ProblemSizes &sizes);

  const PatternAnalysis &analysis;
  Direction direction;
  const ProblemSizes &sizes;
  std::vector<Parts> variants;
  std::vector<HeadGroup> groups;
};

/// What can be said before anything is visited. invalidArgument: the layout is none of these rows, or kv heads do not
/// divide the query heads. unsupported: lengths of queries and keys differ, or a tensor that a mask reads is not given.
Status checkShared(const PatternAnalysis &analysis, const ProblemSizes &sizes, const ShardLayout &layout,
                   int64_t kvHeads);

} // namespace heddle::attn
