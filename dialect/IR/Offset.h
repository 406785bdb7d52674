//===- Offset.h - which residue class a head keeps --------------*- C++ -*-===//
// Owns the `at` number and the offset rules that attn.stride and attn.dilate share. Definitions: `modulo` is
// LongNet's paper (s_j = j mod r), `block` its published code, `group` fkodom's DilatedAttention.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_DIALECT_IR_OFFSET_H
#define HEDDLE_DIALECT_IR_OFFSET_H

#include "dialect/IR/Attn.h"

namespace heddle::attn {

/// The offset as an expression over Head and Heads; the rule is not `every`.
IntExpr offsetExpr(int64_t rate, std::optional<int64_t> at, std::optional<OffsetRule> rule, const IntExpr &group);

/// rate >= 1, exactly one of `at` and `rule`, 0 <= at < rate, `group` inside attn.heads.
llvm::LogicalResult verifyOffset(mlir::Operation *op, int64_t rate, std::optional<int64_t> at,
                                 std::optional<OffsetRule> rule);

} // namespace heddle::attn

#endif
