//===- OperandTensor.cpp -----------------------------------------------------===//
#include "compiler/Io/OperandTensor.h"
#include "compiler/Io/HostTensor.h"
#include "compiler/Io/RandomTensor.h"
#include <cstring>

namespace heddle {
namespace {

DType dtypeOf(ElementType element) {
  return element == ElementType::bf16 ? DType::bf16 : element == ElementType::f16 ? DType::fp16 : DType::fp32;
}

OperandTensor taken(ElementType element, HostTensor tensor) {
  return {element, std::move(tensor.shape), std::make_shared<const std::vector<std::byte>>(std::move(tensor.data))};
}

} // namespace

template <class Integer>
static std::shared_ptr<const std::vector<std::byte>> bytesOf(const std::vector<Integer> &values) {
  auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(Integer));
  if (!values.empty())
    std::memcpy(bytes->data(), values.data(), bytes->size());
  return bytes;
}

OperandTensor OperandTensor::integers(std::vector<int64_t> shape, const std::vector<int32_t> &values) {
  return {ElementType::i32, std::move(shape), bytesOf(values)};
}

OperandTensor OperandTensor::wideIntegers(std::vector<int64_t> shape, const std::vector<int64_t> &values) {
  return {ElementType::i64, std::move(shape), bytesOf(values)};
}

OperandTensor OperandTensor::reals(ElementType element, std::vector<int64_t> shape, const std::vector<float> &values) {
  return taken(element, HostTensor::fromFloats(dtypeOf(element), std::move(shape), values));
}

OperandTensor OperandTensor::randomNormal(ElementType element, std::vector<int64_t> shape, uint64_t seed,
                                          std::string_view name) {
  return taken(element, randomNormalTensor(dtypeOf(element), std::move(shape), seed, name));
}

int64_t OperandTensor::elements() const { return elementsOf(shape).value(); }

const void *OperandTensor::address() const {
  static constexpr std::byte nothing{};
  return data->empty() ? &nothing : data->data();
}

int64_t OperandTensor::integer(int64_t index) const {
  const std::byte *at = data->data() + index * elementBytes(element);
  if (element == ElementType::i64) {
    int64_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  int32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

double OperandTensor::real(int64_t index) const {
  const std::byte *at = data->data() + index * elementBytes(element);
  if (element == ElementType::f32) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return double(value);
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return double(element == ElementType::bf16 ? bf16ToFloat(bits) : fp16ToFloat(bits));
}

} // namespace heddle
