//===- PatternDiff.h - where two patterns disagree ----------------------------===//
// Owns what `heddle diff` says: how many pairs only one of two patterns keeps, and a picture of them. A pair counts
// once, however many branches keep it.
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Views/Picture.h"

namespace heddle::views {

/// A pattern with the sizes of the call. Both sides have as many heads, queries and keys.
struct DiffSide {
  const PatternFile &file;
  attn::ProblemSizes sizes;
  Operands operands = {}; ///< tensors that the pattern reads
};

/// Summed over the heads of one batch element.
struct DiffCounts {
  attn::WideInt both = 0, onlyFirst = 0, onlySecond = 0;
  /// Pairs that both keep, but by unequally many branches; none if it was not counted.
  std::optional<attn::WideInt> unequal;
  bool isClosedForm = false;
  bool isEqual() const { return onlyFirst == 0 && onlySecond == 0 && unequal.value_or(0) == 0; }
};

/// Patterns that the analysis cannot compare are compared pair by pair, up to this many.
inline constexpr int64_t kMostComparedPairs = int64_t(1) << 31;

/// In closed form where the two together have few enough pieces, else pair by pair. unsupported if there are too many.
Result<DiffCounts> countDifference(const DiffSide &first, const DiffSide &second);

/// Cells of pairs, or of blocks of pairs where there are more than maxRows x maxColumns; every pair is asked for.
/// unsupported beyond kMostComparedPairs.
Result<Picture> drawDifference(const DiffSide &first, const DiffSide &second, const PictureRequest &request);

} // namespace heddle::views
