// Where a walk over the tiles of columns stands that a tile of rows visits: branch by branch, and in each range by range
// in ascending order.
#pragma once

#include "Shared/pattern_context.cuh"
#include "Shared/tile_numbers.cuh"

namespace heddle {

// Positions of the first and the last row.
struct RowSpan {
  int32_t first, last;
};

// The columns of a walk are keys, those of rows that are queries.
template <class P, int Block> struct KeyColumns {
  using Pattern = P;
  DEV static int32_t columnRate(int32_t variant, int32_t branch) { return P::keyRate(variant, branch); }
  DEV static int32_t columnResidue(const typename P::Context &context, int32_t variant, int32_t branch, int32_t first) {
    return P::keyResidue(context, variant, branch, first);
  }
  DEV static typename P::Range nextRange(const typename P::Context &context, int32_t variant, int32_t branch,
                                         RowSpan rows, int32_t from) {
    return P::nextRange(context, variant, branch, rows.first, rows.last, Block, from);
  }
};

struct WalkCursor {
  int32_t branch, residue, tile;
};

template <class Columns, class Cursor = WalkCursor> class RangeWalk {
protected:
  using Pattern = typename Columns::Pattern;
  using Context = typename Pattern::Context;
  using Range = typename Pattern::Range;

  DEV RangeWalk(const Context &context, RowSpan rows) : context(context), rows(rows) {}

  DEV void enter(int32_t ofVariant) {
    variant = ofVariant;
    enterBranch(0);
  }

  // The cursor's tile lies in a range; false: nothing follows.
  DEV bool findRange() {
    while (at.tile == range.end) {
      if (at.branch == Pattern::kBranchCount)
        return false;
      range = Columns::nextRange(context, variant, at.branch, rows, range.end);
      at.tile = range.begin;
      if (range.begin == kNoTile)
        enterBranch(at.branch + 1);
    }
    return true;
  }

  DEV int32_t columnRate() const { return Columns::columnRate(variant, at.branch); }

  const Context &context;
  int32_t variant;
  RowSpan rows;
  Cursor at;
  Range range;

private:
  DEV void enterBranch(int32_t next) {
    at.branch = next;
    range = Range{0, 0, 0, 0, 0};
    at.tile = 0;
    if (next < Pattern::kBranchCount)
      at.residue = Columns::columnResidue(context, variant, next, rows.first);
  }
};

} // namespace heddle
