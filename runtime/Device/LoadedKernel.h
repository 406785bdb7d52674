//===- LoadedKernel.h - a module in a context -------------------------------===//
// Owns the driver's module and everything about a kernel that does not change between calls. Internal to
// runtime/Device. Immutable after load, so launches share it without a lock.
#ifndef HEDDLE_RUNTIME_DEVICE_LOADEDKERNEL_H
#define HEDDLE_RUNTIME_DEVICE_LOADEDKERNEL_H

#include "runtime/Device/Arguments.h"
#include "runtime/Device/DeviceState.h"
#include "runtime/Device/Kernel.h"

namespace heddle {

struct LoadedKernel {
  explicit LoadedKernel(Device device) : device(std::move(device)) {}
  LoadedKernel(const LoadedKernel &) = delete;
  LoadedKernel &operator=(const LoadedKernel &) = delete;
  ~LoadedKernel();

  Device device;
  KernelRecord record; // without code
  LaunchPlan plan;
  CallRequirements needs;
  cuda::Module module = nullptr;
  cuda::Function function = nullptr;
  int64_t dynamicSharedLimit = 0;
  int64_t blockLimit = 0;
  bool isJitCompiled = false;
};

constexpr int64_t kMaxParamBlock = kMaxParamBytes; // LaunchPlan::validate holds plans to this
constexpr int kMaxClears = 8;

// One call, evaluated: everything the driver is told.
struct EvaluatedCall {
  struct Clear {
    cuda::DevicePointer address;
    uint32_t value;
    size_t words;
  };
  LaunchGeometry geometry;
  Clear clears[kMaxClears];
  int clearCount = 0;
  size_t paramBytes = 0;
  alignas(64) unsigned char params[kMaxParamBlock];
};

// Checks and evaluates into `call`; allocates only on failure. `checksWorkspace` false leaves out the checks of
// the workspace fields and the parameter block.
Status evaluateCall(const LoadedKernel &kernel, const AttentionArgs &args, bool checksWorkspace, EvaluatedCall &call);

// Makes the context current if need be, clears, launches.
Status launchCall(const LoadedKernel &kernel, const EvaluatedCall &call, cuda::Stream stream);

} // namespace heddle

#endif
