// Owns what ops say in pieces where no closed form, or too many of them, describe what they keep.
#pragma once

#include "dialect/Geometry/Piece.h"

#include "mlir/IR/Operation.h"

namespace heddle::attn {

/// Everything in `frame`, for what `op` keeps of it and no piece describes; `why` becomes the piece's reason.
Piece maskedPiece(const Frame &frame, mlir::Operation *op, const llvm::Twine &why);

/// Pairwise intersections, for `op`; the shorter list, masked, if there would be too many.
PieceList intersectAll(const PieceList &a, const PieceList &b, mlir::Operation *op);

} // namespace heddle::attn
