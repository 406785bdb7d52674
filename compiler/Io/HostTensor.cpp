#include "compiler/Io/HostTensor.h"
#include <algorithm>
#include <cassert>
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
  storeElements(dtype, values.data(), tensor.elements(), tensor.data.data(), 0);
  return tensor;
}

float HostTensor::get(int64_t index) const { return loadElement(dtype, data.data(), index); }

void HostTensor::set(int64_t index, float value) { storeElements(dtype, &value, 1, data.data(), index); }

std::vector<float> HostTensor::toFloats() const {
  std::vector<float> values(static_cast<size_t>(elements()));
  loadElements(dtype, data.data(), 0, elements(), values.data());
  return values;
}

} // namespace heddle
