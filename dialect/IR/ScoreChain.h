#pragma once

#include "dialect/IR/Attn.h"

namespace heddle::attn {

/// The links of the chain that ends with `scores`, attn.scaled first.
llvm::SmallVector<mlir::Operation *> scoreChain(mlir::Value scores);
/// True if the chain is more than attn.scaled. Null: no chain.
bool changesScores(mlir::Value scores);
/// What of the pattern sees a number that is added to all scores of a query, as weights do not: a link of its chains in words,
/// whose derivative is not known to be 1, or "sink". Empty: nothing.
std::string whatSeesAddedNumbers(PatternOp pattern);
/// The chain for people: "scaled -> softcap by 50"; empty if there is none.
std::string chainInWords(mlir::Value scores);
/// What the whole chain makes of scale * <q, k>.
mlir::Value buildScoreChain(mlir::Value scores, const ScoreFrame &frame, mlir::Value score);
/// The derivative of the whole chain at scale * <q, k> with respect to it.
mlir::Value buildScoreDerivative(mlir::Value scores, const ScoreFrame &frame, mlir::Value score);

/// f32 numbers of the pattern, and tensors of floats, that the chain reads: what scores have a derivative by.
llvm::SmallVector<mlir::BlockArgument> argumentsOfScores(mlir::Value scores);
/// The derivative of the whole chain by one of them, a number or the element that the pair reads.
mlir::Value buildArgumentDerivative(mlir::Value scores, const ScoreFrame &frame, mlir::Value score,
                                    mlir::BlockArgument argument);
/// index: the place of that element; 0 of a number.
mlir::Value buildArgumentPlace(mlir::Value scores, const ScoreFrame &frame, mlir::BlockArgument argument);

} // namespace heddle::attn
