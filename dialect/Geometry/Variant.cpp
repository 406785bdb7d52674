#include "dialect/Geometry/Variant.h"

#include <algorithm>

namespace heddle::attn {

bool PatternAnalysis::isStructural() const {
  return std::all_of(variants.begin(), variants.end(), [](const Variant &variant) {
    return std::none_of(variant.forward.branches.begin(), variant.forward.branches.end(),
                        [](const BranchRanges &branch) { return branch.masked; });
  });
}

} // namespace heddle::attn
