// Owns the way to ask the compiled predicate of a pattern for every pair of a problem.
#pragma once

#include "compiler/Pattern/PatternFile.h"
#include "compiler/Io/OperandTensor.h"

#include <map>

namespace heddle::views {

class KeptRows {
public:
  KeptRows(KeptRows &&) noexcept;
  ~KeptRows();

  /// unsupported if the predicate has no form on this machine; invalidArgument if `operands` lacks a tensor that a mask
  /// reads. Scores may be asked if it lacks none.
  static Result<KeptRows> create(const PatternFile &file, const attn::ProblemSizes &sizes,
                                 const Operands &operands = {});

  /// copies[j] = how many branches keep (row, j) for this head, for batch element 0.
  void read(int64_t head, int64_t row, std::vector<uint16_t> &copies);

  /// Heads with equal values keep the same pairs.
  std::vector<int64_t> headValues(int64_t head) const;

  /// scores[j], scale * <q, k> of (row, j), becomes what the pattern's chain makes of it; for fewer keys than there
  /// are, too.
  void changeScores(int64_t head, int64_t row, std::vector<double> &scores);

  /// How many rows were read.
  int64_t rowsRead() const;

private:
  struct Compiled;
  explicit KeptRows(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled;
};

/// Heads that keep the same pairs.
struct AlikeHeads {
  int64_t first, heads;
};

/// Groups [0, heads) by `valuesOf(head)`, in the order of their first ones.
template <class HeadValues> std::vector<AlikeHeads> alikeHeads(int64_t heads, HeadValues valuesOf) {
  std::map<std::vector<int64_t>, size_t> known;
  std::vector<AlikeHeads> alike;
  for (int64_t head = 0; head < heads; ++head) {
    const auto [place, isNew] = known.try_emplace(valuesOf(head), alike.size());
    if (isNew)
      alike.push_back({head, 0});
    ++alike[place->second].heads;
  }
  return alike;
}

} // namespace heddle::views
