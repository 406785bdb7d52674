//===- LinkTimes.h - what links between GPUs carry --------------*- C++ -*-===//
// Owns the measurement of messages between the GPUs of this machine, as a ring of ranks exchanges them: every GPU sends
// to the next one and receives from the one before, all at once, over the transport that runs of ranks use. Bytes are
// compared before anything is timed.
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Device/Device.h"

#include <vector>

namespace heddle {

struct LinkSample {
  int64_t bytes; ///< that every GPU sends, and receives
  double us;     ///< of the slowest GPU: the median of some rounds
  double gbps() const { return double(bytes) / us * 1e-3; }
};

struct LinkTimes {
  std::vector<DeviceInfo> gpus; ///< by rank
  std::string nccl;             ///< its version
  std::vector<LinkSample> samples;
  double latencyUs = 0, gbps = 0; ///< what explains them best: us = latency + bytes / rate
};

/// The least sum of squares of relative errors; latency is not negative. One sample has none.
void fitLinks(LinkTimes &times);

/// Messages of each of `sizes`, on all GPUs that the driver sees, a thread each. unavailable: fewer than two GPUs, no
/// NCCL, no room; internal: what came is not what was sent.
Result<LinkTimes> measureLinks(const std::vector<int64_t> &sizes);

} // namespace heddle
