#include "compiler/Stream/DeviceMachine.h"
#include "runtime/Device/DeviceState.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr const char *kWhat = "streamed call";

} // namespace

Result<std::unique_ptr<DeviceMachine>> DeviceMachine::create(const Device &device, const std::string &arch,
                                                             std::vector<Kernel> ofParts, const RowSource &source) {
  HEDDLE_ASSIGN(DeviceStream stream, DeviceStream::create(device));
  std::unique_ptr<DeviceMachine> machine(new DeviceMachine(device, source, std::move(stream)));
  HEDDLE_ASSIGN(machine->onDevice, CudaShard::create(device));
  machine->onDevice->serve(std::move(ofParts), machine->compute.handle());
  if (machine->random && isMadeOnDevice(source.dtype)) {
    HEDDLE_ASSIGN(machine->kernel, RandomKernel::compile(device, arch, source.dtype));
  }
  return machine;
}

Result<char *> DeviceMachine::allocate(uint64_t bytes) {
  HEDDLE_ASSIGN(DeviceBuffer buffer, DeviceBuffer::allocate(device, int64_t(bytes)));
  memory.push_back(std::move(buffer));
  return static_cast<char *>(memory.back().data());
}

/// The memory of the host is ordinary, and free again on return.
Status DeviceMachine::put(const void *from, uint64_t bytes, char *to) {
  if (!bytes)
    return {};
  const DeviceState &state = *device.state();
  const auto place = cuda::DevicePointer(reinterpret_cast<uintptr_t>(to));
  {
    ContextScope scope(state);
    HEDDLE_TRY(scope.status(kWhat));
    HEDDLE_TRY(
        state.driver->check(state.driver->memcpyToDevice(place, from, bytes, given()), kWhat, "cuMemcpyHtoDAsync"));
  }
  return finish();
}

Status DeviceMachine::finish() { return device.synchronize(compute.handle()); }

Status DeviceMachine::take(const char *from, uint64_t bytes, void *to) {
  return pieces.take(from, bytes, static_cast<char *>(to), given());
}

Status DeviceMachine::fill(const RowBlock &block, char *to, Queue queue) {
  const auto stream = static_cast<cuda::Stream>(onDevice->stream(queue));
  if (kernel)
    return kernel->make(*random, block, to, stream);
  const int64_t rowBytes =
      std::max<int64_t>(1, rows.bytesOf(block) / std::max<int64_t>(1, block.batches * block.rows.count));
  const int64_t most = std::max<int64_t>(1, int64_t(HostStaging::kPieceBytes) / rowBytes);
  for (int64_t batch = 0; batch < block.batches; ++batch)
    for (int64_t first = 0; first < block.rows.count; first += most) {
      RowBlock part = block;
      part.firstBatch += batch, part.batches = 1;
      part.rows.first += first * part.rows.rate, part.rows.count = std::min(most, block.rows.count - first);
      const auto bytes = uint64_t(rows.bytesOf(part));
      HEDDLE_TRY(pieces.give(bytes, [&](char *piece) { return rows.read(part, piece); }, to, stream));
      to += bytes;
    }
  return {};
}

} // namespace heddle
