/* The tensors of the example calls: bf16, 8 heads of 64, contiguous. */
#ifndef EXAMPLES_TENSORS_H
#define EXAMPLES_TENSORS_H

#include <heddle/heddle.h>

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { kHeads = 8, kHeadDim = 64 };

/* [1, length, heads, head_dim]; memory: of the GPU for launches, of the host for attention on the processors. */
static inline heddle_tensor make_tensor(void *memory, int64_t length) {
  heddle_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.ptr = memory;
  tensor.dtype = HEDDLE_BF16;
  tensor.size[0] = 1, tensor.size[1] = length, tensor.size[2] = kHeads, tensor.size[3] = kHeadDim;
  tensor.stride[0] = length * kHeads * kHeadDim, tensor.stride[1] = kHeads * kHeadDim;
  tensor.stride[2] = kHeadDim, tensor.stride[3] = 1;
  return tensor;
}

/* bf16 numbers of magnitudes 0.5 to 2. */
static inline void fill_random(uint16_t *elements, size_t count, uint32_t seed) {
  size_t i;
  for (i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    elements[i] = (uint16_t)((seed >> 31 << 15) | (0x3f00u + (seed >> 23 & 0xff)));
  }
}

#endif
