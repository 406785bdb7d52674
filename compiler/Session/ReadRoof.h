// Owns the read of device memory that rates of calls over caches are compared with: about 1 GiB, in order, every byte once,
// by a kernel that is compiled now. Ratios of one run are meaningful, rates are those of a GPU on a day.
#pragma once

#include "runtime/Device/Device.h"

namespace heddle {

class ReadRoof {
public:
  /// For an architecture as NVRTC calls it. unavailable: no NVRTC, or not enough device memory.
  static Result<ReadRoof> create(const Device &device, const std::string &arch);

  /// Queues one read on the default stream.
  Status launch() const;
  int64_t bytes() const { return memory.bytes(); }

private:
  ReadRoof(const Device &device, cuda::Function function, DeviceBuffer memory, DeviceBuffer kept)
      : device(device), function(function), memory(std::move(memory)), kept(std::move(kept)) {}
  Device device;
  cuda::Function function; // as long as the context
  DeviceBuffer memory, kept;
};

} // namespace heddle
