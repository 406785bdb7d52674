// Owns the notation `[%left, 0]` (also `count 3 seed %s`): parser, printer, verification, and the views of one size as
// an expression (analysis) or a value (predicates). A run-time size is an argument of the pattern.
#pragma once

#include "mlir/IR/OpImplementation.h"
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
  SizeBound bound(unsigned index) const;
};

/// Exactly `count` sizes, each at least `minimum`, run-time ones arguments of the pattern.
llvm::LogicalResult verifySizes(mlir::Operation *op, Sizes sizes, llvm::ArrayRef<llvm::StringRef> names,
                                int64_t minimum);

// Owns the `at` number and the offset rules that attn.stride and attn.dilate share. Definitions: `modulo` is
// LongNet's paper (s_j = j mod r), `block` its published code, `group` fkodom's DilatedAttention.

/// The offset as an expression over Head and Heads; the rule is not `every`.
IntExpr offsetExpr(int64_t rate, std::optional<int64_t> at, std::optional<OffsetRule> rule, const IntExpr &group);

/// The op with the offset that its rule gives in one group of heads.
template <class Op> mlir::Operation *withOffsetOf(Op op, int64_t group) {
  if (op.getRule() != OffsetRule::group)
    return op;
  mlir::OpBuilder builder(op);
  auto fixed = mlir::cast<Op>(builder.clone(*op));
  fixed.removeRuleAttr();
  fixed.setAt(group % int64_t(op.getRate()));
  return fixed;
}

/// rate >= 1, exactly one of `at` and `rule`, 0 <= at < rate, `group` inside attn.heads.
llvm::LogicalResult verifyOffset(mlir::Operation *op, int64_t rate, std::optional<int64_t> at,
                                 std::optional<OffsetRule> rule);

// Owns what attn.softmax says of its sink: a number, an f32 or a tensor with one number for each head.

class SoftmaxOp;

/// Reads and writes the directive custom<Sink>: `0.5`, `%number` or `%tensor : memref<?xf32>`.
mlir::ParseResult parseSink(mlir::OpAsmParser &parser, std::optional<mlir::OpAsmParser::UnresolvedOperand> &dynamic,
                            mlir::Type &type, mlir::FloatAttr &number);
void printSink(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::Value dynamic, mlir::Type type,
               mlir::FloatAttr number);

llvm::LogicalResult verifySink(SoftmaxOp softmax);

} // namespace heddle::attn
