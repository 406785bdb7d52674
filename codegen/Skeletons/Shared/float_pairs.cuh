// Floats as pairs of fp16, for exact products of twice the rate of those of tf32: x = (big + small) 2^e, where big is the
// nearest fp16 and small the nearest to what is left. All of a row have one e, by which its largest element comes to lie
// between 2^14 and 2^15: 22 digits of every element down to 2^-15 of the largest, and 2^-39 of the largest below.
#pragma once

#include "Ptx/scalar.cuh"

namespace heddle {

// The powers of two that a row is multiplied by, and its pairs. Rows of numbers below 2^-112 are not raised any further.
struct PairScale {
  float ofRow, ofPairs;

  DEV explicit PairScale(float largest) {
    constexpr uint32_t kFractionBits = 23, kBias = 127, kTop = 14;
    const uint32_t exponent = max(__float_as_uint(largest) >> kFractionBits, kTop + 1);
    ofRow = __uint_as_float(2 * kBias + kTop - exponent << kFractionBits);
    ofPairs = __uint_as_float(exponent - kTop << kFractionBits);
  }
};

// Two elements of a row that is multiplied, as a word of big ones and one of small ones.
DEV void splitPairs(float first, float second, uint32_t &big, uint32_t &small) {
  float bigFirst, bigSecond;
  big = ptx::packFp16(first, second);
  ptx::unpackFp16(big, bigFirst, bigSecond);
  small = ptx::packFp16(first - bigFirst, second - bigSecond);
}

// Two elements of a row that is multiplied, as a word of each part.
DEV void splitInto(uint32_t (&word)[2], float first, float second) { splitPairs(first, second, word[0], word[1]); }
DEV void splitInto(uint32_t (&word)[1], float first, float second) { word[0] = ptx::packFp16(first, second); }

// The products that make up one of elements of Parts parts, the small ones first, as sums are cut: big small, small big,
// big big. Elements of one part have one product.
template <int Parts> struct PartProducts {
  static constexpr int kCount = Parts == 2 ? 3 : 1;
  static constexpr int ofA(int product) { return product == 1; }
  static constexpr int ofB(int product) { return Parts == 2 && product == 0; }
};

} // namespace heddle
