// Owns pairs of events around launches whose turn it is, and what becomes of their times. Neither waits nor locks: a time
// is read when a later launch has its turn, or when somebody asks for counters. Internal to runtime/Device.
#pragma once

#include "runtime/Core/Counters.h"
#include "runtime/Device/CudaDriver.h"

#include <atomic>

namespace heddle {

struct CallInputs;
struct DeviceState;
struct LoadedKernel;

class LaunchSampler {
public:
  // An event before the next launch on the stream. Null: this launch is not timed. The first launches that are have the
  // driver make the events. The context is current.
  class Sample;
  Sample *begin(const LoadedKernel &kernel, cuda::Stream stream, const CallInputs &call);
  // An event behind what was launched; nothing was if it failed.
  void end(const DeviceState &state, cuda::Stream stream, Sample &sample, bool isLaunched);
  // Reads the times of launches that have ended.
  void collect(const DeviceState &state);
  // Destroys the events.
  void close(const DeviceState &state);

private:
  enum Phase { isFree, isHeld, isUnderWay };

public:
  class Sample {
    friend class LaunchSampler;
    std::atomic<int> phase{isFree};
    cuda::Event events[2] = {};
    KernelRow *row = nullptr;
    DriftWatch *watch = nullptr; // null: no time of such a call is stored
  };

private:
  static constexpr int kSamples = 16;
  Sample samples[kSamples];
};

} // namespace heddle
