//===- Dense.h - what a model is made of beside attention -------------------===//
// On this machine's processors, in fp32. A row's bits do not depend on how many rows are computed with it: sums run in
// one order, and the example is compiled without contraction.
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <vector>

namespace server {

// y = x W^T + b for rows of x.
class Linear {
public:
  Linear() = default;
  // weight: [outputs, inputs], row-major; bias: of outputs, or empty.
  Linear(const std::vector<float> &weight, const std::vector<float> &bias, int64_t outputs, int64_t inputs);
  void run(const float *x, int64_t rows, float *y) const;
  int64_t outputs() const { return outputCount; }

private:
  // Eight outputs, as vectors that every compiler has.
  struct Lanes {
    float __attribute__((vector_size(16))) low, high;
  };
  static constexpr int64_t kLanes = 8;
  template <int kRows> void runPanel(int64_t panel, const float *x, float *y) const;

  int64_t outputCount = 0, inputCount = 0;
  std::vector<Lanes> panels; // [panel][input]: outputs beside each other, the last ones filled with zeros
  std::vector<Lanes> biases; // of each panel
};

// y = x / sqrt(mean(x^2) + eps) * weight, as torch.nn.RMSNorm of fp32.
void rmsNorm(const float *x, const std::vector<float> &weight, int64_t rows, float *y);

// In place, exact (erf).
void gelu(std::vector<float> &x, int64_t count);

} // namespace server
