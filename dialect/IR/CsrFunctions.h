//===- CsrFunctions.h - lists in tensors, in generated functions -*- C++ -*-===//
// Owns the functions of the rule csr_cells (ListCalls.h), which the module of pattern functions defines: plain loads
// and a binary search, on every target. Arguments: offsets and indices (memrefs), list, offsets of a list, indices in
// all, row. Whatever the tensors hold, nothing beyond them is read.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_DIALECT_IR_CSRFUNCTIONS_H
#define HEDDLE_DIALECT_IR_CSRFUNCTIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace heddle::attn {

/// The role of <name>_next of csr_cells_transposed.
inline constexpr llvm::StringLiteral kCsrRowWith = "row_with";

/// Gives a function without a body its body by its role: next, has, length, entry, kCsrRowWith.
void defineCsrFunction(mlir::func::FuncOp function, llvm::StringRef role);

} // namespace heddle::attn

#endif
