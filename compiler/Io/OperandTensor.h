// Owns the host side of tensor operands: what --operand reads, what tests and tuning make, what the oracle looks up.
#pragma once

#include "runtime/Core/DType.h"
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace heddle {

// A value type; copies share the elements, which never change. Row-major, little-endian, without padding.
struct OperandTensor {
  DType element = DType::fp32;
  std::vector<int64_t> shape;
  std::shared_ptr<const std::vector<std::byte>> data; // null: no tensor

  static OperandTensor integers(std::vector<int64_t> shape, const std::vector<int32_t> &values);
  static OperandTensor wideIntegers(std::vector<int64_t> shape, const std::vector<int64_t> &values); // i64
  // Rounds every value to `element`, which is no integer.
  static OperandTensor reals(DType element, std::vector<int64_t> shape, const std::vector<float> &values);
  // Standard normal, a pure function of the arguments: RandomTensor.h.
  static OperandTensor randomNormal(DType element, std::vector<int64_t> shape, uint64_t seed, std::string_view name);

  explicit operator bool() const { return data != nullptr; }
  int64_t elements() const;
  // Never null of a tensor that is given, also if it has no elements.
  const void *address() const;
  // Element number `index` in row-major order.
  int64_t integer(int64_t index) const;
  double real(int64_t index) const;
};

// By argument of the pattern; empty places for arguments that are no tensors.
using Operands = std::vector<OperandTensor>;

} // namespace heddle
