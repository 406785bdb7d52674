// Owns the notation of an f32 operand that is a number or an argument of the pattern: parser, printer, verification and
// the views of it.
#pragma once

#include "dialect/IR/Attn.h"

namespace heddle::attn {

/// Reads and writes the directive custom<Real>.
mlir::ParseResult parseReal(mlir::OpAsmParser &parser, std::optional<mlir::OpAsmParser::UnresolvedOperand> &dynamic,
                            mlir::FloatAttr &number);
void printReal(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::Value dynamic, mlir::FloatAttr number);

/// One number of an op: `dynamic` or else `number`.
struct Real {
  mlir::Value dynamic;
  mlir::FloatAttr number;

  mlir::Value value(const ScoreFrame &frame) const;
  /// The most that it can be: the number itself, or what the pattern says of its argument; infinity if nothing does.
  double maximum() const;
  double minimum() const;
  /// "50", or "%cap".
  std::string inWords() const;
};

/// Exactly one of the two; a number finite, a run-time one an argument of the pattern.
llvm::LogicalResult verifyReal(mlir::Operation *op, Real real, llvm::StringRef name);

} // namespace heddle::attn
