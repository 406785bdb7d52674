// Owns the kernel that makes the numbers of RandomRows in device memory.
#pragma once

#include "codegen/Nvrtc/KernelSource.h"
#include "compiler/Stream/RowSource.h"
#include "runtime/Device/Device.h"

namespace heddle {

/// Whether a GPU makes elements of the type; rows of others are made on the host.
bool isMadeOnDevice(DType dtype);

/// What NVRTC is given.
KernelSource randomKernelSource(DType dtype);

class RandomKernel {
public:
  /// Compiled now, for an architecture as NVRTC calls it. unavailable: no NVRTC.
  static Result<RandomKernel> compile(const Device &device, const std::string &arch, DType dtype);
  /// Enqueues a block of the source to memory of the device.
  Status make(const RandomRows &source, const RowBlock &block, char *to, cuda::Stream stream) const;

private:
  RandomKernel(const Device &device, cuda::Function function) : device(device), function(function) {}
  Device device;
  cuda::Function function; // as long as the context
};

} // namespace heddle
