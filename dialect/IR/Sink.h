//===- Sink.h - a key without a value -----------------------------*- C++ -*-===//
// Owns what attn.softmax says of its sink: a number, an f32 or a tensor with one number for each head.
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/OpImplementation.h"

namespace heddle::attn {

class SoftmaxOp;

/// Reads and writes the directive custom<Sink>: `0.5`, `%number` or `%tensor : memref<?xf32>`.
mlir::ParseResult parseSink(mlir::OpAsmParser &parser, std::optional<mlir::OpAsmParser::UnresolvedOperand> &dynamic,
                            mlir::Type &type, mlir::FloatAttr &number);
void printSink(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::Value dynamic, mlir::Type type,
               mlir::FloatAttr number);

llvm::LogicalResult verifySink(SoftmaxOp softmax);

} // namespace heddle::attn
