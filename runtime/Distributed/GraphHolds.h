// Owns how many graphs of the driver hold work of a communicator: NCCL ends none, not even by ncclCommAbort, before the last
// of these graphs is destroyed, and waits for that as long as it takes.
#pragma once

#include "runtime/Device/Device.h"

#include <atomic>
#include <memory>

namespace heddle {

// Used by one thread at a time, but for isHeld().
class GraphHolds {
public:
  // The graph that the stream is captured into, and what is instantiated from it, hold until they are destroyed. Where the driver
  // does not tell when that is (before CUDA 12.3) they do for good.
  Status add(const Device &device, cuda::Stream stream);
  bool isHeld() const { return *count > 0; }

private:
  std::shared_ptr<std::atomic<int>> count = std::make_shared<std::atomic<int>>(0);
  uint64_t last = 0; // capture
};

} // namespace heddle
