//===- HostTensor.cpp --------------------------------------------------------===//
#include "compiler/Io/HostTensor.h"
#include <cassert>
#include <cstring>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensor files are little-endian and are read in place");

namespace heddle {

static uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float floatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Drops the low `count` bits of `value`, rounding to nearest, ties to even. 1 <= count <= 31.
static uint32_t dropBits(uint32_t value, int count) {
  uint32_t half = (1u << (count - 1)) - 1;
  return (value + half + ((value >> count) & 1)) >> count;
}

uint16_t floatToBf16(float value) {
  uint32_t bits = bitsOf(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>(dropBits(bits, 16));
}

float bf16ToFloat(uint16_t bits) { return floatOf(static_cast<uint32_t>(bits) << 16); }

uint16_t floatToFp16(float value) {
  uint32_t bits = bitsOf(value);
  uint32_t sign = (bits >> 16) & 0x8000;
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return static_cast<uint16_t>(sign | 0x7e00);
  if (magnitude >= 0x477ff000) // 65520, the first value that rounds to infinity
    return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude >= 0x38800000) // 2^-14, the smallest normal
    return static_cast<uint16_t>(sign | dropBits(magnitude - (112u << 23), 13));
  int exponent = static_cast<int>(magnitude >> 23);
  if (exponent < 102) // below 2^-25, half of the smallest subnormal
    return static_cast<uint16_t>(sign);
  uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;
  return static_cast<uint16_t>(sign | dropBits(mantissa, 126 - exponent));
}

float fp16ToFloat(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00)
    return floatOf(sign | 0x7f800000 | ((magnitude & 0x3ff) << 13));
  if (magnitude >= 0x400)
    return floatOf(sign | ((magnitude << 13) + (112u << 23)));
  float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
  return floatOf(sign | bitsOf(subnormal));
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

int64_t HostTensor::elements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

HostTensor HostTensor::zeros(DType dtype, std::vector<int64_t> shape) {
  HostTensor tensor{dtype, std::move(shape), {}};
  tensor.data.resize(static_cast<size_t>(tensor.elements() * dtypeBytes(dtype)));
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
