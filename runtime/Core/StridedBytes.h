// Owns the question whether two tensors share a byte, and whether one has two elements in one place. Exact, also for
// views of one buffer that interleave; a search that takes too long says that they do.
#pragma once

#include "runtime/Include/heddle.h"

namespace heddle {

// Trivial, with no value before one of the functions below gives it one. Runs of bytes at `begin` plus multiples of strides, of which none is negative. Strides and sizes have been checked to
// span less than 2^40 bytes.
class StridedBytes {
public:
  static StridedBytes ofTensor(const heddle_tensor &tensor, int64_t elementBytes);
  static StridedBytes ofArray(const void *address, int64_t bytes);

  bool isEmpty() const { return begin == end; }
  uintptr_t first() const { return begin; }
  // Different empty or apart ones share nothing. Never allocates.
  bool sharesBytesWith(const StridedBytes &other) const;
  // Two elements at one address.
  bool overlapsItself() const;

private:
  static constexpr int kMostDims = 5;
  struct Dim {
    int64_t stride, size;
  };
  void append(int64_t stride, int64_t size);

  uintptr_t begin, end;
  Dim dims[kMostDims]; // dims[0]: a run of bytes
  int count;
};

} // namespace heddle
