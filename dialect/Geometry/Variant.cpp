#include "dialect/Geometry/Variant.h"

#include <algorithm>

namespace heddle::attn {

static bool hasList(const PatternAnalysis &analysis, bool (*isMeant)(const ListRule &)) {
  for (const Variant &variant : analysis.variants)
    for (const PieceList &pieces : variant.branches)
      for (const Piece &piece : pieces)
        if (piece.list && isMeant(*piece.list->rule))
          return true;
  return false;
}

bool PatternAnalysis::hasLists() const {
  return hasList(*this, [](const ListRule &) { return true; });
}

bool PatternAnalysis::searchesLists() const {
  return hasList(*this, [](const ListRule &rule) { return rule.isSearched(); });
}

bool PatternAnalysis::isStructural() const {
  return std::all_of(variants.begin(), variants.end(), [](const Variant &variant) {
    return std::none_of(variant.forward.branches.begin(), variant.forward.branches.end(),
                        [](const BranchRanges &branch) { return branch.masked; });
  });
}

} // namespace heddle::attn
