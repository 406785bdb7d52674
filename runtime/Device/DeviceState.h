// Owns the context reference and the table of loaded kernels. Internal to runtime/Device. Everything that
// holds driver objects holds a shared pointer to it, so the context outlives them.
#pragma once

#include "runtime/Device/Device.h"
#include "runtime/Device/Driver.h"
#include "runtime/Device/LaunchSampler.h"

#include <atomic>
#include <map>
#include <mutex>

namespace heddle {

struct LoadedKernel;

struct DeviceState {
  const Driver *driver = nullptr;
  cuda::Context context = nullptr;
  cuda::DeviceOrdinal ordinal = 0;
  bool isPrimaryRetained = false;
  std::atomic<bool> isAbandoned{false}; // set once; nothing is asked of the driver from then on
  DeviceInfo info;
  std::atomic<int> graphCount{0}; // of prepared calls
  LaunchSampler sampler;

  std::mutex kernelsMutex; // guards kernels; held while a module loads, never during a launch
  std::map<std::string, std::weak_ptr<LoadedKernel>> kernels;

  DeviceState() = default;
  DeviceState(const DeviceState &) = delete;
  DeviceState &operator=(const DeviceState &) = delete;
  ~DeviceState();
};

// Makes the context current on this thread for its own lifetime; costs one query if it already is. Does nothing and
// fails once the device is abandoned.
class ContextScope {
public:
  explicit ContextScope(const DeviceState &state) : driver(*state.driver), isAbandoned(state.isAbandoned) {
    if (isAbandoned)
      return;
    cuda::Context current = nullptr;
    code = driver.ctxGetCurrent(&current);
    if (code != cuda::kSuccess || current == state.context)
      return;
    code = driver.ctxPushCurrent(state.context);
    isPushed = code == cuda::kSuccess;
  }
  ~ContextScope() {
    cuda::Context popped = nullptr;
    if (isPushed)
      driver.ctxPopCurrent(&popped);
  }
  ContextScope(const ContextScope &) = delete;
  ContextScope &operator=(const ContextScope &) = delete;

  bool isCurrent() const { return !isAbandoned && code == cuda::kSuccess; }
  Status status(const char *operation) const {
    if (isAbandoned)
      return Status::unavailable(std::string(operation) +
                                 ": this process has given the GPU up, a kernel on it does not end");
    return driver.check(code, operation, "cuCtxPushCurrent");
  }

private:
  const Driver &driver;
  const bool isAbandoned;
  cuda::Code code = cuda::kSuccess;
  bool isPushed = false;
};

// Reads the times of sampled launches on all GPUs that have ended.
void collectSamples();

// Streams that other threads capture meanwhile are not disturbed by what this thread does: load, make, destroy.
class RelaxedCapture {
public:
  explicit RelaxedCapture(const Driver &driver) : exchange(driver.threadExchangeStreamCaptureMode) {
    if (exchange)
      exchange(&mode);
  }
  ~RelaxedCapture() {
    if (exchange)
      exchange(&mode);
  }
  RelaxedCapture(const RelaxedCapture &) = delete;
  RelaxedCapture &operator=(const RelaxedCapture &) = delete;

private:
  decltype(Driver::threadExchangeStreamCaptureMode) exchange; // null: the driver is older than captures of its kind
  int mode = cuda::kCaptureModeRelaxed;                       // then that of before
};

} // namespace heddle
