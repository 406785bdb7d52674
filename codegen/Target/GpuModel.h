// Owns what the roofline assumes of a GPU. The rows stand in GpuArch.cpp, beside those of the
// architectures that they stand for.
#pragma once

#include "runtime/Core/CallShape.h"
#include "runtime/Core/Status.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace heddle {

/// Data-sheet rates of one GPU, for the roofline. Tensor rates are dense, with fp32 accumulation.
struct GpuModel {
  std::string_view name;     ///< lower case, as the command line takes it
  std::string_view fullName; ///< as the vendor and the driver print it
  std::string_view arch;     ///< best GpuArch::name for it
  int smCount;
  int clockMhz;         ///< the clock at which bf16Tflops holds
  double bandwidthGBps; ///< device memory, 1e9 bytes per second
  double bf16Tflops;    ///< 1e12 FLOP per second
  double fp8Tflops;     ///< likewise; 0: it has no such products
  int64_t l2Bytes;

  /// Of products of such elements. Exact ones of fp32 are three of 16-bit parts; where there are none of fp8, e4m3 becomes
  /// bf16.
  double matrixTflops(DType dtype, Precision precision = Precision::exact) const;
};

/// All rows; references stay valid for the life of the program.
const std::vector<GpuModel> &gpuModels();

/// The model called `name` (case, blanks and dashes do not matter), or the reference model of the
/// architecture called `name`. Unknown: a notFound status that lists both kinds of names.
Result<const GpuModel *> findGpuModel(std::string_view name);

} // namespace heddle
