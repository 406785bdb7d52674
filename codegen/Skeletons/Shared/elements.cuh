// Elements of q, k, v: the instructions of each type that the Element of a kernel's traits may be. Its numbers are
// constants of the traits. Moved in pieces of 16 bytes.
#pragma once

#include "Ptx/scalar.cuh"
#include "Shared/key_scales.cuh"

namespace heddle {

constexpr int kPieceBytes = 16;
constexpr int kMmaBytes = 32; // of a row, along which one mma sums, whatever the type

// Of an element of k and v: that of products, or e4m3 of which these are made in registers (Forward/key_products.cuh).
template <class Traits, bool AreScaled> struct KeyElement {
  static constexpr int kBytes = Traits::kElementBytes;
};
template <class Traits> struct KeyElement<Traits, true> {
  static constexpr int kBytes = Traits::kKeyBytes;
};

// What products are of: of numbers of one type, kParts of each element. Those of raised elements have a power of two for
// each row.
template <class E> struct ProductElement {
  using Type = E;
  static constexpr bool kIsOfPairs = false, kIsRaised = false;
  static constexpr int kParts = 1;
};
template <> struct ProductElement<FloatPair> {
  using Type = Fp16;
  static constexpr bool kIsOfPairs = true, kIsRaised = true;
  static constexpr int kParts = 2;
};
template <> struct ProductElement<RaisedFloat> {
  using Type = Fp16;
  static constexpr bool kIsOfPairs = false, kIsRaised = true;
  static constexpr int kParts = 1;
};

template <> struct ProductElement<FastE4m3> : ProductElement<E4m3> {};

template <class E> constexpr bool kMakesCodes = false; // Forward/weight_codes.cuh
template <> constexpr bool kMakesCodes<FastE4m3> = true;

// What follows from the types of the elements.
template <class Traits> struct ElementNumbers : Traits {
  static constexpr int kPieceElements = kPieceBytes / Traits::kElementBytes;
  static constexpr bool kIsScaled = Traits::kElementBytes == 1;
  static constexpr bool kWeightsAreCodes = kMakesCodes<typename Traits::Element>;
  static constexpr bool kHasScaledKeys = ScaledKeys<Traits>::kAre;
  static constexpr int kKeyBytes = KeyElement<Traits, kHasScaledKeys>::kBytes;
  static_assert(Traits::kElementBytes * Traits::kMmaStep == kMmaBytes, "one mma sums along kMmaStep elements");
};

// Those of q, k and v in the call, whatever products are of.
template <class K> constexpr bool kIsRaised = ProductElement<typename K::Element>::kIsRaised;
template <class K> constexpr bool kAreFloats = K::kElementBytes == 4 || kIsRaised<K>;

// Two elements fill a register.
template <class Packed> DEV float roundedAs(float value) {
  float rounded, same;
  Packed::unpack(Packed::pack(value, value), rounded, same);
  return rounded;
}
struct Bf16 {
  DEV static uint32_t pack(float low, float high) { return ptx::packBf16(low, high); }
  DEV static void unpack(uint32_t pair, float &low, float &high) { // the upper half of a float
    low = __uint_as_float(pair << 16);
    high = __uint_as_float(pair & 0xffff0000u);
  }
  DEV static float rounded(float value) { return roundedAs<Bf16>(value); }
  DEV static uint32_t smaller(uint32_t a, uint32_t b) { return ptx::smallerBf16(a, b); }
  static constexpr uint32_t kOnes = 0x3f803f80;
};
struct Fp16 {
  DEV static uint32_t pack(float low, float high) { return ptx::packFp16(low, high); }
  DEV static void unpack(uint32_t pair, float &low, float &high) { ptx::unpackFp16(pair, low, high); }
  DEV static float rounded(float value) { return roundedAs<Fp16>(value); }
  DEV static uint32_t smaller(uint32_t a, uint32_t b) { return ptx::smallerFp16(a, b); }
  static constexpr uint32_t kOnes = 0x3c003c00;
};

constexpr float kLargestE4m3 = 448.0f;

// Four fill a register; beyond the largest they stay there. Tensors of them have scales, and only weights are made of them.
struct E4m3 {
  DEV static uint32_t pack(float a, float b, float c, float d) { return ptx::packE4m3(a, b, c, d); }
};
// The same, whose weights are made of the bits of scores.
struct FastE4m3 : E4m3 {};

constexpr uint32_t kHalfOfTf32 = 0x1000;  // of the last place of a float's 11 bits
constexpr uint32_t kNanBits = 0x7fffffff; // the largest of those of a float without a sign

// One fills a register. Products are those of tf32 numbers: of two for each operand, which have all its digits, or of
// one, rounded (tf32_operands.cuh).
struct Float {
  DEV static uint32_t smaller(uint32_t a, uint32_t b) {
    return __float_as_uint(ptx::smallerOf(__uint_as_float(a), __uint_as_float(b)));
  }
  static constexpr uint32_t kOnes = 0x3f800000;
};
struct Fp32 : Float {
  static constexpr bool kIsExact = true;
  DEV static float rounded(float value) { return value; }
};
struct Tf32 : Float {
  static constexpr bool kIsExact = false;
  DEV static float rounded(float value) { return __uint_as_float(ptx::roundTf32(value)); }
};

// A float as the sum of two numbers of fp16, times a power of two that its row has (Shared/float_pairs.cuh).
struct FloatPair {
  DEV static float rounded(float value) { return value; }
};
// As the larger of the two alone, which has the 11 bits of tf32.
struct RaisedFloat {};

template <class Packed> DEV uint32_t pack(float low, float high) { return Packed::pack(low, high); }

} // namespace heddle
