#include "codegen/Cpu/BridgeMemory.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace heddle {

// The memref dialect knows no pointers in memory, so the descriptor that stands for a tensor is put together by hand.
Value loadTensor(OpBuilder &builder, Location loc, Value place, MemRefType type) {
  MLIRContext *context = builder.getContext();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
  };
  auto pointerType = LLVM::LLVMPointerType::get(context);
  Value slot = LLVM::IntToPtrOp::create(builder, loc, pointerType, place);
  Value pointer = LLVM::LoadOp::create(builder, loc, pointerType, slot);
  auto extents = LLVM::LLVMArrayType::get(builder.getI64Type(), 1);
  auto descriptorType =
      LLVM::LLVMStructType::getLiteral(context, {pointerType, pointerType, builder.getI64Type(), extents, extents});
  Value descriptor = LLVM::PoisonOp::create(builder, loc, descriptorType);
  auto insert = [&](Value value, llvm::ArrayRef<int64_t> where) {
    descriptor = LLVM::InsertValueOp::create(builder, loc, descriptor, value, where);
  };
  insert(pointer, {0});
  insert(pointer, {1});
  insert(constant(0), {2});
  insert(constant(type.getDimSize(0)), {3, 0});
  insert(constant(1), {4, 0});
  return UnrealizedConversionCastOp::create(builder, loc, TypeRange{type}, descriptor).getResult(0);
}

Attribute internalLinkage(MLIRContext *context) {
  return LLVM::LinkageAttr::get(context, LLVM::linkage::Linkage::Internal);
}

} // namespace heddle
