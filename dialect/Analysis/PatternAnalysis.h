// Owns the way from an attn.pattern to ranges: it enumerates the variants (choices of head group), asks the
// mask ops for pieces, and builds the ranges of each branch, forward and transposed.
#pragma once

#include "dialect/Geometry/Variant.h"
#include "dialect/IR/Attn.h"

namespace heddle::attn {

/// The pattern must have passed verification.
PatternAnalysis analyze(PatternOp pattern);

/// The pieces of one mask of the pattern in each of its variants, as `analyze` numbers them. Cells are counted from
/// `cells`, which all masks whose pieces are to be intersected share.
std::vector<PieceList> piecesOf(PatternOp pattern, mlir::Value mask, CellTable &cells);

} // namespace heddle::attn
