// Owns the one place that reads the environment: HEDDLE_CUDA_DRIVER_LIBRARY names the library to open
// instead of libcuda.so.1. A library is opened and initialised once per process and never closed.
#pragma once

#include "runtime/Core/Status.h"
#include "runtime/Device/CudaDriver.h"

namespace heddle {

// The driver's functions. Immutable after open; thread safe.
struct Driver {
#define HEDDLE_DECLARE(member, symbol, ...) cuda::Code (*member)(__VA_ARGS__) = nullptr;
  using Code = cuda::Code;
  using DeviceOrdinal = cuda::DeviceOrdinal;
  using DevicePointer = cuda::DevicePointer;
  using Context = cuda::Context;
  using Module = cuda::Module;
  using Function = cuda::Function;
  using Stream = cuda::Stream;
  using Event = cuda::Event;
  using TensorMap = cuda::TensorMap;
  using Graph = cuda::Graph;
  using GraphNode = cuda::GraphNode;
  using GraphExec = cuda::GraphExec;
  using UserObject = cuda::UserObject;
  using HostFunction = cuda::HostFunction;
  using KernelNodeParams = cuda::KernelNodeParams;
  using MemsetNodeParams = cuda::MemsetNodeParams;
  using Copy2D = cuda::Copy2D;
  using MemPool = cuda::MemPool;
  using MemPoolProps = cuda::MemPoolProps;
  HEDDLE_CUDA_FUNCTIONS(HEDDLE_DECLARE)
  HEDDLE_CUDA_OPTIONAL_FUNCTIONS(HEDDLE_DECLARE)
#undef HEDDLE_DECLARE
  int version = 0; // 13000 is CUDA 13.0

  // unavailable: no such library, a symbol missing, or no GPU behind it; the message says which. The pointer
  // is valid until the end of the process. A failure is not remembered.
  static Result<const Driver *> open();

  // "load: cuModuleLoadDataEx failed: CUDA_ERROR_INVALID_IMAGE (device kernel image is invalid)" with the code
  // that fits: unavailable for missing GPUs and memory, internal for the rest. Ok for kSuccess.
  Status check(cuda::Code code, const char *operation, const char *call) const;
};

} // namespace heddle
