// Owns what buildScore and buildDerivative need: the pair that a score belongs to, and short names for arithmetic in
// f32.
#pragma once

#include "dialect/IR/Operands.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace heddle::attn {

/// What a score reads of the positions of a pair: nothing (indices of a tensor are no positions), how far it is from the
/// query to the key, or each by itself.
enum class PositionUse : uint8_t { None, Distance, Each };

struct ScoreFrame {
  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::Value batch, head, heads;  ///< i32
  mlir::Value q, k;                ///< positions that scores count, i32: inside a document, or those of the call
  mlir::Value callQ, callK;        ///< positions of the call, i32
  const ArgumentValues *arguments; ///< of the pattern
  /// What turns positions of the call into indices, i32.
  mlir::Value seqlenQ, seqlenK, qOrigin, kOrigin;

  mlir::Value real(double value) const;
  mlir::Value integer(int32_t value) const;
  mlir::Value toReal(mlir::Value integer) const;
  /// An op whose result type follows from its operands.
  template <class Op, class... Operands> mlir::Value make(Operands... operands) const {
    return Op::create(builder, loc, operands...);
  }
  mlir::Value add(mlir::Value a, mlir::Value b) const { return make<mlir::arith::AddFOp>(a, b); }
  mlir::Value sub(mlir::Value a, mlir::Value b) const { return make<mlir::arith::SubFOp>(a, b); }
  mlir::Value mul(mlir::Value a, mlir::Value b) const { return make<mlir::arith::MulFOp>(a, b); }
  mlir::Value div(mlir::Value a, mlir::Value b) const { return make<mlir::arith::DivFOp>(a, b); }
};

} // namespace heddle::attn
