// Declares the passes, their registration and their rewrite patterns.
#pragma once

#include "dialect/Analysis/PatternAnalysis.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/Pass.h"

namespace heddle::attn {

#define GEN_PASS_DECL
#include "dialect/Transforms/Passes.h.inc"

/// Rewrites of attn-normalize.
void populateNormalizePatterns(mlir::RewritePatternSet &patterns);

/// A mask for the union of some, at the builder's place: the same for all texts of one set, as far as the laws of sets
/// and linear arithmetic on sizes say so. Null: it has too many parts.
mlir::Value canonicalMask(PatternOp pattern, llvm::ArrayRef<mlir::Value> masks, mlir::OpBuilder &builder);
/// attn-canonical-sets on one pattern.
void canonicalizeSets(PatternOp pattern);
/// A module with the pattern after attn-canonical-sets.
mlir::OwningOpRef<mlir::ModuleOp> canonicalPattern(PatternOp pattern);

/// attn-split-union on one pattern.
void splitUnion(PatternOp pattern);
/// A module with the pattern after attn-split-union; failure if that changes nothing, or if a branch would be asked pair
/// by pair, and walked at no stride, where the union, whose analysis is given, is not.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> withSplitUnion(PatternOp pattern, const PatternAnalysis &analysis);

/// attn-part on one pattern; failure with a diagnostic where its calls cannot be parts, and the pattern stays as it is.
llvm::LogicalResult makePart(PatternOp pattern);

/// The passes of a pattern whose masks lie on different row lattices: patterns that keep its pairs between them, each
/// as often as the pattern does, to be computed in this order, every one from the second on continuing the softmax of
/// the one before. The coarsest lattice comes first.
struct ChainedPasses {
  llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>> modules; ///< one pattern each; none, or at least two
  std::string whyNone;                                          ///< if there are none
};
inline constexpr size_t kMaxPasses = 8;

/// `analysis` is of the pattern as it is computed in one pass. Deterministic; the pattern stays as it is.
ChainedPasses chainedPasses(PatternOp pattern, const PatternAnalysis &analysis);

#define GEN_PASS_REGISTRATION
#include "dialect/Transforms/Passes.h.inc"

inline void registerPasses() {
  registerAttnCanonicalSets();
  registerAttnNormalize();
  registerAttnPart();
  registerAttnSplitUnion();
}

} // namespace heddle::attn
