//===- Sizes.h - sizes that are static or run-time --------------*- C++ -*-===//
// Owns the notation `[%left, 0]` (also `count 3 seed %s`): parser, printer, verification, and the views of one size as
// an expression (analysis) or a value (predicates). A run-time size is an argument of the pattern.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_DIALECT_IR_SIZES_H
#define HEDDLE_DIALECT_IR_SIZES_H

#include "dialect/IR/Attn.h"

namespace heddle::attn {

/// Reads and writes the directive custom<Sizes>.
mlir::ParseResult parseSizes(mlir::OpAsmParser &parser,
                             llvm::SmallVectorImpl<mlir::OpAsmParser::UnresolvedOperand> &dynamic,
                             mlir::DenseI64ArrayAttr &sizes);
void printSizes(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::OperandRange dynamic,
                mlir::DenseI64ArrayAttr sizes);

/// custom<CountAndSeed>: two sizes behind `count` and `seed`, without brackets.
mlir::ParseResult parseCountAndSeed(mlir::OpAsmParser &parser,
                                    llvm::SmallVectorImpl<mlir::OpAsmParser::UnresolvedOperand> &dynamic,
                                    mlir::DenseI64ArrayAttr &sizes);
void printCountAndSeed(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::OperandRange dynamic,
                       mlir::DenseI64ArrayAttr sizes);

/// The sizes of one op.
struct Sizes {
  mlir::OperandRange dynamic;
  llvm::ArrayRef<int64_t> values; ///< ShapedType::kDynamic where an operand gives the size

  /// Run-time value of size `index`, null if it is static.
  mlir::Value dynamicSize(unsigned index) const;
  IntExpr expr(unsigned index) const;
  mlir::Value value(unsigned index, const PredicateFrame &frame) const;
};

/// Exactly `count` sizes, each at least `minimum`, run-time ones arguments of the pattern.
llvm::LogicalResult verifySizes(mlir::Operation *op, Sizes sizes, llvm::ArrayRef<llvm::StringRef> names,
                                int64_t minimum);

} // namespace heddle::attn

#endif
