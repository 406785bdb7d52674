// Owns the streams of a rank's GPU, the caller's and two more, and which of the kernels a launch takes.
#pragma once

#include "runtime/Device/Kernel.h"
#include "runtime/Distributed/ShardDevice.h"

#include <vector>

namespace heddle {

class CudaShard : public ShardDevice {
public:
  // unsupported: the driver lacks a function.
  static Result<std::unique_ptr<CudaShard>> create(const Device &device);
  // What the next calls take: kernels of the pattern of parts, one of each kind that they need ("forward" and
  // "forward_fp32_out", or "backward_accumulate"), and a stream of the device's context.
  void serve(std::vector<Kernel> ofParts, cuda::Stream stream) { kernels = std::move(ofParts), compute = stream; }

  void *stream(Queue queue) override { return streamOf(queue); }
  bool isCaptured() const override;
  Status follow(Queue later, Queue earlier) override;
  Status clear(void *address, uint64_t bytes, Queue queue) override;
  Status copy(const RowCopy &copy, Queue queue) override;
  Status add(const RowSum &sum, Queue queue) override;
  Result<uint64_t> workspaceBytes(const KindText &kind, const heddle_attention_args &args) override;
  Status launch(const KindText &kind, const heddle_attention_args &args, Queue queue) override;

private:
  CudaShard(const Device &device, DeviceStream link, DeviceStream aside, DeviceEvent event)
      : device(device), link(std::move(link)), aside(std::move(aside)), event(std::move(event)) {}
  cuda::Stream streamOf(Queue queue) const {
    return queue == Queue::compute ? compute : queue == Queue::link ? link.handle() : aside.handle();
  }
  Result<const Kernel *> kernelOf(const KindText &kind) const;
  // Rows of `height` runs of bytes.
  Status copyRuns(const char *from, size_t fromPitch, char *to, size_t toPitch, size_t width, size_t height,
                  Queue queue) const;
  Result<cuda::Function> addRows();

  Device device;
  std::vector<Kernel> kernels;
  cuda::Stream compute = nullptr;
  DeviceStream link, aside;
  DeviceEvent event;
  cuda::Function adds = nullptr; // loaded when it is first needed
};

} // namespace heddle
