// Elements of q, k, v: the instructions of each type that KernelTraits::Element may be. Its numbers are constants of
// KernelTraits. Moved in pieces of 16 bytes.
#pragma once

#include "Ptx/scalar.cuh"

namespace heddle {

using Element = KernelTraits::Element;
constexpr int kElementBytes = KernelTraits::kElementBytes;
constexpr int kMmaStep = KernelTraits::kMmaStep; // elements along which one mma sums
constexpr int kPieceBytes = 16;
constexpr int kPieceElements = kPieceBytes / kElementBytes;
static_assert(kElementBytes == 2 && kMmaStep == 16,
              "two elements fill a register, fragments are those of 16-bit types");

struct Bf16 {
  DEV static uint32_t pack(float low, float high) { return ptx::packBf16(low, high); }
  DEV static void unpack(uint32_t pair, float &low, float &high) { // the upper half of a float
    low = __uint_as_float(pair << 16);
    high = __uint_as_float(pair & 0xffff0000u);
  }
  DEV static uint32_t smaller(uint32_t a, uint32_t b) { return ptx::smallerBf16(a, b); }
  static constexpr uint32_t kOnes = 0x3f803f80;
};
struct Fp16 {
  DEV static uint32_t pack(float low, float high) { return ptx::packFp16(low, high); }
  DEV static void unpack(uint32_t pair, float &low, float &high) { ptx::unpackFp16(pair, low, high); }
  DEV static uint32_t smaller(uint32_t a, uint32_t b) { return ptx::smallerFp16(a, b); }
  static constexpr uint32_t kOnes = 0x3c003c00;
};

DEV uint32_t pack(float low, float high) { return Element::pack(low, high); }

} // namespace heddle
