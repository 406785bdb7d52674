// Owns what predicted times of calls over ranks are asked for: sizes of the whole, and how fast kernels, memory and links are.
#pragma once

#include "codegen/Target/GpuModel.h"
#include "runtime/Core/DType.h"
#include "runtime/Core/Kinds.h"

#include <algorithm>

namespace heddle {

struct RingRates {
  double linkGBps = 0, latencyUs = 0; ///< each way of a rank's link, of a message
  double tflops = 0;                  ///< of kernels, on kept pairs
  // What only the time of a plan knows (GroupTimes.h); 0: nothing is said of it.
  double launchUs = 0;   ///< of a launch behind the first one
  double memoryGBps = 0; ///< of device memory
  double tileTflops = 0; ///< of one processor of the GPU

  /// Of kernels at a rate on this GPU. A call's rate may be that of a GPU which is seldom full: a tile of it is as fast as
  /// kernels that fill it are.
  void setKernels(const GpuModel &gpu, double rate, double rateOfFullGpu) {
    memoryGBps = gpu.bandwidthGBps;
    tflops = rate;
    tileTflops = std::max(rate, rateOfFullGpu) / double(gpu.smCount);
  }
};

/// Of kernels, of launches (us), and of links between GPUs of a host (GB/s each way, us of a message): as two H200 and two
/// H100 take them (docs/distributed.md).
inline constexpr double kKernelEfficiency = 0.65, kLaunchUs = 40, kHostLinkGBps = 150, kHostLatencyUs = 10;
inline constexpr const char *kGpuOfRates = "h200";

/// What is computed on a plan of forward steps.
struct RingCall {
  Kind kind = {};
  int64_t batch = 1, heads = 1, kvHeads = 1, headDim = 128, valueDim = 128;
  DType dtype = kDefaultDType;
  RingRates rates = {};

  /// The bytes of k and v for one key of one of their heads.
  int64_t bytesOfKey() const { return batch * (headDim + valueDim) * dtypeBytes(dtype); }
  int64_t gradientBytesOfKey() const { return kind.isBackward() ? batch * (headDim + valueDim) * 4 : 0; }
};

} // namespace heddle
