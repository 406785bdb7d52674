// Owns the question whether the key tiles of a class that visit a query tile follow each other, whatever the sizes: what
// they add to it can then be added in their order, each waiting for the one before it (sm90_dq_order.cuh).
#pragma once

#include "dialect/Geometry/Variant.h"

namespace heddle::attn {

/// The rate of the classes, of keys and of queries alike: a query tile is visited by key tiles of one class only, which
/// follow each other; what a key tile visits begins and ends no earlier than what the one before visits, in every head
/// alike. 0: this is not so, or not seen.
int64_t rateOfConsecutiveTiles(const PatternAnalysis &analysis);

} // namespace heddle::attn
