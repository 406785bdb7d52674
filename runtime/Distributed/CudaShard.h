// Owns the streams of a rank's GPU, the caller's and two more, and which of the kernels a launch takes.
#pragma once

#include "runtime/Device/Kernel.h"
#include "runtime/Distributed/ShardDevice.h"

#include <array>
#include <string>
#include <vector>

namespace heddle {

class CudaShard : public ShardDevice {
public:
  // unsupported: the driver lacks a function.
  static Result<std::unique_ptr<CudaShard>> create(const Device &device);
  // What the next calls take: kernels of the pattern of parts, one of each kind that they need ("forward" and
  // "forward_fp32_out", or "backward_accumulate"), and a stream of the device's context.
  void serve(std::vector<Kernel> ofParts, cuda::Stream stream);

  // Something is enqueued there.
  void *stream(Queue queue) override { return take(queue); }
  bool isCaptured() const override;
  Status follow(Queue later, Queue earlier) override;
  Status letBegin(Queue begun) override;
  Status clear(void *address, uint64_t bytes, Queue queue) override;
  Status copy(const RowCopy &copy, Queue queue) override;
  Status copyAll(const std::vector<RowCopy> &copies, Queue queue) override;
  Status add(const RowSum &sum, Queue queue) override;
  Result<uint64_t> workspaceBytes(const KindText &kind, const heddle_attention_args &args) override;
  Status launch(const KindText &kind, const heddle_attention_args &args, Queue queue) override;

private:
  CudaShard(const Device &device, DeviceStream link, DeviceStream aside, DeviceEvent event)
      : device(device), link(std::move(link)), aside(std::move(aside)), event(std::move(event)) {}
  cuda::Stream streamOf(Queue queue) const {
    return queue == Queue::compute ? compute : queue == Queue::link ? link.handle() : aside.handle();
  }
  cuda::Stream take(Queue queue) {
    ++given[size_t(queue)];
    return streamOf(queue);
  }
  Result<const Kernel *> kernelOf(const KindText &kind) const;
  // Rows of `height` runs of bytes.
  struct Runs {
    const char *from;
    size_t fromPitch;
    char *to;
    size_t toPitch, width, height;
  };
  static void addRuns(const RowCopy &copy, std::vector<Runs> &all);
  Status copyRuns(const Runs &runs, cuda::Stream stream) const;
  Status copyAtOnce(const Runs *first, size_t count, cuda::Stream stream);
  void loadKernels();
  Result<cuda::Function> loaded(const std::string &text, const char *name) const;

  Device device;
  std::vector<Kernel> kernels;
  cuda::Stream compute = nullptr;
  DeviceStream link, aside;
  DeviceEvent event;
  cuda::Function adds = nullptr, copies = nullptr, pauses = nullptr; // null: the driver compiles no text
  Status whyNoAdds;
  // How much each queue was given, and how much of it another one has followed in this call.
  static constexpr size_t kQueues = 3;
  std::array<uint64_t, kQueues> given = {};
  std::array<std::array<uint64_t, kQueues>, kQueues> followed = {};
};

} // namespace heddle
