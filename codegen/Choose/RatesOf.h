// Owns the way from an analysed pattern to the rates, the grain and the hints that kernels are built for.
#pragma once

#include "dialect/Geometry/Counts.h"
#include "dialect/IR/Attn.h"
#include "codegen/Config/PatternRates.h"

#include <optional>
#include <string>
#include <vector>

namespace heddle {

/// Queries and keys of the calls that defaults are guessed of.
inline constexpr int64_t kGuessedRows = 65536;

/// The operations and analyses must outlive it.
struct AnalysedPattern {
  attn::PatternOp pattern; ///< as it is written
  attn::PatternOp lowered; ///< as it is analysed
  const attn::PatternAnalysis &analysis;
  std::vector<const attn::PatternAnalysis *> passes; ///< in the order of their launches
  std::string whyOnePass;                            ///< where there are none
  std::optional<std::vector<int64_t>> defaults;      ///< words of the arguments; none: a size has no default
                                                     ///< of a pattern of parts, of the part that is all
};

/// Where the pattern says that query 0 stands.
QOriginRule originRuleOf(attn::PatternOp pattern);

/// What the sizes that a call gives the pattern, and the lengths of its tensors, must be.
std::vector<ArgumentBound> argumentBounds(attn::PatternOp pattern);

/// Why sequences in pages, each of a length of its own, cannot share the tensors of a pattern; empty: they can.
std::string whyNoPages(attn::PatternOp pattern);

/// Of a pattern of parts, the arguments that say where queries and keys of the whole end; else none.
std::vector<int64_t> wholesOf(attn::PatternOp pattern);

PatternRates ratesOf(const AnalysedPattern &analysed);

// Owns the questions that defaults depend on: equal tiles may be dealt out in any order, others want the longest first;
// where query tiles are short, their ends weigh more than their middle; where neighbouring rows want different keys,
// large tiles load more than their parts need; where rows of many lattices meet in one kernel, its tiles keep little.

/// Where masks read tensors, or have lists that counts do not read, no more is known than how many queries they are
/// made for, and what lists in tensors are commonly made for.
TileBalance tileBalance(const AnalysedPattern &analysed);

} // namespace heddle
