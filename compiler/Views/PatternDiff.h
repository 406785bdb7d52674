// Owns what `heddle diff` says: how many pairs only one of two patterns keeps, and a picture of them. A pair counts
// once, however many branches keep it. Both come from runs of keys of rows that evaluate alike (RowRuns.h); of parts
// without a closed form every pair is asked, once for heads that are alike in both patterns.
#pragma once

#include "compiler/Views/KeptPairs.h"
#include "compiler/Views/KeptRows.h"
#include "compiler/Views/Picture.h"

namespace heddle::views {

/// A pattern with the sizes of the call. Both sides have as many heads, queries and keys; the first one's say how many
/// evaluations a closed form may take.
struct DiffSide {
  const PatternFile &file;
  attn::ProblemSizes sizes;
  Operands operands = {}; ///< tensors that the pattern reads
};

/// Summed over the heads of one batch element.
struct DiffCounts {
  attn::WideInt both = 0, onlyFirst = 0, onlySecond = 0;
  attn::WideInt unequal = 0; ///< pairs that both keep, but by unequally many branches
  bool isClosedForm = false;
  int64_t rowsRead = 0; ///< whose pairs were asked one by one, of both
  bool isEqual() const { return onlyFirst == 0 && onlySecond == 0 && unequal == 0; }
};

/// In closed form where that takes few enough evaluations, else pair by pair. unsupported if there are too many.
Result<DiffCounts> countDifference(const DiffSide &first, const DiffSide &second, const PairEffort &effort = {});

/// Cells of pairs, or of blocks of pairs where there are more than maxRows x maxColumns, by the same ways.
Result<Picture> drawDifference(const DiffSide &first, const DiffSide &second, const PictureRequest &request,
                               const PairEffort &effort = {});

/// Two patterns whose pairs are asked one by one. Fails as KeptRows::create does, and with unsupported beyond
/// effort.mostPairs of heads that differ.
class RowPairs {
public:
  /// `isCutShort`: there is a closed form that takes too many evaluations, which the message says.
  static Result<RowPairs> create(const DiffSide &first, const DiffSide &second, std::optional<int64_t> head,
                                 const PairEffort &effort, bool isCutShort);

  /// Heads with equal values keep the same pairs in both.
  std::vector<int64_t> headValues(int64_t head) const;
  /// use(key, copies in the first, in the second) for every key.
  template <class Use> void forEachKey(int64_t head, int64_t row, Use use) {
    first.read(head, row, left);
    second.read(head, row, right);
    for (size_t key = 0; key < left.size(); ++key)
      use(int64_t(key), left[key], right[key]);
  }
  int64_t rowsRead() const { return first.rowsRead() + second.rowsRead(); }

private:
  RowPairs(KeptRows first, KeptRows second) : first(std::move(first)), second(std::move(second)) {}

  KeptRows first, second;
  std::vector<uint16_t> left, right;
};

} // namespace heddle::views
