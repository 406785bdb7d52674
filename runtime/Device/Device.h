// Owns the connection to one GPU context and the small helpers that the command line and the tuner need:
// memory, copies, streams, events. Everything returns a status that names the driver call and the driver's
// error. The driver library is opened at run time (runtime/Device/Driver.h); without it open() is unavailable.
#pragma once

#include "runtime/Core/KernelRecord.h"
#include "runtime/Core/Status.h"
#include "runtime/Device/CudaDriver.h"

#include <memory>

namespace heddle {

// What is known about a GPU; fixed while it is open.
struct DeviceInfo {
  DeviceIdentity identity;
  int ordinal = 0;
  int64_t driverVersion = 0; // 13000 is CUDA 13.0
  int64_t memoryBytes = 0;
  int64_t l2Bytes = 0;
  int64_t sharedBytesPerBlock = 0; // the most one block may opt in to
  int64_t clockKhz = 0;            // peak SM clock
  int64_t memoryClockKhz = 0;
  int64_t memoryBusBits = 0;
  std::string pciBusId; // "00000000:1b:00.0"

  DeviceRecord record() const; // for Store::recordDevice
};

struct DeviceState; // driver, context and loaded kernels; shared by everything that needs the context

// A copyable handle; the context lives until the last handle, kernel and buffer is gone. Thread safe.
class Device {
public:
  // `ordinal` -1: the GPU of the context that is current on this thread, or GPU 0. The current context is used
  // if it belongs to that GPU, else the primary context is retained. unavailable: no driver or no GPU;
  // notFound: no such ordinal (the message says how many there are).
  static Result<Device> open(int ordinal = -1);
  // The number of GPUs; unavailable without a driver.
  static Result<int> count();

  const DeviceInfo &info() const;
  const std::shared_ptr<DeviceState> &state() const { return shared; }

  // Waits until everything on the stream (null: the default stream) has finished.
  Status synchronize(cuda::Stream stream = nullptr) const;
  // Gives the GPU up for this process, because a kernel on it does not end: every later call that needs the context
  // fails with unavailable, and nothing that it holds is released, since the driver would wait for the kernel.
  void abandon() const;
  bool isAbandoned() const;
  // Free device memory in bytes, now.
  Result<int64_t> freeBytes() const;

private:
  explicit Device(std::shared_ptr<DeviceState> state) : shared(std::move(state)) {}
  std::shared_ptr<DeviceState> shared;
};

// Device memory, freed by the destructor. Move-only. An empty buffer has a null address.
class DeviceBuffer {
public:
  DeviceBuffer() = default;
  // Uninitialised memory, 256-byte aligned. unavailable if the GPU has not that much free.
  static Result<DeviceBuffer> allocate(const Device &device, int64_t bytes);
  DeviceBuffer(DeviceBuffer &&other) noexcept;
  DeviceBuffer &operator=(DeviceBuffer &&other) noexcept;
  ~DeviceBuffer();

  cuda::DevicePointer address() const { return pointer; }
  void *data() const { return reinterpret_cast<void *>(static_cast<uintptr_t>(pointer)); }
  int64_t bytes() const { return size; }

  // Copies and fills are ordered on the stream. Host memory must stay valid until then; copies of ordinary
  // (pageable) memory have finished with it on return. Ranges outside the buffer: invalidArgument.
  Status copyFrom(const void *host, int64_t bytes, int64_t offset = 0, cuda::Stream stream = nullptr);
  Status copyTo(void *host, int64_t bytes, int64_t offset = 0, cuda::Stream stream = nullptr) const;
  Status fillBytes(uint8_t value, cuda::Stream stream = nullptr);

private:
  std::shared_ptr<DeviceState> owner;
  cuda::DevicePointer pointer = 0;
  int64_t size = 0;
};

// A stream that does not wait for the default stream. Move-only.
class DeviceStream {
public:
  // urgent: blocks of its kernels go before those of other streams that wait for a place as well.
  static Result<DeviceStream> create(const Device &device, bool isUrgent = false);
  DeviceStream(DeviceStream &&other) noexcept;
  DeviceStream &operator=(DeviceStream &&other) noexcept;
  ~DeviceStream();
  cuda::Stream handle() const { return stream; }

private:
  DeviceStream() = default;
  std::shared_ptr<DeviceState> owner;
  cuda::Stream stream = nullptr;
};

// A point in a stream's work, with time. Move-only.
class DeviceEvent {
public:
  static Result<DeviceEvent> create(const Device &device);
  DeviceEvent(DeviceEvent &&other) noexcept;
  DeviceEvent &operator=(DeviceEvent &&other) noexcept;
  ~DeviceEvent();

  Status record(cuda::Stream stream = nullptr);
  Status synchronize() const;
  // Waits for at most so many seconds; false if the event was not reached by then.
  Result<bool> waitFor(double seconds) const;
  cuda::Event handle() const { return event; }
  // Microseconds from `earlier` to this one; both must have been recorded and reached.
  Result<double> elapsedUsSince(const DeviceEvent &earlier) const;

private:
  DeviceEvent() = default;
  std::shared_ptr<DeviceState> owner;
  cuda::Event event = nullptr;
};

} // namespace heddle
