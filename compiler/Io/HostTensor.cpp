//===- HostTensor.cpp --------------------------------------------------------===//
#include "compiler/Io/HostTensor.h"
#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensor files are little-endian and are read in place");

namespace heddle {

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::optional<int64_t> bytesOf(const std::vector<int64_t> &shape, int64_t elementBytes) {
  const bool isEmpty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  int64_t total = isEmpty ? 0 : elementBytes;
  for (int64_t size : shape)
    if (size < 0 || (!isEmpty && __builtin_mul_overflow(total, size, &total)))
      return std::nullopt;
  return total;
}

std::optional<int64_t> elementsOf(const std::vector<int64_t> &shape) { return bytesOf(shape, 1); }

// Whoever made the tensor has counted them.
int64_t HostTensor::elements() const { return elementsOf(shape).value(); }

HostTensor HostTensor::zeros(DType dtype, std::vector<int64_t> shape) {
  HostTensor tensor{dtype, std::move(shape), {}};
  const std::optional<int64_t> bytes = bytesOf(tensor.shape, dtypeBytes(dtype));
  if (!bytes)
    throw std::bad_alloc();
  tensor.data.resize(static_cast<size_t>(*bytes));
  return tensor;
}

HostTensor HostTensor::fromFloats(DType dtype, std::vector<int64_t> shape, const std::vector<float> &values) {
  HostTensor tensor = zeros(dtype, std::move(shape));
  assert(static_cast<int64_t>(values.size()) == tensor.elements());
  for (size_t i = 0; i < values.size(); ++i)
    tensor.set(static_cast<int64_t>(i), values[i]);
  return tensor;
}

float HostTensor::get(int64_t index) const {
  const std::byte *at = data.data() + index * dtypeBytes(dtype);
  if (dtype == DType::fp32) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return dtype == DType::bf16 ? bf16ToFloat(bits) : fp16ToFloat(bits);
}

void HostTensor::set(int64_t index, float value) {
  std::byte *at = data.data() + index * dtypeBytes(dtype);
  if (dtype == DType::fp32) {
    std::memcpy(at, &value, sizeof value);
    return;
  }
  uint16_t bits = dtype == DType::bf16 ? floatToBf16(value) : floatToFp16(value);
  std::memcpy(at, &bits, sizeof bits);
}

std::vector<float> HostTensor::toFloats() const {
  std::vector<float> values(static_cast<size_t>(elements()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = get(static_cast<int64_t>(i));
  return values;
}

} // namespace heddle
