// Owns the choice between closed forms, lists that are read, and pairs that are tried one by one.
#pragma once

#include "compiler/Pattern/PatternFile.h"
#include "compiler/Io/OperandTensor.h"

#include <functional>
#include <optional>
#include <string>

namespace heddle::views {

/// Pairs of a pattern without a closed form are tried one by one up to this many, of heads that keep the same ones once.
inline constexpr int64_t kMostEnumeratedPairs = int64_t(1) << 31;

/// How much may be tried, and whom it tells how far it is, from 0 to 1.
struct PairEffort {
  int64_t mostPairs = kMostEnumeratedPairs;
  std::function<void(double share)> progress = {};
};

struct KeptPairs {
  std::optional<attn::WideInt> count; ///< of one batch element, summed over the heads; none: see the note
  std::string note;                   ///< how they were counted, or why they were not
  int64_t rowsRead = 0;               ///< of those whose pairs were tried
};

/// Fails with a diagnostic if pairs must be tried and the predicate has no form on this machine.
Result<KeptPairs> keptPairsOf(const PatternFile &file, const attn::ProblemSizes &sizes, const Operands &operands,
                              const PairEffort &effort = {});

} // namespace heddle::views
