// Owns the layouts of a sequence over ranks. Queries and keys lie alike: the rows of a rank are rows of both.
#pragma once

#include "dialect/Geometry/IndexRange.h"
#include "runtime/Core/Status.h"

#include <vector>

namespace heddle::attn {

/// By rank: its ranges, ascending and not adjacent, at least one row in all.
struct ShardLayout {
  std::vector<std::vector<IndexRange>> ranks;

  int64_t rowsOf(size_t rank) const;
};

/// Layouts of more ranges in all are refused: work follows pairs of them.
inline constexpr int64_t kMostShardRanges = int64_t(1) << 14;

/// One range for each rank, of as equal lengths as there are. Of all layouts: invalidArgument, with what would work, if
/// a rank has no row.
Result<ShardLayout> contiguousLayout(int64_t rows, int64_t ranks);
/// 2 * ranks chunks of as equal lengths as there are: rank r has chunk r and chunk 2 * ranks - 1 - r.
Result<ShardLayout> zigzagLayout(int64_t rows, int64_t ranks);
/// Stripes of `stripe` rows, the last one maybe shorter, dealt out in turn.
Result<ShardLayout> stripedLayout(int64_t rows, int64_t ranks, int64_t stripe);
/// Rank 0 has rows [begin, end), rank 1 all others, where there are any.
ShardLayout pieceLayout(int64_t rows, IndexRange piece);
/// At least 128 rows, and as many stripes to a rank as keep the work of a plan small: 64 of up to 128 ranks.
int64_t defaultStripe(int64_t rows, int64_t ranks);

/// So many consecutive ranks of it, which divide them, as one.
ShardLayout teamLayout(const ShardLayout &layout, int64_t ranksOfTeam);

/// invalidArgument: a rank has no row, ranges do not ascend or lie beyond the rows, or a row is nobody's or in two
/// ranges.
Status checkLayout(const ShardLayout &layout, int64_t rows);

} // namespace heddle::attn
