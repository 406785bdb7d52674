#include "dialect/IR/Attn.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "dialect/IR/AttnDialect.cpp.inc"
#include "dialect/IR/AttnEnums.cpp.inc"
#include "dialect/IR/MaskOpInterface.cpp.inc"
#include "dialect/IR/ScoreOpInterface.cpp.inc"
#include "dialect/IR/OperandOpInterface.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/IR/AttnTypes.cpp.inc"

namespace heddle::attn {

void AttnDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/IR/AttnTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/IR/AttnOps.cpp.inc"
      >();
  refuseUnansweredForms(getContext());
}

} // namespace heddle::attn
