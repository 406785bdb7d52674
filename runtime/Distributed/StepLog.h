// Owns what is known of enqueued steps: which peers each exchanges with, whether the work before it is done, so that it
// waits for them, and whether it is done itself. Events are used again; nothing is allocated on the GPU.
#pragma once

#include "runtime/Device/Device.h"

#include <deque>
#include <vector>

namespace heddle {

struct LoggedStep {
  int64_t number; // from 0, of this rank
  std::vector<int32_t> peers;
  DeviceEvent begin, end;
  bool hasBegun = false; // the stream has come to it
};

class StepLog {
public:
  explicit StepLog(const Device &device) : device(device) {}

  // A step between these two is `unfinished` until the stream is behind it.
  Status begin(std::vector<int32_t> peers, cuda::Stream stream);
  Status end(cuda::Stream stream);

  // Asks the GPU; whether anything has happened since it was asked before.
  Result<bool> update();
  size_t unfinishedSteps() const { return steps.size(); }
  // The oldest one; null: all are done.
  const LoggedStep *unfinished() const { return steps.empty() ? nullptr : &steps.front(); }

private:
  Device device;
  std::deque<LoggedStep> steps; // ascending
  std::vector<DeviceEvent> spare;
  int64_t count = 0;

  Result<DeviceEvent> takeEvent();
};

} // namespace heddle
