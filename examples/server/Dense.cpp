//===- Dense.cpp - what a model is made of beside attention -----------------===//
// Weights lie in panels of kLanes outputs. A panel meets all rows before the next one, four at a time, so that it is read
// from memory once.
//===----------------------------------------------------------------------===//
#include "Dense.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace server {

Linear::Linear(const std::vector<float> &weight, const std::vector<float> &bias, int64_t outputs, int64_t inputs)
    : outputCount(outputs), inputCount(inputs) {
  const int64_t panelCount = (outputs + kLanes - 1) / kLanes;
  panels.resize(size_t(panelCount * inputs), Lanes{});
  biases.resize(size_t(panelCount), Lanes{});
  const auto set = [](Lanes &lanes, int64_t output, float value) {
    std::memcpy(reinterpret_cast<char *>(&lanes) + output % kLanes * int64_t(sizeof(float)), &value, sizeof(value));
  };
  for (int64_t o = 0; o < outputs; ++o) {
    for (int64_t i = 0; i < inputs; ++i)
      set(panels[size_t(o / kLanes * inputs + i)], o, weight[size_t(o * inputs + i)]);
    if (!bias.empty())
      set(biases[size_t(o / kLanes)], o, bias[size_t(o)]);
  }
}

template <int kRows> void Linear::runPanel(int64_t panel, const float *x, float *y) const {
  Lanes sums[kRows];
  std::fill_n(sums, kRows, biases[size_t(panel)]);
  const Lanes *weight = &panels[size_t(panel * inputCount)];
  for (int64_t i = 0; i < inputCount; ++i)
    for (int row = 0; row < kRows; ++row) {
      const float value = x[row * inputCount + i];
      sums[row].low += value * weight[i].low;
      sums[row].high += value * weight[i].high;
    }
  const int64_t first = panel * kLanes, count = std::min(kLanes, outputCount - first);
  for (int row = 0; row < kRows; ++row)
    std::memcpy(y + row * outputCount + first, &sums[row], size_t(count) * sizeof(float));
}

void Linear::run(const float *x, int64_t rows, float *y) const {
  for (int64_t panel = 0; panel * kLanes < outputCount; ++panel) {
    int64_t row = 0;
    for (; row + 4 <= rows; row += 4)
      runPanel<4>(panel, x + row * inputCount, y + row * outputCount);
    for (; row < rows; ++row)
      runPanel<1>(panel, x + row * inputCount, y + row * outputCount);
  }
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
