#include "runtime/Core/StridedBytes.h"

#include <algorithm>
#include <numeric>

namespace heddle {
namespace {

// Whether a sum of strides, each at most size - 1 times, is a number. Strides are above 0.
class SumOfStrides {
public:
  void add(int64_t stride, int64_t size) {
    if (size <= 1)
      return;
    for (int i = 0; i < count; ++i)
      if (terms[i].stride == stride) {
        terms[i].most += size - 1;
        return;
      }
    terms[count++] = {stride, size - 1};
  }

  bool reaches(int64_t sum) {
    std::sort(terms, terms + count, [](const Term &a, const Term &b) { return a.stride > b.stride; });
    for (int i = count; i-- > 0;) {
      mostFrom[i] = mostFrom[i + 1] + terms[i].stride * terms[i].most;
      divisorFrom[i] = std::gcd(divisorFrom[i + 1], terms[i].stride);
    }
    return reachesFrom(0, sum);
  }

private:
  struct Term {
    int64_t stride, most;
  };
  static constexpr int kMostTerms = 10;

  bool reachesFrom(int place, int64_t sum) {
    if (sum < 0 || sum > mostFrom[place])
      return false;
    if (place == count)
      return true;
    if (sum % divisorFrom[place] != 0)
      return false;
    if (--stepsLeft < 0)
      return true;
    const auto [stride, most] = terms[place];
    const int64_t least = std::max<int64_t>(0, (sum - mostFrom[place + 1] + stride - 1) / stride);
    for (int64_t times = least; times <= std::min(most, sum / stride); ++times)
      if (reachesFrom(place + 1, sum - times * stride))
        return true;
    return false;
  }

  Term terms[kMostTerms];
  int64_t mostFrom[kMostTerms + 1] = {}, divisorFrom[kMostTerms + 1] = {};
  int count = 0;
  int stepsLeft = 4096; // then the answer is yes
};

} // namespace

void StridedBytes::append(int64_t stride, int64_t size) {
  if (size == 1 || stride == 0)
    return;
  if (stride < 0)
    begin -= uintptr_t(-stride * (size - 1));
  else
    end += uintptr_t(stride * (size - 1));
  dims[count++] = {stride < 0 ? -stride : stride, size};
}

StridedBytes StridedBytes::ofTensor(const heddle_tensor &tensor, int64_t elementBytes) {
  StridedBytes bytes = ofArray(tensor.ptr, tensor.size[3] * elementBytes);
  for (int64_t size : tensor.size)
    if (size == 0)
      return ofArray(tensor.ptr, 0);
  for (int dim = 3; dim-- > 0;)
    bytes.append(tensor.stride[dim] * elementBytes, tensor.size[dim]);
  return bytes;
}

StridedBytes StridedBytes::ofArray(const void *address, int64_t size) {
  StridedBytes bytes;
  bytes.begin = reinterpret_cast<uintptr_t>(address);
  bytes.end = bytes.begin + uintptr_t(address ? size : 0);
  bytes.dims[0] = {1, size};
  bytes.count = 1;
  return bytes;
}

bool StridedBytes::sharesBytesWith(const StridedBytes &other) const {
  if (isEmpty() || other.isEmpty() || end <= other.begin || other.end <= begin)
    return false;
  // The sums of this one's strides and of the other's meet where those of both, the latter from its end, make this.
  SumOfStrides sums;
  int64_t sum = int64_t(other.begin - begin);
  for (int i = 0; i < count; ++i)
    sums.add(dims[i].stride, dims[i].size);
  for (int i = 0; i < other.count; ++i) {
    sums.add(other.dims[i].stride, other.dims[i].size);
    sum += other.dims[i].stride * (other.dims[i].size - 1);
  }
  return sums.reaches(sum);
}

// Two elements are steps apart, of which those along dimension `last` are the largest and go ahead; along the others
// they go either way.
bool StridedBytes::overlapsItself() const {
  Dim sorted[kMostDims];
  std::copy(dims, dims + count, sorted);
  std::sort(sorted, sorted + count, [](const Dim &a, const Dim &b) { return a.stride < b.stride; });
  int64_t spanned = 0;
  for (int last = 0; last < count; ++last) {
    const auto [stride, size] = sorted[last];
    if (stride <= spanned) {
      SumOfStrides sums;
      for (int i = 0; i < last; ++i)
        sums.add(sorted[i].stride, 2 * sorted[i].size - 1);
      sums.add(stride, size - 1);
      if (sums.reaches(stride * (size - 1) + spanned))
        return true;
    }
    spanned += stride * (size - 1);
  }
  return false;
}

} // namespace heddle
