#include "compiler/Io/OperandTensor.h"
#include "compiler/Io/HostTensor.h"
#include "compiler/Io/RandomTensor.h"
#include <cstring>

namespace heddle {
namespace {

OperandTensor taken(HostTensor tensor) {
  return {tensor.dtype, std::move(tensor.shape),
          std::make_shared<const std::vector<std::byte>>(std::move(tensor.data))};
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
  return {DType::i32, std::move(shape), bytesOf(values)};
}

OperandTensor OperandTensor::wideIntegers(std::vector<int64_t> shape, const std::vector<int64_t> &values) {
  return {DType::i64, std::move(shape), bytesOf(values)};
}

OperandTensor OperandTensor::reals(DType element, std::vector<int64_t> shape, const std::vector<float> &values) {
  return taken(HostTensor::fromFloats(element, std::move(shape), values));
}

OperandTensor OperandTensor::randomNormal(DType element, std::vector<int64_t> shape, uint64_t seed,
                                          std::string_view name) {
  return taken(randomNormalTensor(element, std::move(shape), seed, name));
}

int64_t OperandTensor::elements() const { return elementsOf(shape).value(); }

const void *OperandTensor::address() const {
  static constexpr std::byte nothing{};
  return data->empty() ? &nothing : data->data();
}

int64_t OperandTensor::integer(int64_t index) const {
  if (element == DType::i32) // what nearly all of them are, and lists are read entry by entry
    return reinterpret_cast<const int32_t *>(data->data())[index];
  return loadElement<int64_t>(element, data->data(), index);
}

double OperandTensor::real(int64_t index) const { return loadElement<double>(element, data->data(), index); }

} // namespace heddle
