// Declares the dialect, its types, attributes, interface and ops.
#pragma once

#include "dialect/Geometry/Documents.h"
#include "dialect/Geometry/Piece.h"
#include "dialect/IR/MaskForm.h"
#include "dialect/IR/Operands.h"
#include "dialect/IR/PredicateFrame.h"
#include "dialect/IR/ScoreFrame.h"
#include "dialect/IR/Whole.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/IR/AttnDialect.h.inc"
#include "dialect/IR/AttnEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/IR/AttnTypes.h.inc"

#include "dialect/IR/MaskOpInterface.h.inc"
#include "dialect/IR/ScoreOpInterface.h.inc"
#include "dialect/IR/OperandOpInterface.h.inc"

namespace heddle::attn {
class PatternOp;
class SoftmaxOp;
class YieldOp;
} // namespace heddle::attn

#define GET_OP_CLASSES
#include "dialect/IR/AttnOps.h.inc"
