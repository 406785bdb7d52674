// Owns the measurement of messages between GPUs, as a ring of ranks exchanges them: every GPU sends to the next one and
// receives from the one before, all at once, over the transport that runs of ranks use. Bytes are compared before
// anything is timed.
#pragma once

#include "runtime/Core/LinkRecord.h"
#include "runtime/Core/Status.h"

#include <string>
#include <vector>

namespace heddle {

struct LinkGpu {
  std::string name, pci, machine; ///< the same in all containers of a machine
};

struct LinkSample {
  int64_t bytes; ///< that every GPU sends, and receives
  double us;     ///< of the slowest GPU: the median of some rounds
  double gbps() const { return double(bytes) / us * 1e-3; }
};

struct LinkTimes {
  std::vector<LinkGpu> gpus; ///< by rank
  std::string nccl;          ///< its version
  std::vector<LinkSample> samples;
  double latencyUs = 0, gbps = 0; ///< what explains them best: us = latency + bytes / rate
};

/// The least sum of squares of relative errors; latency is not negative, and at most 15 sixteenths of the largest
/// message's time, or there is none. One sample has none.
void fitLinks(LinkTimes &times);

/// As a store keeps them.
LinkRecord recordOf(const LinkTimes &times);

/// Messages of each of `sizes`, on all GPUs that the driver sees, a thread each. unavailable: fewer than two GPUs, no
/// NCCL, no room; internal: what came is not what was sent.
Result<LinkTimes> measureLinks(const std::vector<int64_t> &sizes);

/// One of the processes that are the ranks, on one machine or many: on the GPU whose number is the rank's, counted round
/// among those that the driver sees. Rank 0 makes `meetingFile`, where all find it, and removes it. All ranks return the
/// same times.
struct LinkProcess {
  int32_t rank, ranks;
  std::string meetingFile;
};
/// As above, and invalidArgument: the file is there already; unavailable: rank 0 did not make it, or others did not
/// come, in time.
Result<LinkTimes> measureLinks(const std::vector<int64_t> &sizes, const LinkProcess &process);

} // namespace heddle
