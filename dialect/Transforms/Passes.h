//===- Passes.h - passes of the attn dialect --------------------*- C++ -*-===//
// Declares the passes, their registration and their rewrite patterns.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_DIALECT_TRANSFORMS_PASSES_H
#define HEDDLE_DIALECT_TRANSFORMS_PASSES_H

#include "dialect/IR/Attn.h"
#include "mlir/Pass/Pass.h"

namespace heddle::attn {

#define GEN_PASS_DECL
#include "dialect/Transforms/Passes.h.inc"

/// Rewrites of attn-normalize.
void populateNormalizePatterns(mlir::RewritePatternSet &patterns);

#define GEN_PASS_REGISTRATION
#include "dialect/Transforms/Passes.h.inc"

inline void registerPasses() { registerAttnNormalize(); }

} // namespace heddle::attn

#endif
