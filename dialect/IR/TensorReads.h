//===- TensorReads.h - integers of a tensor, in generated functions -*- C++ -*-===//
// Owns how generated code reads what masks need of an i32 tensor (a memref of loweredOperandType): one entry, and the
// search that says in which of the cells between ascending entries a position lies. The host's version is TensorData.h.
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Builders.h"

namespace heddle::attn {

mlir::Value loadEntry(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tensor, mlir::Value index);

/// The number of the last of the first `count` entries that is not above `value`; 0 if there is none. A call of a
/// function that is added to the module once. Reads entries 1 to count - 1 only, whatever they hold.
mlir::Value callSearch(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tensor, mlir::Value value,
                       mlir::Value count);

} // namespace heddle::attn
