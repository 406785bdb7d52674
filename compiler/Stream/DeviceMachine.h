#pragma once

#include "compiler/Stream/HostStaging.h"
#include "compiler/Stream/RandomKernel.h"
#include "compiler/Stream/StreamMachine.h"
#include "runtime/Distributed/CudaShard.h"

#include <deque>
#include <optional>

namespace heddle {

/// Rows of a file and results go through pinned memory of the host; random rows are made where they are used, where the GPU has their type.
class DeviceMachine final : public StreamMachine {
public:
  /// `ofParts`: kernels of the pattern of parts, "forward" and "forward_fp32_out". `arch`: as NVRTC calls it. The source
  /// outlives the machine.
  static Result<std::unique_ptr<DeviceMachine>> create(const Device &device, const std::string &arch,
                                                       std::vector<Kernel> ofParts, const RowSource &source);

  ShardDevice &shard() override { return *onDevice; }
  const RowSource &source() const override { return rows; }
  Result<char *> allocate(uint64_t bytes) override;
  Status put(const void *from, uint64_t bytes, char *to) override;
  Status finish() override;
  Status take(const char *from, uint64_t bytes, void *to) override;
  const HostStaging &staging() const { return pieces; }

protected:
  Status fill(const RowBlock &block, char *to, Queue queue) override;

private:
  DeviceMachine(const Device &device, const RowSource &source, DeviceStream stream)
      : device(device), rows(source), random(dynamic_cast<const RandomRows *>(&source)), compute(std::move(stream)),
        pieces(device) {}
  /// What is enqueued next the other queues follow.
  cuda::Stream given() { return static_cast<cuda::Stream>(onDevice->stream(Queue::compute)); }

  Device device;
  const RowSource &rows;
  const RandomRows *random; ///< the source, if it is that
  std::optional<RandomKernel> kernel;
  DeviceStream compute;
  std::unique_ptr<CudaShard> onDevice;
  std::deque<DeviceBuffer> memory;
  HostStaging pieces; ///< behind what they are copied to
};

} // namespace heddle
