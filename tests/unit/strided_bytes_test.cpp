// Which bytes strided tensors have, against counting them.
#include "runtime/Core/StridedBytes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

using namespace heddle;

namespace {

// The same numbers in every run.
class Numbers {
public:
  int64_t below(int64_t end) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return int64_t(state >> 33) % end;
  }

private:
  uint64_t state = 7;
};

heddle_tensor someTensor(Numbers &numbers, bool isPacked) {
  heddle_tensor made = {
      reinterpret_cast<void *>(uintptr_t(1000 + numbers.below(120))), HEDDLE_BF16, 0, {}, {0, 0, 0, 1}};
  for (int64_t &size : made.size)
    size = 1 + numbers.below(4);
  for (int dim = 0; dim < 3; ++dim)
    made.stride[dim] = isPacked ? 1 << (2 * (3 - dim)) : numbers.below(25) - 6;
  return made;
}

// How many elements have each byte.
std::map<int64_t, int> countsOf(const heddle_tensor &tensor, int64_t elementBytes) {
  std::map<int64_t, int> counts;
  for (int64_t i = 0; i < tensor.size[0] * tensor.size[1] * tensor.size[2] * tensor.size[3]; ++i) {
    int64_t at = int64_t(reinterpret_cast<uintptr_t>(tensor.ptr)), rest = i;
    for (int dim = 3; dim >= 0; rest /= tensor.size[dim--])
      at += rest % tensor.size[dim] * tensor.stride[dim] * elementBytes;
    for (int64_t byte = 0; byte < elementBytes; ++byte)
      ++counts[at + byte];
  }
  return counts;
}

bool shareAny(const std::map<int64_t, int> &a, const std::map<int64_t, int> &b) {
  return std::any_of(a.begin(), a.end(), [&](const auto &byte) { return b.count(byte.first) != 0; });
}

bool isDoubled(const std::map<int64_t, int> &counts) {
  return std::any_of(counts.begin(), counts.end(), [](const auto &byte) { return byte.second > 1; });
}

} // namespace

TEST_CASE("tensors that share a byte, and ones with two elements in one place, are those that the bytes say") {
  Numbers numbers;
  int sharing = 0, doubled = 0;
  for (int i = 0; i < 4000; ++i) {
    const int64_t bytes = 2 + 2 * (i % 2);
    const heddle_tensor a = someTensor(numbers, i % 3 == 0), b = someTensor(numbers, i % 3 != 1);
    const std::map<int64_t, int> ofA = countsOf(a, bytes), ofB = countsOf(b, 2);
    const StridedBytes bytesOfA = StridedBytes::ofTensor(a, bytes), bytesOfB = StridedBytes::ofTensor(b, 2);
    const bool shares = shareAny(ofA, ofB), isStepless = a.stride[0] == 0 || a.stride[1] == 0 || a.stride[2] == 0;
    REQUIRE(bytesOfA.sharesBytesWith(bytesOfB) == shares);
    REQUIRE(bytesOfB.sharesBytesWith(bytesOfA) == shares);
    if (!isStepless) // written tensors have none such
      REQUIRE(bytesOfA.overlapsItself() == isDoubled(ofA));
    sharing += shares, doubled += isDoubled(ofA);
  }
  CHECK(sharing > 500);
  CHECK(sharing < 3500);
  CHECK(doubled > 500);
}

TEST_CASE("empty tensors and null arrays share nothing") {
  Numbers numbers;
  heddle_tensor tensor = someTensor(numbers, true);
  const StridedBytes all = StridedBytes::ofArray(reinterpret_cast<void *>(uintptr_t(1)), 1 << 20);
  CHECK(StridedBytes::ofTensor(tensor, 2).sharesBytesWith(all));
  tensor.size[2] = 0;
  CHECK_FALSE(StridedBytes::ofTensor(tensor, 2).sharesBytesWith(all));
  CHECK_FALSE(StridedBytes::ofArray(nullptr, 100).sharesBytesWith(all));
}
