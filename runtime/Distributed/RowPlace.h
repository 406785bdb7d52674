// Owns the strides in bytes by which rows of heads are found in a tensor of a call, in an array of it, in a window of a
// plan and in a message.
#pragma once

#include "runtime/Include/heddle.h"

#include <cstdint>

namespace heddle {

struct RowPlace {
  char *base = nullptr;
  int64_t batchStride = 0, rowStride = 0, headStride = 0;
  int64_t headBytes = 0; // of one head of one row, without a gap

  // [batch, rows, heads, dim] with strides.
  static RowPlace ofTensor(const heddle_tensor &tensor, int64_t elementBytes) {
    return {static_cast<char *>(tensor.ptr), tensor.stride[0] * elementBytes, tensor.stride[1] * elementBytes,
            tensor.stride[2] * elementBytes, tensor.size[3] * elementBytes};
  }
  // [batch, heads, rows], of fp32.
  static RowPlace ofArray(const float *array, int64_t heads, int64_t rows) {
    constexpr int64_t bytes = sizeof(float);
    char *base = const_cast<char *>(reinterpret_cast<const char *>(array));
    return {base, heads * rows * bytes, bytes, rows * bytes, bytes};
  }
  // [batch, rows, heads], each of headBytes, without gaps.
  static RowPlace ofRows(void *address, int64_t rows, int64_t heads, int64_t headBytes) {
    return {static_cast<char *>(address), rows * heads * headBytes, heads * headBytes, headBytes, headBytes};
  }

  RowPlace at(int64_t row, int64_t head) const {
    RowPlace place = *this;
    place.base += row * rowStride + head * headStride;
    return place;
  }
  RowPlace withRowStep(int64_t rows) const {
    RowPlace place = *this;
    place.rowStride *= rows;
    return place;
  }
  // Rows of so many heads of one batch are one run of bytes.
  bool isRun(int64_t heads) const { return (heads == 1 || headStride == headBytes) && rowStride == heads * headBytes; }
};

// So many rows, of the same heads and batches, from one place to another.
struct RowCopy {
  RowPlace to, from;
  int64_t batches = 0, rows = 0, heads = 0;
};

// Sums of fp32. With lse ([batch, heads, rows] of all these rows), both are results of attention over some keys each, and
// the sum is that over all of them; its lse goes to lseSum, which is neither of theirs.
struct RowSum {
  RowCopy rows;
  const float *lse = nullptr, *lseFrom = nullptr;
  float *lseSum = nullptr;
};

} // namespace heddle
