#include "dialect/IR/Operands.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
namespace arith = mlir::arith;

namespace heddle::attn {

const char *extentName(Extent extent) {
  switch (extent) {
  case Extent::Batch:
    return "batch";
  case Extent::Heads:
    return "heads";
  case Extent::SeqlenQ:
    return "seqlen_q";
  case Extent::SeqlenK:
    return "seqlen_k";
  case Extent::Length:
    return "length";
  case Extent::Rows:
    return "rows";
  case Extent::Columns:
    return "columns";
  }
  return "";
}

std::optional<DType> elementOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return findElement(&ElementTraits::mlirName, text);
}

Type typeOf(MLIRContext *context, DType element) { return parseType(traitsOf(element).mlirName, context); }

bool isOperandType(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref || memref.getRank() == 0 || memref.getMemorySpace() || !memref.getLayout().isIdentity())
    return false;
  return elementOf(memref.getElementType()).has_value();
}

uint64_t mixedWord(uint64_t word) {
  word += 0x9e3779b97f4a7c15;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
  return word ^ (word >> 31);
}

MemRefType loweredOperandType(Type elementType) {
  const unsigned bits = elementType.getIntOrFloatBitWidth();
  if (bits < 32)
    elementType = IntegerType::get(elementType.getContext(), bits);
  if (elementType.isInteger(64))
    elementType = IntegerType::get(elementType.getContext(), 32);
  return MemRefType::get({kEndlessOperand}, elementType);
}

namespace {

/// f32 from the bits of 16-bit and 8-bit floats.
struct Widening {
  OpBuilder &builder;
  Location loc;

  Value word(int32_t value) const { return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value)); }
  Value real(Value bits) const { return arith::BitcastOp::create(builder, loc, builder.getF32Type(), bits); }
  Value bits(Value real) const { return arith::BitcastOp::create(builder, loc, builder.getI32Type(), real); }
  Value left(Value bits, int32_t places) const { return arith::ShLIOp::create(builder, loc, bits, word(places)); }
  Value both(Value a, Value b) const { return arith::OrIOp::create(builder, loc, a, b); }
  Value masked(Value bits, int32_t mask) const { return arith::AndIOp::create(builder, loc, bits, word(mask)); }

  Value bf16(Value half) const { return real(left(half, 16)); }

  /// Infinities and NaNs have the largest exponent of both formats.
  Value f16(Value half) const { return ofFewBits(half, 0x7fff, 13, 0x1p112f, 0x7c00); }
  /// The largest exponent is one as any other, but for its last fraction, which is NaN.
  Value e4m3(Value byte) const { return ofFewBits(byte, 0x7f, 20, 0x1p120f, 0x7f); }

private:
  /// Takes a float of a sign and bits below: shifted, exponent and fraction are in their places and stand for the value
  /// divided by `scale`, also of a subnormal. Magnitudes from `special` on get the largest exponent.
  Value ofFewBits(Value bitsOfIt, int32_t below, int32_t places, float scale, int32_t special) const {
    constexpr int32_t kLargestExponent = 0x7f800000, kSignPlace = 31;
    Value magnitude = masked(bitsOfIt, below);
    Value sign = left(masked(bitsOfIt, below + 1), kSignPlace - llvm::Log2_32(below + 1));
    Value shifted = left(magnitude, places);
    Value factor = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(scale));
    Value finite = bits(arith::MulFOp::create(builder, loc, real(shifted), factor));
    Value infinite = both(shifted, word(kLargestExponent));
    Value isFinite = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, magnitude, word(special));
    Value chosen = arith::SelectOp::create(builder, loc, isFinite, finite, infinite);
    return real(both(chosen, sign));
  }
};

} // namespace

Value loadOperand(OpBuilder &builder, Location loc, Value argument, const ArgumentValues &arguments, Value index) {
  Type element = cast<MemRefType>(argument.getType()).getElementType();
  Value loaded = memref::LoadOp::create(builder, loc, arguments.values.lookup(argument), index);
  auto half = [&] { return arith::ExtUIOp::create(builder, loc, builder.getI32Type(), loaded); };
  const Widening widen{builder, loc};
  switch (*elementOf(element)) {
  case DType::bf16:
    return widen.bf16(half());
  case DType::fp16:
    return widen.f16(half());
  case DType::e4m3:
    return widen.e4m3(half());
  case DType::fp32:
  case DType::i32:
  case DType::i64:
    break;
  }
  return loaded;
}

} // namespace heddle::attn
