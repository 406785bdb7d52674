// Scalar instructions: base-2 exponential and logarithm, words of bits, packing of two floats into one 32-bit word.
#pragma once

namespace heddle {
namespace ptx {

// 2^x, about 2 ulp; subnormal results are 0, exp2(-inf) = 0.
DEV float exp2Approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// log2(x); log2(0) = -inf.
DEV float log2Approx(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// 1 / x within 1 ulp; exact for powers of two. 1/0 = inf.
DEV float reciprocalApprox(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// threadIdx.x, read anew at every call: what is derived from it need not stay in a register meanwhile. Not negative, which
// NVRTC does not see of a signed index that comes from assembly: 2% of the compile time, 13% of a decode kernel's text.
DEV uint32_t rereadThreadIndex() {
  uint32_t index;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
  return index;
}

// Numbers of a thread in its warp and in its warpgroup, likewise.
DEV int32_t rereadLane() { return rereadThreadIndex() % 32; }
DEV int32_t rereadWarpgroupThread() { return rereadThreadIndex() % 128; }

// blockIdx.x, likewise.
DEV int32_t rereadBlockIndex() {
  int32_t index;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(index));
  return index;
}

// gridDim.x, likewise.
DEV int32_t rereadGridSize() {
  int32_t blocks;
  asm volatile("mov.u32 %0, %%nctaid.x;" : "=r"(blocks));
  return blocks;
}

// A word whose lowest `count` bits are set; all bits from 32 on.
DEV uint32_t lowestBits(uint32_t count) {
  uint32_t word;
  asm("bmsk.clamp.b32 %0, 0, %1;" : "=r"(word) : "r"(count));
  return word;
}

// Two bfloat16, rounded to nearest even, `low` in the lower half.
DEV uint32_t packBf16(float low, float high) {
  uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

// Two halves, rounded to nearest even, `low` in the lower half.
DEV uint32_t packFp16(float low, float high) {
  uint32_t word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

// Two halves as packFp16, but 0 for what is negative.
DEV uint32_t packNotNegative(float low, float high) {
  uint32_t word;
  asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

// The larger one of each 16 bits of two words, without a sign.
DEV uint32_t largerHalves(uint32_t a, uint32_t b) {
  uint32_t word;
  asm("max.u16x2 %0, %1, %2;" : "=r"(word) : "r"(a), "r"(b));
  return word;
}

// Four e4m3, rounded to nearest even, those beyond 448 to it, `a` in the lowest byte.
DEV uint32_t packE4m3(float a, float b, float c, float d) {
  uint32_t word;
  asm("{\n.reg .b16 low, high;\ncvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\ncvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
      "mov.b32 %0, {low, high};\n}"
      : "=r"(word)
      : "f"(a), "f"(b), "f"(c), "f"(d));
  return word;
}

// Two halves of the lower or the upper two e4m3 of a word, exactly.
template <int Half> DEV uint32_t halvesOfE4m3(uint32_t word) {
  uint32_t halves;
  if constexpr (Half == 0)
    asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\ncvt.rn.f16x2.e4m3x2 %0, low;\n}"
        : "=r"(halves)
        : "r"(word));
  else
    asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\ncvt.rn.f16x2.e4m3x2 %0, high;\n}"
        : "=r"(halves)
        : "r"(word));
  return halves;
}

// The bytes of a and b, 0 to 3 and 4 to 7, that the hexadecimal digits of Places name, the lowest first.
template <uint32_t Places> DEV uint32_t permuteBytes(uint32_t a, uint32_t b) {
  uint32_t word;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(word) : "r"(a), "r"(b), "n"(Places));
  return word;
}

// A float as a tf32 number, rounded to the nearest one, ties away from 0.
DEV uint32_t roundTf32(float value) {
  uint32_t word;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(value));
  return word;
}

// The smaller number, NaN where one of them is; also of two in a word each.
DEV float smallerOf(float a, float b) {
  float smaller;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(smaller) : "f"(a), "f"(b));
  return smaller;
}
DEV uint32_t smallerBf16(uint32_t a, uint32_t b) {
  uint32_t word;
  asm("min.NaN.bf16x2 %0, %1, %2;" : "=r"(word) : "r"(a), "r"(b));
  return word;
}
DEV uint32_t smallerFp16(uint32_t a, uint32_t b) {
  uint32_t word;
  asm("min.NaN.f16x2 %0, %1, %2;" : "=r"(word) : "r"(a), "r"(b));
  return word;
}

// Two halves, `low` in the lower half.
DEV void unpackFp16(uint32_t pair, float &low, float &high) {
  asm("{\n.reg .b16 first, second;\nmov.b32 {first, second}, %2;\ncvt.f32.f16 %0, first;\ncvt.f32.f16 %1, second;\n}"
      : "=f"(low), "=f"(high)
      : "r"(pair));
}

} // namespace ptx
} // namespace heddle
