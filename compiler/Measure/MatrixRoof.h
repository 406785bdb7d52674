// Owns the bf16 matrix product that attention rates are compared with: 8192 x 8192 x 8192 on random data through
// cuBLAS, which is opened at run time. A card under a power limit makes ratios of one run meaningful, not rates.
#pragma once

#include "runtime/Device/Device.h"

namespace heddle {

class MatrixRoof {
public:
  static constexpr int64_t kSize = 8192;

  /// unavailable: no cuBLAS (the message says where it was looked for); unavailable or internal: the GPU.
  static Result<MatrixRoof> create(const Device &device);
  MatrixRoof(MatrixRoof &&) noexcept;
  ~MatrixRoof();

  /// Queues one product on the default stream.
  Status launch();
  static double flops() { return 2.0 * kSize * kSize * kSize; }

private:
  struct Impl;
  explicit MatrixRoof(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace heddle
