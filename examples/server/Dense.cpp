//===- Dense.cpp - what a model is made of beside attention -----------------===//
// Weights lie in panels of kLanes outputs, so that compilers make vectors of the innermost loop; four rows share a read of
// them.
//===----------------------------------------------------------------------===//
#include "Dense.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace server {
namespace {

constexpr int64_t kLanes = 8;

} // namespace

Linear::Linear(const std::vector<float> &weight, const std::vector<float> &bias, int64_t outputs, int64_t inputs)
    : outputCount(outputs), inputCount(inputs) {
  const int64_t padded = (outputs + kLanes - 1) / kLanes * kLanes;
  panels.assign(size_t(padded * inputs), 0);
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t i = 0; i < inputs; ++i)
      panels[size_t((o / kLanes * inputs + i) * kLanes + o % kLanes)] = weight[size_t(o * inputs + i)];
  biases = bias;
  biases.resize(size_t(padded), 0);
}

template <int kRows> void Linear::runPanel(const float *x, int64_t panel, float *y) const {
  float sums[kRows][kLanes];
  for (int row = 0; row < kRows; ++row)
    std::copy_n(&biases[size_t(panel * kLanes)], kLanes, sums[row]);
  const float *weight = &panels[size_t(panel * inputCount * kLanes)];
  for (int64_t i = 0; i < inputCount; ++i, weight += kLanes)
    for (int row = 0; row < kRows; ++row) {
      const float value = x[row * inputCount + i];
      for (int64_t lane = 0; lane < kLanes; ++lane)
        sums[row][lane] += value * weight[lane];
    }
  const int64_t first = panel * kLanes, count = std::min(kLanes, outputCount - first);
  for (int row = 0; row < kRows; ++row)
    std::copy_n(sums[row], count, y + row * outputCount + first);
}

template <int kRows> void Linear::runRows(const float *x, float *y) const {
  for (int64_t panel = 0; panel * kLanes < outputCount; ++panel)
    runPanel<kRows>(x, panel, y);
}

void Linear::run(const float *x, int64_t rows, float *y) const {
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4)
    runRows<4>(x + row * inputCount, y + row * outputCount);
  for (; row < rows; ++row)
    runRows<1>(x + row * inputCount, y + row * outputCount);
}

void rmsNorm(const float *x, const std::vector<float> &weight, int64_t rows, float *y) {
  const size_t dim = weight.size();
  for (int64_t row = 0; row < rows; ++row, x += dim, y += dim) {
    float sum = 0;
    for (size_t i = 0; i < dim; ++i)
      sum += x[i] * x[i];
    const float scale = 1 / std::sqrt(sum / float(dim) + std::numeric_limits<float>::epsilon());
    for (size_t i = 0; i < dim; ++i)
      y[i] = x[i] * scale * weight[i];
  }
}

void gelu(std::vector<float> &x, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    x[size_t(i)] *= 0.5f * (1 + std::erf(x[size_t(i)] * 0.70710678f));
}

} // namespace server
