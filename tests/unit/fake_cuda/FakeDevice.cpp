//===- FakeDevice.cpp - the exported driver functions: devices, contexts, memory ---===//
#include "FakeState.h"

#include <cstdlib>

using namespace heddle::cuda;
using namespace heddle::fake;

namespace {

struct ErrorText {
  Code code;
  const char *name, *text;
};
constexpr ErrorText kErrors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream"},
    {907, "CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capturing stream"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"}};

constexpr size_t kMemoryBytes = size_t(143771) << 20;

int attributeValue(int attribute, DeviceOrdinal device) {
  switch (attribute) {
  case kAttributeComputeMajor:
    return state().arch / 10;
  case kAttributeComputeMinor:
    return state().arch % 10;
  case kAttributeMultiprocessorCount:
    return 132;
  case kAttributeL2CacheSize:
    return 50 << 20;
  case kAttributeMaxSharedPerBlockOptin:
    return 232448;
  case kAttributeMemoryPools:
    return 1;
  case kAttributePageableMemoryAccess:
    return state().readsPageable;
  case kAttributePciDomainId:
    return 0;
  case kAttributePciBusId:
    return 0x1b + device;
  case kAttributePciDeviceId:
    return 0;
  case kAttributeHostNumaId:
    return 0;
  case kAttributeClockRate:
    return 1980000;
  case kAttributeMemoryClockRate:
    return 3201000;
  case kAttributeGlobalMemoryBusWidth:
    return 6144;
  default:
    return -1;
  }
}

} // namespace

void heddle::fake::clearWords(const Clear &clear, Stream stream) {
  unsigned *memory = reinterpret_cast<unsigned *>(static_cast<uintptr_t>(clear.address));
  for (size_t i = 0; i < clear.words; ++i)
    memory[i] = clear.value;
  if (state().clearCount < 64)
    state().clears[state().clearCount++] = {clear.address, clear.value, clear.words, stream};
}

extern "C" {

Code cuInit(unsigned flags) {
  FAKE_ENTER(cuInit);
  state().isInitialized = true;
  return flags == 0 ? kSuccess : kErrorInvalidValue;
}

Code cuDriverGetVersion(int *version) {
  FAKE_ENTER(cuDriverGetVersion);
  *version = state().driverVersion;
  return kSuccess;
}

Code cuGetErrorName(Code code, const char **name) {
  FAKE_ENTER(cuGetErrorName);
  for (const ErrorText &error : kErrors)
    if (error.code == code) {
      *name = error.name;
      return kSuccess;
    }
  return kErrorInvalidValue;
}

Code cuGetErrorString(Code code, const char **text) {
  FAKE_ENTER(cuGetErrorString);
  for (const ErrorText &error : kErrors)
    if (error.code == code) {
      *text = error.text;
      return kSuccess;
    }
  return kErrorInvalidValue;
}

Code cuDeviceGet(DeviceOrdinal *device, int ordinal) {
  FAKE_ENTER(cuDeviceGet);
  *device = ordinal;
  return ordinal >= 0 && ordinal < state().deviceCount ? kSuccess : kInvalidDevice;
}

Code cuDeviceGetCount(int *count) {
  FAKE_ENTER(cuDeviceGetCount);
  *count = state().deviceCount;
  return kSuccess;
}

Code cuDeviceGetName(char *name, int bytes, DeviceOrdinal device) {
  FAKE_ENTER(cuDeviceGetName);
  const char *given = std::getenv("HEDDLE_FAKE_CUDA_NAME");
  std::strncpy(name, given ? given : "Fake GPU", size_t(bytes));
  return device < state().deviceCount ? kSuccess : kInvalidDevice;
}

Code cuDeviceTotalMem_v2(size_t *bytes, DeviceOrdinal) {
  FAKE_ENTER(cuDeviceTotalMem_v2);
  *bytes = kMemoryBytes;
  return kSuccess;
}

Code cuDeviceGetAttribute(int *value, int attribute, DeviceOrdinal device) {
  FAKE_ENTER(cuDeviceGetAttribute);
  *value = attributeValue(attribute, device);
  return *value < 0 ? kErrorInvalidValue : kSuccess;
}

Code cuDevicePrimaryCtxRetain(Context *context, DeviceOrdinal device) {
  FAKE_ENTER(cuDevicePrimaryCtxRetain);
  *context = &state().contexts[device];
  ++(*context)->retained;
  return kSuccess;
}

Code cuDevicePrimaryCtxRelease_v2(DeviceOrdinal device) {
  FAKE_ENTER(cuDevicePrimaryCtxRelease_v2);
  return state().contexts[device].retained-- > 0 ? kSuccess : kInvalidContext;
}

Code cuCtxGetCurrent(Context *context) {
  FAKE_ENTER(cuCtxGetCurrent);
  *context = currentContext();
  return kSuccess;
}

Code cuCtxPushCurrent_v2(Context context) {
  FAKE_ENTER(cuCtxPushCurrent_v2);
  if (!context || stack().depth == 16)
    return kInvalidContext;
  stack().entries[stack().depth++] = context;
  return kSuccess;
}

Code cuCtxPopCurrent_v2(Context *context) {
  FAKE_ENTER_CONTEXT(cuCtxPopCurrent_v2);
  *context = stack().entries[--stack().depth];
  return kSuccess;
}

Code cuCtxGetDevice(DeviceOrdinal *device) {
  FAKE_ENTER_CONTEXT(cuCtxGetDevice);
  *device = currentContext()->ordinal;
  return kSuccess;
}

Code cuMemAlloc_v2(DevicePointer *pointer, size_t bytes) {
  FAKE_ENTER_UNCAPTURED(cuMemAlloc_v2);
  if (bytes > kMemoryBytes)
    return kErrorOutOfMemory;
  void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  *pointer = reinterpret_cast<uintptr_t>(memory);
  state().allocations[*pointer] = bytes;
  return memory && bytes > 0 ? kSuccess : kErrorInvalidValue;
}

Code cuMemFree_v2(DevicePointer pointer) {
  FAKE_ENTER_CONTEXT(cuMemFree_v2);
  if (state().allocations.erase(pointer) == 0)
    return kErrorInvalidValue;
  std::free(reinterpret_cast<void *>(static_cast<uintptr_t>(pointer)));
  return kSuccess;
}

Code cuMemHostRegister_v2(void *memory, size_t bytes, unsigned) {
  FAKE_ENTER_CONTEXT(cuMemHostRegister_v2);
  return bytes > 0 && state().pinned.emplace(memory, bytes).second ? kSuccess : kErrorInvalidValue;
}

Code cuMemHostUnregister(void *memory) {
  FAKE_ENTER_CONTEXT(cuMemHostUnregister);
  return state().pinned.erase(memory) ? kSuccess : kErrorInvalidValue;
}

Code cuMemGetInfo_v2(size_t *available, size_t *total) {
  FAKE_ENTER_CONTEXT(cuMemGetInfo_v2);
  *available = kMemoryBytes / 2;
  *total = kMemoryBytes;
  return kSuccess;
}

Code cuPointerGetAttribute(void *value, int attribute, DevicePointer pointer) {
  FAKE_ENTER_CONTEXT(cuPointerGetAttribute);
  const auto owner = state().owners.find(pointer);
  const bool isForeign = owner != state().owners.end();
  if (attribute == kPointerDevicePointer && !isForeign) {
    std::memcpy(value, &pointer, sizeof pointer);
    return kSuccess;
  }
  if ((attribute != kPointerMemoryType && attribute != kPointerDeviceOrdinal) || !isForeign || owner->second < 0)
    return kErrorInvalidValue;
  const int found = attribute == kPointerMemoryType ? 2 : owner->second;
  std::memcpy(value, &found, sizeof found);
  return kSuccess;
}

Code cuMemcpyHtoDAsync_v2(DevicePointer to, const void *from, size_t bytes, Stream) {
  FAKE_ENTER_CONTEXT(cuMemcpyHtoDAsync_v2);
  if (!isInside(to, bytes))
    return kErrorInvalidValue;
  std::memcpy(reinterpret_cast<void *>(static_cast<uintptr_t>(to)), from, bytes);
  return kSuccess;
}

Code cuMemcpyDtoHAsync_v2(void *to, DevicePointer from, size_t bytes, Stream) {
  FAKE_ENTER_CONTEXT(cuMemcpyDtoHAsync_v2);
  if (!isInside(from, bytes))
    return kErrorInvalidValue;
  std::memcpy(to, reinterpret_cast<void *>(static_cast<uintptr_t>(from)), bytes);
  return kSuccess;
}

Code cuMemcpy2DAsync_v2(const Copy2D *copy, Stream stream) {
  FAKE_ENTER_CONTEXT(cuMemcpy2DAsync_v2);
  noteFork(stream);
  const bool isOfDevice = copy->fromKind == kMemoryOfDevice && copy->toKind == kMemoryOfDevice;
  if (!isOfDevice || copy->fromPitch < copy->width || copy->toPitch < copy->width || copy->height == 0)
    return kErrorInvalidValue;
  if (!isInside(copy->from, (copy->height - 1) * copy->fromPitch + copy->width) ||
      !isInside(copy->to, (copy->height - 1) * copy->toPitch + copy->width))
    return kErrorInvalidValue;
  for (size_t row = 0; row < copy->height; ++row)
    std::memcpy(reinterpret_cast<void *>(uintptr_t(copy->to) + row * copy->toPitch),
                reinterpret_cast<const void *>(uintptr_t(copy->from) + row * copy->fromPitch), copy->width);
  return kSuccess;
}

Code cuMemsetD8Async(DevicePointer to, unsigned char value, size_t bytes, Stream stream) {
  FAKE_ENTER_CONTEXT(cuMemsetD8Async);
  noteFork(stream);
  if (!isInside(to, bytes))
    return kErrorInvalidValue;
  std::memset(reinterpret_cast<void *>(static_cast<uintptr_t>(to)), value, bytes);
  return kSuccess;
}

Code cuMemsetD32Async(DevicePointer to, unsigned value, size_t words, Stream stream) {
  FAKE_ENTER_CONTEXT(cuMemsetD32Async);
  if ((!isInside(to, words * 4) && !state().readsPageable) || to % 4 != 0)
    return kErrorInvalidValue;
  if (stream && stream->capture) {
    stream->capture->nodes.push_back({true, {to, value, words, stream}, nullptr, {}});
    return kSuccess;
  }
  clearWords({to, value, words, stream}, stream);
  return kSuccess;
}

Code cuEventCreate(Event *event, unsigned) {
  FAKE_ENTER_CONTEXT(cuEventCreate);
  *event = new EventStruct{currentContext(), false, 0};
  state().handles.insert(*event);
  return kSuccess;
}

Code cuEventRecord(Event event, Stream stream) {
  FAKE_ENTER_CONTEXT(cuEventRecord);
  if (!state().handles.count(event))
    return kInvalidHandle;
  event->isRecorded = true;
  event->recordedUs = state().nowUs;
  event->work = workOf(stream);
  event->number = event->work->last;
  event->captured = stream && stream->capture ? stream : nullptr;
  return kSuccess;
}

Code cuEventQuery(Event event) {
  FAKE_ENTER_CONTEXT(cuEventQuery);
  if (!state().handles.count(event))
    return kInvalidHandle;
  if (event->captured)
    return kCapturedEvent;
  return event->isReached() ? kSuccess : kErrorNotReady;
}

Code cuEventSynchronize(Event event) {
  for (;; sched_yield()) {
    FAKE_ENTER_CONTEXT(cuEventSynchronize);
    if (!state().handles.count(event))
      return kInvalidHandle;
    if (event->isReached())
      return kSuccess;
  }
}

Code cuEventElapsedTime(float *milliseconds, Event start, Event end) {
  FAKE_ENTER_CONTEXT(cuEventElapsedTime);
  if (!state().handles.count(start) || !state().handles.count(end) || !start->isRecorded || !end->isRecorded)
    return kInvalidHandle;
  *milliseconds = float(double(end->recordedUs - start->recordedUs) * 1e-3);
  return kSuccess;
}

Code cuEventDestroy_v2(Event event) {
  FAKE_ENTER_CONTEXT(cuEventDestroy_v2);
  if (state().handles.erase(event) == 0)
    return kInvalidHandle;
  delete event;
  return kSuccess;
}

} // extern "C"
