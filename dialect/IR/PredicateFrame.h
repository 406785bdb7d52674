// Owns what buildPredicate needs: the local coordinates of one pair as i32 values, and the few arithmetic
// helpers that every op uses. Divisions round toward minus infinity, as in the analysis.
#pragma once

#include "dialect/Geometry/IntExpr.h"
#include "dialect/IR/Operands.h"
#include "mlir/IR/Builders.h"

#include <functional>
#include <map>

namespace heddle::attn {

/// Arguments of one call are evaluated in no fixed order: at most one of them may build operations, else the text of a
/// kernel depends on the compiler of this program.
struct PredicateFrame {
  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::Value q, k;             ///< local coordinates, i32
  mlir::Value extentQ, extentK; ///< local coordinates lie below these
  mlir::Value batch, head, heads;
  unsigned group = 0;                               ///< index of the enclosing attn.heads operand
  const std::map<unsigned, unsigned> *groupOfCount; ///< attn.heads with n operands takes this one
  const ArgumentValues *arguments;                  ///< of the pattern
  mlir::Value qOrigin;                              ///< position of query row 0, outside all pullbacks
  bool isOfKey = false; ///< what is looked up is looked up by the key, not by the query: for functions of many queries

  mlir::Value constant(int64_t value) const;
  mlir::Value boolean(bool value) const;
  mlir::Value add(mlir::Value a, mlir::Value b) const;
  mlir::Value sub(mlir::Value a, mlir::Value b) const;
  mlir::Value mul(mlir::Value a, mlir::Value b) const;
  mlir::Value floorDiv(mlir::Value a, mlir::Value b) const;
  mlir::Value mod(mlir::Value a, mlir::Value b) const;
  mlir::Value min(mlir::Value a, mlir::Value b) const;
  mlir::Value max(mlir::Value a, mlir::Value b) const;
  mlir::Value less(mlir::Value a, mlir::Value b) const;
  /// 0 <= a < b for b >= 0.
  mlir::Value lessUnsigned(mlir::Value a, mlir::Value b) const;
  mlir::Value lessEqual(mlir::Value a, mlir::Value b) const;
  mlir::Value equal(mlir::Value a, mlir::Value b) const;
  mlir::Value both(mlir::Value a, mlir::Value b) const;
  mlir::Value either(mlir::Value a, mlir::Value b) const;
  /// An expression over Head and Heads.
  mlir::Value headExpr(const IntExpr &expr) const;
};

/// Turns expressions into arith ops at the builder's insertion point; equal nodes are built once per object,
/// so an object must not outlive the region that it builds in.
class ExprBuilder {
public:
  using SymbolValues = std::function<mlir::Value(Symbol)>;
  ExprBuilder(mlir::OpBuilder &builder, mlir::Location loc, SymbolValues valueOf)
      : builder(builder), loc(loc), valueOf(std::move(valueOf)) {}
  /// i32.
  mlir::Value integer(const IntExpr &expr);
  /// i1; the expression is a condition.
  mlir::Value condition(const IntExpr &expr);

private:
  mlir::Value build(const IntExpr &expr);
  mlir::Value buildDivision(const IntExpr::Node &node);
  /// i64.
  mlir::Value buildWide(const IntExpr &expr);
  mlir::Value buildCut(const IntExpr &expr);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  SymbolValues valueOf;
  std::map<const IntExpr::Node *, mlir::Value> built;
};

/// floor(a / b) and a - floor(a / b) * b for b > 0; a shift or a mask for powers of two.
mlir::Value buildFloorDiv(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a, mlir::Value b);
mlir::Value buildMod(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a, mlir::Value b);

} // namespace heddle::attn
