// Owns the closed form of the number of kept pairs: pieces and what they share, by inclusion-exclusion, summed as tiles
// of one row and one column. A rectangle is two more bounds on each piece, so its count is of the whole call's pattern:
// where sizes, ends and lists say what is kept, they are those of the call.
#pragma once

#include "dialect/Geometry/IndexRange.h"
#include "dialect/Geometry/Variant.h"

#include <optional>

namespace heddle::attn {

/// Made once for many rectangles of one call.
class PairCounter {
public:
  /// Both outlive it.
  PairCounter(const PatternAnalysis &analysis, const ProblemSizes &sizes);
  PairCounter(PairCounter &&) noexcept;
  ~PairCounter();

  /// Pairs of these queries and keys, which exist, summed over heads; a pair that n branches keep counts n times. None,
  /// as of countPairs: no closed form, too long lists, tensors that are not given, or the evaluations of the sizes are
  /// spent, which last for all rectangles together.
  std::optional<WideInt> count(IndexRange queries, IndexRange keys);

private:
  struct Terms;

  const ProblemSizes &call;
  ProblemSizes sizes; ///< with the ends of a rectangle behind the parameters
  std::vector<HeadGroup> heads;
  std::unique_ptr<Terms> terms; ///< none: there is no closed form
};

} // namespace heddle::attn
