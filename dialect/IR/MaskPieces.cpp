#include "dialect/IR/MaskPieces.h"
#include "dialect/Geometry/Piece.h"

#include "mlir/IR/Location.h"

namespace heddle::attn {

/// " in line 3", or nothing where the source is not known.
static std::string lineOf(mlir::Operation *op) {
  auto place = op->getLoc()->findInstanceOf<mlir::FileLineColLoc>();
  return place ? " in line " + std::to_string(place.getLine()) : std::string();
}

static void mask(Piece &piece, mlir::Operation *op, const llvm::Twine &why) {
  piece.masked = true;
  piece.reason = (op->getName().getStringRef() + lineOf(op) + ": " + why).str();
}

Piece maskedPiece(const Frame &frame, mlir::Operation *op, const llvm::Twine &why) {
  Piece piece = frame.region;
  mask(piece, op, why);
  return piece;
}

PieceList intersectAll(const PieceList &a, const PieceList &b, mlir::Operation *op) {
  constexpr size_t kMaxProducts = 64;
  PieceList result;
  if (a.size() * b.size() > kMaxProducts) {
    result = a.size() <= b.size() ? a : b;
    for (Piece &piece : result)
      mask(piece, op,
           llvm::Twine(a.size() * b.size()) + " intersections of pieces, at most " + llvm::Twine(kMaxProducts) +
               " are made: the rest asks the predicate, `or` of what is kept instead of `not` needs fewer");
    return result;
  }
  for (const Piece &left : a)
    for (const Piece &right : b)
      result.push_back(intersect(left, right));
  dropEmpty(result);
  return result;
}

} // namespace heddle::attn
