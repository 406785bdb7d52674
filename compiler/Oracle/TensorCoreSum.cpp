#include "compiler/Oracle/TensorCoreSum.h"

#include <algorithm>
#include <cmath>

namespace heddle::oracle {

/// As scores of an H200 are off: by up to 5.3 in 8,000 of 128 channels where this says 5.3, 0.097 in 490 of 64 where it says 0.081.
TensorCoreSum tensorCoreSum(const float *a, const float *b, int64_t channels) {
  constexpr int64_t kTogether = 32;
  constexpr int kBitsBelow = 13;
  TensorCoreSum all;
  double &sum = all.sum;
  for (int64_t first = 0; first < channels; first += kTogether) {
    const int64_t last = std::min(first + kTogether, channels);
    double largest = std::abs(sum);
    for (int64_t c = first; c < last; ++c)
      largest = std::max(largest, std::abs(double(a[c]) * b[c]));
    if (largest == 0 || !std::isfinite(largest)) {
      for (int64_t c = first; c < last; ++c)
        sum += double(a[c]) * b[c];
      continue;
    }
    const double unit = std::ldexp(1.0, std::ilogb(largest) - kBitsBelow);
    double units = std::trunc(sum / unit);
    for (int64_t c = first; c < last; ++c)
      units += std::trunc(double(a[c]) * b[c] / unit);
    sum = units * unit;
    all.unit = std::max(all.unit, unit);
  }
  return all;
}

} // namespace heddle::oracle
