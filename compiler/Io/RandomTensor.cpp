//===- RandomTensor.cpp -------------------------------------------------------===//
#include "compiler/Io/RandomTensor.h"
#include "runtime/Core/ParallelFor.h"

namespace heddle {

static constexpr uint64_t kStep = 0x9e3779b97f4a7c15ull;

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

static uint64_t fnv1a64(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return hash;
}

static int32_t sumOfFields(uint64_t word) {
  return static_cast<int32_t>((word & 0xffff) + ((word >> 16) & 0xffff) + ((word >> 32) & 0xffff) + (word >> 48));
}

RandomStream::RandomStream(uint64_t seed, std::string_view name) : base(mix(seed + kStep * (fnv1a64(name) | 1))) {}

uint64_t RandomStream::word(uint64_t i) const { return mix(base + kStep * (i + 1)); }

float RandomStream::normal(uint64_t element) const {
  int32_t sum =
      sumOfFields(word(3 * element)) + sumOfFields(word(3 * element + 1)) + sumOfFields(word(3 * element + 2));
  return static_cast<float>(sum - 6 * 65535) * 0x1p-16f;
}

constexpr int64_t kPiece = int64_t(1) << 18; // elements that one thread makes at a time

HostTensor randomNormalTensor(DType dtype, std::vector<int64_t> shape, uint64_t seed, std::string_view name) {
  HostTensor tensor = HostTensor::zeros(dtype, std::move(shape));
  RandomStream stream(seed, name);
  const int64_t count = tensor.elements(), pieces = (count + kPiece - 1) / kPiece;
  parallelFor(pieces, threadCountFor(pieces, 0), [&](int, int64_t piece) {
    for (int64_t i = piece * kPiece, end = std::min(count, i + kPiece); i < end; ++i)
      tensor.set(i, stream.normal(static_cast<uint64_t>(i)));
  });
  return tensor;
}

} // namespace heddle
