//===- PatternAnalysis.h - a whole pattern, analysed ------------*- C++ -*-===//
// Owns the way from an attn.pattern to ranges: it enumerates the variants (choices of head group), asks the
// mask ops for pieces, and builds the ranges of each branch, forward and transposed.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_DIALECT_ANALYSIS_PATTERNANALYSIS_H
#define HEDDLE_DIALECT_ANALYSIS_PATTERNANALYSIS_H

#include "dialect/Analysis/Ranges.h"
#include "dialect/IR/Attn.h"

namespace heddle::attn {

/// One choice of operand for every attn.heads with the same number of operands.
struct Variant {
  std::map<unsigned, unsigned> groupOfCount; ///< operand count -> operand
  std::vector<PieceList> branches;
  VariantRanges forward, transposed;
};

struct PatternAnalysis {
  std::vector<Variant> variants;
  IntExpr variantOfHead; ///< index into `variants`, from Head and Heads
  std::vector<int64_t> parameterDefaults;
  std::vector<unsigned> maskTensors; ///< arguments, tensors of integers, that masks read

  /// True if no branch of any variant is masked.
  bool isStructural() const;
};

/// The pattern must have passed verification.
PatternAnalysis analyze(PatternOp pattern);

/// The pieces of one mask of the pattern in each of its variants, as `analyze` numbers them. Cells are counted from
/// `cells`, which all masks whose pieces are to be intersected share.
std::vector<PieceList> piecesOf(PatternOp pattern, mlir::Value mask, CellTable &cells);

/// Index of the attn.heads operand (of `count`) that serves Head of Heads: floor shares, the first Heads mod
/// count operands serve one more.
IntExpr headGroup(unsigned count);

/// Everything in `frame`, for what `op` keeps of it and no piece describes; `why` becomes the piece's reason.
Piece maskedPiece(const Frame &frame, mlir::Operation *op, const llvm::Twine &why);

/// Drops pieces that are empty for every size.
void dropEmpty(PieceList &pieces);
/// Pairwise intersections, for `op`; one masked piece if there would be too many.
PieceList intersectAll(const PieceList &a, const PieceList &b, const Frame &frame, mlir::Operation *op);

} // namespace heddle::attn

#endif
