// Owns pattern_score, pattern_score_gradient and pattern_sink (docs/architecture.md, section 2), which a pattern with a
// chain of score ops, with a sink has.
#pragma once

#include "dialect/IR/Attn.h"

#include "mlir/IR/BuiltinOps.h"

namespace heddle {

/// Appends pattern_score to the module of the pattern's functions, and pattern_score_document where scores count
/// positions inside documents; false, and nothing appended, if no chain changes scores.
bool appendScoreFunction(mlir::ModuleOp module, attn::PatternOp pattern);

/// Appends pattern_sink; false, and nothing appended, if the softmax has no sink.
bool appendSinkFunction(mlir::ModuleOp module, attn::PatternOp pattern);

/// Appends pattern_score_gradient, of the type of pattern_score: its derivative with respect to the score, for calls
/// that walk the pattern backward. False, and nothing appended, if no chain changes scores.
bool appendScoreGradient(mlir::ModuleOp module, attn::PatternOp pattern);

/// For each argument that scores have a derivative by (attn::argumentsOfScores): pattern_argument_gradient_<number>, of
/// the type of pattern_score, that derivative, and pattern_argument_place_<number>, (context, q, k, document) -> i64, of a
/// tensor
/// the place of the element that the pair reads.
void appendArgumentGradients(mlir::ModuleOp module, attn::PatternOp pattern);

} // namespace heddle
