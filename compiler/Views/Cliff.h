// Owns the question why a pattern visits more than twice the tiles that its kept pairs would fill, and what would help.
// The answer comes from pieces, lattices and sizes alone, never from a name. It is that of the piece whose visited
// tiles hold most dropped pairs, and of that piece the cause that leaves the least share of a tile kept.
#pragma once

#include "dialect/Geometry/Counts.h"

#include <optional>
#include <string>

namespace heddle::views {

/// Patterns of which less of the visited tiles is kept have a cliff.
inline constexpr double kCliffEfficiency = 0.5;

struct Cliff {
  std::string cause;            ///< one of the names in docs/limits.md
  std::string detail;           ///< where it lies, in numbers
  std::string advice;           ///< what would help
  std::optional<double> factor; ///< visited tiles / tiles that the kept pairs would fill; none: no pair is kept
  size_t branch = 0;            ///< of the analysis
};

/// Takes one batch element, forward. None: there is no cliff, or it is not known whether there is one (`visited` is a
/// bound). Takes some counts for each piece where there is a cliff, nothing where there is none.
std::optional<Cliff> cliffOf(const attn::PatternAnalysis &analysis, const attn::ProblemSizes &sizes,
                             attn::TileShape tile, attn::WideInt keptPairs, const attn::TileCounts &visited);

/// "4.2 times"
std::string timesText(double factor);

/// "4.2 times the tiles that the kept pairs fill (segments): segments of 4 tokens in ...; helps: longer segments, ..."
std::string inWords(const Cliff &cliff);

} // namespace heddle::views
