// Owns the convention between a ListRule and generated code. The functions of a rule are declared in the module of
// pattern functions and called by name; a declaration says which device function it stands for, the CPU path looks its
// address up in hostFunctions(); a rule without a device file is defined in the module. All arguments but tensors are
//   i32: those of the rule, the number of a query's cell `row`, and <name>_next(..., from)   -> i32  the least key cell
//   >= from in the list of `row`; kNoCell if there is none. On a device
//                                    all lanes of a warp call together, each with its own row and from
//   <name>_has(..., cell)    -> i1   `cell` is in the list
//   <name>_length(...)       -> i32  entries of the list, which may name a cell twice
//   <name>_entry(..., index) -> i32  one of them; may be a cell that does not exist
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "dialect/Geometry/CellList.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/ArrayRef.h"

namespace heddle::attn {

/// The file of codegen/Skeletons with what the lanes of a warp find out together; those of lists need it before them.
inline constexpr const char *kWarpFile = "Ptx/warp.cuh";

/// Attributes of a declaration: the device function that it stands for, and the file that defines it. A declaration of
/// <name>_has also carries the rule's name.
inline constexpr llvm::StringLiteral kDeviceFunction = "heddle.device_function", kDeviceFile = "heddle.device_file",
                                     kListName = "heddle.list";

mlir::Value callNext(mlir::OpBuilder &builder, mlir::Location loc, const ListRule &rule, mlir::ValueRange operands);
mlir::Value callHas(mlir::OpBuilder &builder, mlir::Location loc, const ListRule &rule, mlir::ValueRange operands);

/// The two that stand for `has`, a declaration of <name>_has.
mlir::Value callLength(mlir::OpBuilder &builder, mlir::Operation *has, mlir::ValueRange operands);
mlir::Value callEntry(mlir::OpBuilder &builder, mlir::Operation *has, mlir::ValueRange operands);

/// The largest value of the warp; of one lane on the host.
mlir::Value callLargestOfWarp(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);
/// The number of this lane, and how many there are: 0 and 1 on the host.
mlir::Value callLaneOfWarp(mlir::OpBuilder &builder, mlir::Location loc);
mlir::Value callLanesOfWarp(mlir::OpBuilder &builder, mlir::Location loc);

struct HostFunction {
  const char *symbol;
  void *address;
};
/// Every function that a declaration may name.
llvm::ArrayRef<HostFunction> hostFunctions();

// Owns the functions of the rule csr_cells (ListCalls.h), which the module of pattern functions defines: plain loads
// and a binary search, on every target. Arguments: offsets and indices (memrefs), list, offsets of a list, indices in
// all, row. Whatever the tensors hold, nothing beyond them is read. The lanes of a warp share the search for a row of
// csr_cells_transposed: all of them ask for the same cell from the same row on.

/// The role of <name>_next of csr_cells_transposed.
inline constexpr llvm::StringLiteral kCsrRowWith = "row_with";

/// Gives a function without a body its body by its role: next, has, length, entry, kCsrRowWith.
void defineCsrFunction(mlir::func::FuncOp function, llvm::StringRef role);

} // namespace heddle::attn
