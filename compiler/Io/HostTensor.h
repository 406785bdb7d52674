// Owns the host side of every tensor that comes from or goes to a file. Elements are little-endian, row-major, without
// padding.
#pragma once

#include "runtime/Core/DType.h"
#include "runtime/Core/ElementConvert.h"
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace heddle {

// "[1, 8192, 8, 64]"
std::string shapeText(const std::vector<int64_t> &shape);

// How many elements a shape has, and their bytes: 0 where a size is 0, whatever the others are. Nothing where a size is
// negative, or the number is beyond 63 bits.
std::optional<int64_t> elementsOf(const std::vector<int64_t> &shape);
std::optional<int64_t> bytesOf(const std::vector<int64_t> &shape, int64_t elementBytes);

// A value type. Invariant: data.size() == elements() * dtypeBytes(dtype).
struct HostTensor {
  DType dtype = DType::fp32;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;

  // Zero-filled. Sizes must not be negative; std::bad_alloc where no memory holds them.
  static HostTensor zeros(DType dtype, std::vector<int64_t> shape);
  // Rounds every value to `dtype`; values.size() must be the product of the shape.
  static HostTensor fromFloats(DType dtype, std::vector<int64_t> shape, const std::vector<float> &values);

  int64_t elements() const;
  // Element number `index` in row-major order, 0 <= index < elements().
  float get(int64_t index) const;
  void set(int64_t index, float value);
  std::vector<float> toFloats() const;
};

} // namespace heddle
