#include "compiler/Io/RandomTensor.h"
#include "runtime/Core/ParallelFor.h"

namespace heddle {

static constexpr uint64_t kStep = 0x9e3779b97f4a7c15ull;

[[gnu::always_inline]] static inline uint64_t mix(uint64_t x) {
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

// The sums of the first and third, and of the second and fourth field of 16 bits, in 32 bits each.
[[gnu::always_inline]] static inline uint64_t pairSums(uint64_t word) {
  constexpr uint64_t kFields = 0x0000ffff0000ffffull;
  return (word & kFields) + ((word >> 16) & kFields);
}

// Made of the words that follow `place`.
[[gnu::always_inline]] static inline float normalAt(uint64_t place) {
  const uint64_t sums =
      pairSums(mix(place + kStep)) + pairSums(mix(place + 2 * kStep)) + pairSums(mix(place + 3 * kStep));
  return static_cast<float>(static_cast<int32_t>((sums & 0xffffffff) + (sums >> 32)) - 6 * 65535) * 0x1p-16f;
}

[[gnu::always_inline]] static inline void normalsFrom(uint64_t place, int count, float *values) {
  for (int i = 0; i < count; ++i)
    values[i] = normalAt(place + 3 * kStep * uint64_t(i));
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512dq"))) static void normalsOfAvx512(uint64_t place, int count, float *values) {
  normalsFrom(place, count, values);
}
__attribute__((target("avx2"))) static void normalsOfAvx2(uint64_t place, int count, float *values) {
  normalsFrom(place, count, values);
}
#endif

RandomStream::RandomStream(uint64_t seed, std::string_view name) : base(mix(seed + kStep * (fnv1a64(name) | 1))) {}

uint64_t RandomStream::word(uint64_t i) const { return mix(base + kStep * (i + 1)); }

float RandomStream::normal(uint64_t element) const { return normalAt(base + 3 * kStep * element); }

void RandomStream::normals(uint64_t first, int count, float *values) const {
  const uint64_t place = base + 3 * kStep * first;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
    return normalsOfAvx512(place, count, values);
  if (__builtin_cpu_supports("avx2"))
    return normalsOfAvx2(place, count, values);
#endif
  normalsFrom(place, count, values);
}

HostTensor randomSigns(std::vector<int64_t> shape, uint64_t seed, std::string_view name) {
  HostTensor signs = HostTensor::zeros(kAccumulator, std::move(shape));
  const RandomStream stream(seed, name);
  for (int64_t i = 0; i < signs.elements(); ++i)
    signs.set(i, stream.word(uint64_t(i)) >> 63 ? -1.0f : 1.0f);
  return signs;
}

constexpr int64_t kPiece = int64_t(1) << 18; // elements that one thread makes at a time
constexpr int64_t kBatch = 2048;             // of them in a cache

HostTensor randomNormalTensor(DType dtype, std::vector<int64_t> shape, uint64_t seed, std::string_view name,
                              const std::function<void(double share)> &progress) {
  HostTensor tensor = HostTensor::zeros(dtype, std::move(shape));
  RandomStream stream(seed, name);
  const int64_t count = tensor.elements(), pieces = (count + kPiece - 1) / kPiece;
  parallelFor(pieces, threadCountFor(pieces, 0), [&](int worker, int64_t piece) {
    if (worker == 0 && progress)
      progress(double(piece) / double(pieces));
    const int64_t end = std::min(count, (piece + 1) * kPiece);
    float values[kBatch];
    for (int64_t i = piece * kPiece; i < end; i += kBatch) {
      const int batch = static_cast<int>(std::min(kBatch, end - i));
      stream.normals(static_cast<uint64_t>(i), batch, values);
      storeElements(dtype, values, batch, tensor.data.data(), i);
    }
  });
  return tensor;
}

} // namespace heddle
