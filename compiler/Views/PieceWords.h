// Says what a piece of the analysis keeps, for one set of sizes, in a line that a person can check.
#pragma once

#include "dialect/Geometry/Counts.h"

namespace heddle::views {

/// Value of an expression over sizes, parameters and `head`; none if it depends on a tile or a cell.
std::optional<int64_t> valueOf(const attn::IntExpr &expr, const attn::ProblemSizes &sizes, int64_t head);

/// "every key from 3 before to 1 after the query, inside segments of 2048, queries = 1 mod 2". Bounds that the
/// lengths imply are left out; what depends on the head is said for `head`.
std::string inWords(const attn::Piece &piece, const attn::ProblemSizes &sizes, int64_t head);

} // namespace heddle::views
