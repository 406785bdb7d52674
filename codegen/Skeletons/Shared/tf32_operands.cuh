// Operands of fp32 products by the tensor core, which multiplies tf32: 11 bits of a significand. A float is the sum of
// two such numbers, but for half a unit of its last place at most: of `big`, the nearest one, and of `small`, what is
// missing, of which the tensor core cuts the lowest bit. Three of the four products make the exact one; the fourth is
// below its last place. With one product, operands are rounded.
#pragma once

#include "Ptx/matrix.cuh"
#include "Shared/elements.cuh"

namespace heddle {

// The nearest tf32 number, ties away from 0, in two instructions (cvt.rna is five). NaN may become a number: what is
// missing then is NaN, and so are products.
DEV uint32_t nearestTf32(uint32_t bits) { return (bits + kHalfOfTf32) & 0xffffe000u; }

template <class E, int Words> struct Tf32Operand {
  uint32_t big[Words], small[E::kIsExact ? Words : 1];

  DEV void set(int word, uint32_t bits) {
    const float value = __uint_as_float(bits);
    if constexpr (E::kIsExact) {
      big[word] = nearestTf32(bits);
      small[word] = __float_as_uint(value - __uint_as_float(big[word]));
    } else {
      big[word] = ptx::roundTf32(value);
    }
  }
  DEV void set(const uint32_t (&words)[Words]) {
#pragma unroll
    for (int word = 0; word < Words; ++word)
      set(word, words[word]);
  }
};

// sum += a b, small products first. What each mma leaves is cut to fp32: sums that are to be exact are short, and are
// added in registers.
template <class E> DEV void multiply(float (&sum)[4], const Tf32Operand<E, 4> &a, const Tf32Operand<E, 2> &b) {
  if constexpr (E::kIsExact) {
    ptx::mmaTf32(sum, a.small, b.big[0], b.big[1]);
    ptx::mmaTf32(sum, a.big, b.small[0], b.small[1]);
  }
  ptx::mmaTf32(sum, a.big, b.big[0], b.big[1]);
}

DEV void addTo(float (&sum)[4], const float (&part)[4]) {
#pragma unroll
  for (int e = 0; e < 4; ++e)
    sum[e] += part[e];
}

// The product of one step.
template <class E> DEV void addProduct(float (&sum)[4], const Tf32Operand<E, 4> &a, const Tf32Operand<E, 2> &b) {
  if constexpr (E::kIsExact) {
    float part[4] = {};
    multiply<E>(part, a, b);
    addTo(sum, part);
  } else {
    multiply<E>(sum, a, b);
  }
}

// Columns 2 c and 2 c + 1 of tile n of accumulators, in row r + 8 half, as an operand A.
DEV void setTf32Weights(uint32_t (&operand)[4], int half, float low, float high) {
  operand[half] = __float_as_uint(low);
  operand[2 + half] = __float_as_uint(high);
}

} // namespace heddle
