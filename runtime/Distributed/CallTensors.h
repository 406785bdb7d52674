// Owns how tensors of launches are made: rows of the caller's, rows that lie in windows, and pieces of a workspace.
#pragma once

#include "runtime/Core/DType.h"
#include "runtime/Distributed/RowPlace.h"

namespace heddle {

// Rows [first, first + count) of a tensor of a call.
inline heddle_tensor rowsOf(const heddle_tensor &tensor, int64_t elementBytes, int64_t first, int64_t count) {
  heddle_tensor rows = tensor;
  rows.ptr = static_cast<char *>(tensor.ptr) + first * tensor.stride[1] * elementBytes;
  rows.size[1] = count;
  return rows;
}

// A tensor like another one, but for its rows and where they lie.
inline heddle_tensor tensorAt(const RowPlace &place, const heddle_tensor &like, DType dtype, int64_t count) {
  heddle_tensor tensor = like;
  const int64_t bytes = dtypeBytes(dtype);
  tensor.ptr = place.base;
  tensor.dtype = traitsOf(dtype).code;
  tensor.size[1] = count;
  tensor.stride[0] = place.batchStride / bytes;
  tensor.stride[1] = place.rowStride / bytes;
  tensor.stride[2] = place.headStride / bytes;
  tensor.stride[3] = 1;
  return tensor;
}

// Hands out a workspace, from its beginning on.
class Memory {
public:
  explicit Memory(char *base) : base(base) {}
  char *take(int64_t bytes) {
    char *place = base + used;
    used += (uint64_t(bytes) + kAlignment - 1) / kAlignment * kAlignment;
    return place;
  }
  float *takeFloats(int64_t count) { return reinterpret_cast<float *>(take(count * int64_t(sizeof(float)))); }
  uint64_t bytes() const { return used; }

private:
  static constexpr uint64_t kAlignment = 256;
  char *base;
  uint64_t used = 0;
};

} // namespace heddle
