// Apart from the entry points themselves: the dialect's headers take seconds to read.
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace heddle {

/// The tensor whose pointer lies at address `place`, an i64. `type` is of one dimension and static shape.
mlir::Value loadTensor(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value place, mlir::MemRefType type);

/// The attribute that keeps a function to its module.
mlir::Attribute internalLinkage(mlir::MLIRContext *context);

} // namespace heddle
