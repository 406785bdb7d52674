// Owns what passes that tell the masks of a union apart share: the masks that it is made of, groups of them by the
// lattices of keys or rows that they lie on, and groups without common pairs.
#pragma once

#include "dialect/Analysis/PatternAnalysis.h"

namespace heddle::attn {

/// Masks whose union is `mask`: the operands of or, also below and, pullbacks and heads.
llvm::SmallVector<mlir::Value> termsOf(mlir::Value mask, mlir::OpBuilder &builder);

/// Masks that belong together, and their pieces in each variant.
struct TermGroup {
  llvm::SmallVector<mlir::Value> masks;
  std::vector<PieceList> pieces;

  void append(const TermGroup &other);
  /// Whether a pair is in both.
  bool meets(const TermGroup &other) const;
};

/// A rate of a group in each variant; 0 where it has no pieces.
using GroupRates = llvm::SmallVector<int64_t>;
/// The stride at which a branch of the group alone walks keys.
GroupRates keyRates(const TermGroup &group);
/// That of two groups as one.
GroupRates keyRates(const TermGroup &a, const TermGroup &b);
/// The residue classes into which a kernel of the group alone splits rows.
GroupRates rowRates(const TermGroup &group);

/// How terms are grouped: `fit` holds between those in one group. Where there would be more than `most`, the first ones
/// beyond are enough to say so.
struct Grouping {
  GroupRates (*rates)(const TermGroup &);
  bool (*fit)(const TermGroup &, const TermGroup &);
  size_t most;
};

/// The group of the least rates first: what others leave out should be simple to say. Cells are counted from `cells`.
llvm::SmallVector<TermGroup> groupTerms(PatternOp pattern, llvm::ArrayRef<mlir::Value> terms, CellTable &cells,
                                        const Grouping &grouping);

/// One mask for each group, without what those before it keep; in the canonical text.
llvm::SmallVector<mlir::Value> masksApart(PatternOp pattern, llvm::ArrayRef<TermGroup> groups,
                                          mlir::OpBuilder &builder);

/// Erases masks that nothing uses any more.
void dropUnused(PatternOp pattern);

} // namespace heddle::attn
