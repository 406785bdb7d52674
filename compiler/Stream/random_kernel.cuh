// random_kernel.cuh - the entry of random_rows.cuh on a GPU; kElement is a macro of the compilation.
#include "random_rows.cuh"

using heddle_random::Word;

#if kElement == 0
typedef float Element;
inline Element rounded(float value) { return value; }
#elif kElement == 1
typedef unsigned short Element;
inline Element rounded(float value) { // to nearest, ties to even; there is no NaN
  const unsigned bits = __float_as_uint(value);
  return Element((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
#else
typedef unsigned short Element;
inline Element rounded(float value) {
  Element half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
  return half;
}
#endif

extern "C" __global__ void __launch_bounds__(256) heddle_kernel(Element *to, heddle_random::Block block) {
  const Word threads = Word(gridDim.x) * blockDim.x;
  for (Word n = Word(blockIdx.x) * blockDim.x + threadIdx.x; n * heddle_random::kPerThread < block.elements;
       n += threads)
    heddle_random::make(block, n, to, rounded);
}
