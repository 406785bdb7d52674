#include "runtime/Device/DeviceState.h"

#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

namespace heddle {
namespace {

struct Attribute {
  int number;
  int64_t *value;
};

Status readInfo(const Driver &driver, cuda::DeviceOrdinal ordinal, DeviceInfo &info) {
  constexpr const char *kOperation = "open device";
  char name[256] = {};
  HEDDLE_TRY(driver.check(driver.deviceGetName(name, sizeof(name) - 1, ordinal), kOperation, "cuDeviceGetName"));
  size_t memory = 0;
  HEDDLE_TRY(driver.check(driver.deviceTotalMem(&memory, ordinal), kOperation, "cuDeviceTotalMem"));
  int64_t major = 0, minor = 0, pciDomain = 0, pciBus = 0, pciDevice = 0;
  const Attribute attributes[] = {{cuda::kAttributeComputeMajor, &major},
                                  {cuda::kAttributeComputeMinor, &minor},
                                  {cuda::kAttributeMultiprocessorCount, &info.identity.smCount},
                                  {cuda::kAttributeL2CacheSize, &info.l2Bytes},
                                  {cuda::kAttributeMaxSharedPerBlockOptin, &info.sharedBytesPerBlock},
                                  {cuda::kAttributeClockRate, &info.clockKhz},
                                  {cuda::kAttributeMemoryClockRate, &info.memoryClockKhz},
                                  {cuda::kAttributeGlobalMemoryBusWidth, &info.memoryBusBits},
                                  {cuda::kAttributePciDomainId, &pciDomain},
                                  {cuda::kAttributePciBusId, &pciBus},
                                  {cuda::kAttributePciDeviceId, &pciDevice}};
  for (const Attribute &attribute : attributes) {
    int value = 0;
    HEDDLE_TRY(
        driver.check(driver.deviceGetAttribute(&value, attribute.number, ordinal), kOperation, "cuDeviceGetAttribute"));
    *attribute.value = value;
  }
  char busId[32];
  std::snprintf(busId, sizeof busId, "%08x:%02x:%02x.0", unsigned(pciDomain), unsigned(pciBus), unsigned(pciDevice));
  info.pciBusId = busId;
  info.ordinal = ordinal;
  info.driverVersion = driver.version;
  info.memoryBytes = int64_t(memory);
  info.identity.deviceName = name;
  info.identity.arch = "sm_" + std::to_string(major * 10 + minor);
  info.identity.memoryGib = (info.memoryBytes + (int64_t(1) << 29)) >> 30;
  return {};
}

// Sets the context of `state`: the current one if it belongs to `ordinal` (any GPU for -1), else the primary.
Status attach(DeviceState &state, int ordinal) {
  const Driver &driver = *state.driver;
  cuda::Context current = nullptr;
  HEDDLE_TRY(driver.check(driver.ctxGetCurrent(&current), "open device", "cuCtxGetCurrent"));
  cuda::DeviceOrdinal currentOrdinal = -1;
  if (current)
    HEDDLE_TRY(driver.check(driver.ctxGetDevice(&currentOrdinal), "open device", "cuCtxGetDevice"));
  cuda::DeviceOrdinal wanted = currentOrdinal;
  if (ordinal >= 0 || !current)
    HEDDLE_TRY(driver.check(driver.deviceGet(&wanted, ordinal < 0 ? 0 : ordinal), "open device", "cuDeviceGet"));
  state.ordinal = wanted;
  if (current && wanted == currentOrdinal) {
    state.context = current;
    return {};
  }
  HEDDLE_TRY(driver.check(driver.primaryCtxRetain(&state.context, wanted), "open device", "cuDevicePrimaryCtxRetain"));
  state.isPrimaryRetained = true;
  return {};
}

struct States {
  std::mutex mutex; // guards the other
  std::map<cuda::Context, std::weak_ptr<DeviceState>> byContext;
};

States &states() {
  static auto *all = new States; // outlives static destructors
  return *all;
}

// One state per context, so that kernels are loaded once however often the device is opened.
std::shared_ptr<DeviceState> shareState(std::shared_ptr<DeviceState> fresh) {
  std::lock_guard<std::mutex> lock(states().mutex);
  std::weak_ptr<DeviceState> &entry = states().byContext[fresh->context];
  std::shared_ptr<DeviceState> existing = entry.lock();
  if (existing && existing->driver == fresh->driver) {
    if (!existing->isPrimaryRetained) // its context was current, and its owner may release it
      std::swap(existing->isPrimaryRetained, fresh->isPrimaryRetained);
    return existing; // a second reference to the primary context goes with `fresh`
  }
  entry = fresh;
  return fresh;
}

// Runs one driver call with the context current.
template <class F> Status inContext(const DeviceState &state, const char *operation, const char *call, F &&f) {
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(operation));
  return state.driver->check(f(*state.driver), operation, call);
}

Status checkRange(const char *operation, int64_t offset, int64_t bytes, int64_t size) {
  if (offset >= 0 && bytes >= 0 && offset <= size && bytes <= size - offset)
    return {};
  return Status::invalidArgument(std::string(operation) + ": " + std::to_string(bytes) + " bytes at offset " +
                                 std::to_string(offset) + " leave the buffer of " + std::to_string(size) + " bytes");
}

} // namespace

DeviceState::~DeviceState() {
  if (isAbandoned)
    return;
  sampler.close(*this);
  if (isPrimaryRetained)
    driver->primaryCtxRelease(ordinal);
}

void collectSamples() {
  std::vector<std::shared_ptr<DeviceState>> open; // released when the lock is
  std::lock_guard<std::mutex> lock(states().mutex);
  for (auto &[context, known] : states().byContext)
    if (std::shared_ptr<DeviceState> state = known.lock()) {
      ContextScope scope(*state);
      if (scope.status("collect samples").isOk())
        state->sampler.collect(*state);
      open.push_back(std::move(state));
    }
}

DeviceRecord DeviceInfo::record() const {
  DeviceRecord row;
  static_cast<DeviceIdentity &>(row) = identity;
  row.driverVersion = driverVersion;
  row.l2Bytes = l2Bytes;
  return row;
}

Result<int> Device::count() {
  HEDDLE_ASSIGN(const Driver *driver, Driver::open());
  int count = 0;
  HEDDLE_TRY(driver->check(driver->deviceGetCount(&count), "count devices", "cuDeviceGetCount"));
  return count;
}

Result<Device> Device::open(int ordinal) {
  HEDDLE_ASSIGN(int deviceCount, count());
  if (deviceCount == 0)
    return Status::unavailable("open device: the driver sees no GPU");
  if (ordinal >= deviceCount)
    return Status::notFound("open device: no GPU number " + std::to_string(ordinal) + ", expected 0 to " +
                            std::to_string(deviceCount - 1));
  auto state = std::make_shared<DeviceState>();
  HEDDLE_ASSIGN(state->driver, Driver::open());
  HEDDLE_TRY(attach(*state, ordinal));
  HEDDLE_TRY(readInfo(*state->driver, state->ordinal, state->info));
  return Device(shareState(std::move(state)));
}

const DeviceInfo &Device::info() const { return shared->info; }

Status Device::synchronize(cuda::Stream stream) const {
  return inContext(*shared, "synchronize", "cuStreamSynchronize",
                   [&](const Driver &driver) { return driver.streamSynchronize(stream); });
}

void Device::abandon() const { shared->isAbandoned = true; }

bool Device::isAbandoned() const { return shared->isAbandoned; }

Result<int64_t> Device::freeBytes() const {
  size_t available = 0, total = 0;
  HEDDLE_TRY(inContext(*shared, "free memory", "cuMemGetInfo",
                       [&](const Driver &driver) { return driver.memGetInfo(&available, &total); }));
  return int64_t(available);
}

Result<DeviceBuffer> DeviceBuffer::allocate(const Device &device, int64_t bytes) {
  if (bytes < 0)
    return Status::invalidArgument("allocate: expected a size of at least 0, got " + std::to_string(bytes));
  DeviceBuffer buffer;
  buffer.owner = device.state();
  if (bytes == 0)
    return buffer;
  std::string operation = "allocate " + std::to_string(bytes) + " bytes";
  HEDDLE_TRY(inContext(*buffer.owner, operation.c_str(), "cuMemAlloc",
                       [&](const Driver &driver) { return driver.memAlloc(&buffer.pointer, size_t(bytes)); }));
  buffer.size = bytes;
  return buffer;
}

DeviceBuffer::DeviceBuffer(DeviceBuffer &&other) noexcept { *this = std::move(other); }

DeviceBuffer &DeviceBuffer::operator=(DeviceBuffer &&other) noexcept {
  std::swap(owner, other.owner);
  std::swap(pointer, other.pointer);
  std::swap(size, other.size);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (!pointer || owner->isAbandoned)
    return;
  ContextScope scope(*owner);
  owner->driver->memFree(pointer);
}

Status DeviceBuffer::copyFrom(const void *host, int64_t bytes, int64_t offset, cuda::Stream stream) {
  HEDDLE_TRY(checkRange("copy to device", offset, bytes, size));
  if (bytes == 0)
    return {};
  return inContext(*owner, "copy to device", "cuMemcpyHtoDAsync", [&](const Driver &driver) {
    return driver.memcpyToDevice(pointer + cuda::DevicePointer(offset), host, size_t(bytes), stream);
  });
}

Status DeviceBuffer::copyTo(void *host, int64_t bytes, int64_t offset, cuda::Stream stream) const {
  HEDDLE_TRY(checkRange("copy to host", offset, bytes, size));
  if (bytes == 0)
    return {};
  return inContext(*owner, "copy to host", "cuMemcpyDtoHAsync", [&](const Driver &driver) {
    return driver.memcpyToHost(host, pointer + cuda::DevicePointer(offset), size_t(bytes), stream);
  });
}

Status DeviceBuffer::fillBytes(uint8_t value, cuda::Stream stream) {
  if (size == 0)
    return {};
  return inContext(*owner, "fill", "cuMemsetD8Async",
                   [&](const Driver &driver) { return driver.memsetBytes(pointer, value, size_t(size), stream); });
}

Result<DeviceStream> DeviceStream::create(const Device &device, bool isUrgent) {
  constexpr int kUsual = 0, kMostUrgent = -1000; // clamped to the range of the GPU
  DeviceStream result;
  result.owner = device.state();
  HEDDLE_TRY(inContext(*result.owner, "create stream", "cuStreamCreateWithPriority", [&](const Driver &driver) {
    return driver.streamCreate(&result.stream, cuda::kStreamNonBlocking, isUrgent ? kMostUrgent : kUsual);
  }));
  return result;
}

DeviceStream::DeviceStream(DeviceStream &&other) noexcept { *this = std::move(other); }

DeviceStream &DeviceStream::operator=(DeviceStream &&other) noexcept {
  std::swap(owner, other.owner);
  std::swap(stream, other.stream);
  return *this;
}

DeviceStream::~DeviceStream() {
  if (!stream || owner->isAbandoned)
    return;
  ContextScope scope(*owner);
  owner->driver->streamDestroy(stream);
}

Result<DeviceEvent> DeviceEvent::create(const Device &device) {
  DeviceEvent result;
  result.owner = device.state();
  HEDDLE_TRY(inContext(*result.owner, "create event", "cuEventCreate",
                       [&](const Driver &driver) { return driver.eventCreate(&result.event, cuda::kEventDefault); }));
  return result;
}

DeviceEvent::DeviceEvent(DeviceEvent &&other) noexcept { *this = std::move(other); }

DeviceEvent &DeviceEvent::operator=(DeviceEvent &&other) noexcept {
  std::swap(owner, other.owner);
  std::swap(event, other.event);
  return *this;
}

DeviceEvent::~DeviceEvent() {
  if (!event || owner->isAbandoned)
    return;
  ContextScope scope(*owner);
  owner->driver->eventDestroy(event);
}

Status DeviceEvent::record(cuda::Stream stream) {
  return inContext(*owner, "record event", "cuEventRecord",
                   [&](const Driver &driver) { return driver.eventRecord(event, stream); });
}

Status DeviceEvent::synchronize() const {
  return inContext(*owner, "wait for event", "cuEventSynchronize",
                   [&](const Driver &driver) { return driver.eventSynchronize(event); });
}

Result<bool> DeviceEvent::waitFor(double seconds) const {
  using Clock = std::chrono::steady_clock;
  constexpr auto kBusyTime = std::chrono::milliseconds(2); // most launches end in this time
  constexpr auto kPause = std::chrono::microseconds(200);
  const Clock::time_point start = Clock::now();
  for (;;) {
    cuda::Code code = cuda::kSuccess;
    HEDDLE_TRY(inContext(*owner, "ask for event", "cuEventQuery", [&](const Driver &driver) {
      code = driver.eventQuery(event);
      return code == cuda::kErrorNotReady ? cuda::kSuccess : code;
    }));
    if (code == cuda::kSuccess)
      return true;
    const auto waited = Clock::now() - start;
    if (std::chrono::duration<double>(waited).count() >= seconds)
      return false;
    if (waited < kBusyTime)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kPause);
  }
}

Result<double> DeviceEvent::elapsedUsSince(const DeviceEvent &earlier) const {
  float milliseconds = 0;
  HEDDLE_TRY(inContext(*owner, "elapsed time", "cuEventElapsedTime", [&](const Driver &driver) {
    return driver.eventElapsedTime(&milliseconds, earlier.event, event);
  }));
  return double(milliseconds) * 1000;
}

} // namespace heddle
