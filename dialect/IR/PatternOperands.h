// Owns what a pattern as a whole says of its tensors (Operands.h): who reads them, and what their dimensions mean.
#pragma once

#include "dialect/IR/Attn.h"

namespace heddle::attn {

/// Diagnoses masks that read tensors of positions inside a pullback, where positions are no longer those of the call.
llvm::LogicalResult verifyWholePositions(PatternOp pattern);

/// Every argument of type memref: an operand type, with users that agree on its shape. Called when the body is known.
llvm::LogicalResult verifyOperands(PatternOp pattern);
/// Every argument of type memref has a user. True of what people write; folding may take the op that reads a tensor.
llvm::LogicalResult verifyOperandsAreRead(PatternOp pattern);

/// All uses of operand number `argument`, in the order of the ops.
llvm::SmallVector<OperandUse, 2> operandUses(PatternOp pattern, unsigned argument);
/// The dimension of operand number `argument` whose extent is its length; none: the sizes of a call give them all.
std::optional<unsigned> lengthDimension(PatternOp pattern, unsigned argument);

/// A `?` of operand number `argument` stands for this.
bool hasExtent(PatternOp pattern, unsigned argument, Extent extent);
/// Operand number `argument` has an entry for each query, or for each key.
bool hasQueries(PatternOp pattern, unsigned argument);
bool hasKeys(PatternOp pattern, unsigned argument);

/// Arguments that masks read, in the order of the ops.
std::vector<unsigned> maskTensorsOf(PatternOp pattern);

} // namespace heddle::attn
