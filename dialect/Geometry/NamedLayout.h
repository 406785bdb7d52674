// Layouts by the names that people give.
#pragma once

#include "dialect/Geometry/ShardLayout.h"
#include "dialect/Geometry/Variant.h"

#include <optional>
#include <string>

namespace heddle::attn {

struct LayoutRequest {
  const PatternAnalysis &analysis;
  const ProblemSizes &sizes; ///< seqlenQ rows
  int64_t ranks;
  std::optional<int64_t> stripe = {}; ///< of striped; none: defaultStripe
};

/// contiguous, zigzag, striped, balanced: one range for each rank, cut where the pairs that rows keep are as even as
/// cuts at a multiple of a few rows make them.
const std::vector<std::string> &layoutNames();

/// "striped:ROWS" too. invalidArgument: no such name, with those that exist. unsupported: balanced, of a pattern whose pairs
/// have no closed form that is counted in time. Others as of the layouts.
Result<ShardLayout> namedLayout(const std::string &name, const LayoutRequest &request);

} // namespace heddle::attn
