// Owns which positions a chain of scores reads: those inside the documents that the pattern's masks lie in, as masks
// inside documents see them. attn.scaled names the documents where that makes a difference, so that what becomes of the
// masks does not change scores.
#pragma once

#include "dialect/IR/DocumentTensors.h"

namespace heddle::attn {

/// The documents inside which scores of the pattern count positions; nothing: documents make no difference to them.
std::optional<DocumentTensors> documentsOfScores(PatternOp pattern);

/// Diagnoses masks in documents of different tensors where that leaves open what scores count.
llvm::LogicalResult verifyScoreDocuments(PatternOp pattern);

/// Lets attn.scaled name the documents that documentsOfScores finds, and no others.
void nameScoreDocuments(PatternOp pattern);

/// i32: what the scores of all pairs of a query need to know of its document; `at` has the query.
mlir::Value buildScoreDocument(PatternOp pattern, const PredicateFrame &at);
/// Moves the pair of the frame, of the call, into the document; `at` has the same pair.
void countInDocument(PatternOp pattern, const PredicateFrame &at, mlir::Value document, ScoreFrame &frame);

} // namespace heddle::attn
