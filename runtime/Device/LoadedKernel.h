// Owns the driver's modules and everything about a kernel that does not change between calls. Internal to
// runtime/Device. Immutable after load, so launches share it without a lock.
#pragma once

#include "runtime/Core/Counters.h"
#include "runtime/Device/Arguments.h"
#include "runtime/Device/DeviceState.h"
#include "runtime/Device/Kernel.h"

#include <vector>

namespace heddle {

// The code of one launch of the plan.
struct LoadedCode {
  cuda::Module module = nullptr; // null: that of the first launch
  cuda::Function function = nullptr;
  int64_t dynamicSharedLimit = 0;
  int64_t blockLimit = 0;
};

struct LoadedKernel {
  explicit LoadedKernel(Device device) : device(std::move(device)) {}
  LoadedKernel(const LoadedKernel &) = delete;
  LoadedKernel &operator=(const LoadedKernel &) = delete;
  ~LoadedKernel();

  Device device;
  KernelRecord record; // without code
  LaunchPlan plan;
  CallRequirements needs;
  std::vector<LoadedCode> codes; // of the plan's launches
  bool hasTensorMaps = false;
  bool isJitCompiled = false;
  KernelRow *row = nullptr; // what is counted
};

constexpr int64_t kMaxParamBlock = kMaxParamBytes; // of all launches; LaunchPlan::validate holds plans to this
constexpr int kMaxClears = 16;                     // of all launches

// One launch of a call: what the driver is told beside the clears and parameters of EvaluatedCall.
struct EvaluatedLaunch {
  LaunchGeometry geometry;
  int clearEnd = 0; // behind its clears, which begin where those of the launch before end
  size_t paramBegin = 0, paramBytes = 0;
};

// Room for the parameters of any call.
struct ParamRoom {
  alignas(kParamAlignment) unsigned char bytes[kMaxParamBlock];
};

// One call, evaluated into room that belongs to another and outlives it.
struct EvaluatedCall {
  explicit EvaluatedCall(unsigned char *params) : params(params) {}
  struct Clear {
    cuda::DevicePointer address;
    uint32_t value;
    size_t words;
  };
  EvaluatedLaunch launches[kMaxLaunches];
  Clear clears[kMaxClears];
  int clearCount = 0;
  unsigned char *params;
};

// The checked arguments of a call and the rounds in which its launches are made.
struct CheckedCall {
  CallInputs inputs;
  int64_t roundRows = 0;
  int64_t rounds = 1; // at least one
};

// Does not look at the workspace. Allocates only on failure.
Status checkCall(const LoadedKernel &kernel, const AttentionArgs &args, CheckedCall &checked);

// Evaluates one round into `call`, after a check of the workspace fields; allocates only on failure. The same round
// gives the same result.
Status evaluateRound(const LoadedKernel &kernel, const CheckedCall &checked, int64_t round, EvaluatedCall &call);

// Makes the context current if need be; clears and launches, in the plan's order.
Status launchCall(const LoadedKernel &kernel, const EvaluatedCall &call, cuda::Stream stream);

// Writes the encoded map to `slot`. A dimension of size 1 takes any stride. A refusal of the driver comes with all
// values and the limit that they break. Allocates only on failure.
Status encodeTensorMap(const LoadedKernel &kernel, const CallInputs &inputs, const TensorMapSpec &spec,
                       unsigned char *slot);

// invalidArgument if the driver is sure that kernels in this context cannot reach one of the addresses: memory of
// another GPU without access from this one, memory that was freed, host memory that no GPU sees. The context is
// current.
Status checkAddresses(const LoadedKernel &kernel, const CallInputs &inputs);

// `failure`, or invalidArgument if the stream belongs to another context than the kernel. `code` is what the driver
// said.
Status explainRefusal(const LoadedKernel &kernel, cuda::Stream stream, cuda::Code code, Status failure);

} // namespace heddle
