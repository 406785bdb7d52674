//===- KeptRows.h - the pairs of a pattern, row by row ------------------------===//
// Owns the way to ask the compiled predicate of a pattern for every pair of a problem.
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Pattern/PatternFile.h"
#include "compiler/Io/OperandTensor.h"

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

  /// scores[j], scale * <q, k> of (row, j), becomes what the pattern's chain makes of it; for fewer keys than there
  /// are, too.
  void changeScores(int64_t head, int64_t row, std::vector<double> &scores);

private:
  struct Compiled;
  explicit KeptRows(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled;
};

} // namespace heddle::views
