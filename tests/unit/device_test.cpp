//===- device_test.cpp - opening GPUs, memory, streams and events -----------===//
#include "device_fixture.h"
#include "runtime/Device/Driver.h"

#include <vector>

using namespace heddle;
using namespace heddle::test;
using namespace heddle::fake;

TEST_CASE("a missing or foreign driver library is unavailable and says which") {
  startFake();
  setenv("HEDDLE_CUDA_DRIVER_LIBRARY", "/nowhere/libcuda.so.1", 1);
  Status missing = Device::open().status();
  CHECK(missing.code() == StatusCode::unavailable);
  CHECK(missing.message().find("/nowhere/libcuda.so.1") != std::string::npos);
  setenv("HEDDLE_CUDA_DRIVER_LIBRARY", "libm.so.6", 1);
  Status foreign = Device::open().status();
  CHECK(foreign.code() == StatusCode::unavailable);
  CHECK(foreign.message().find("has no function cu") != std::string::npos);
}

// Runs first on the recording driver, so that its cuInit has not happened yet.
TEST_CASE("a driver without a GPU is unavailable, and is tried again later") {
  startFake();
  fakeCudaFail("cuInit", 100, 0);
  Status none = Device::open().status();
  CHECK(none.code() == StatusCode::unavailable);
  CHECK(none.message().find("cuInit failed: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)") !=
        std::string::npos);
  fakeCudaFail("cuInit", 0, 0);
  CHECK(Device::open().isOk());
  CHECK(*Device::count() == 2);
}

TEST_CASE("a device describes itself") {
  startFake();
  Device device = require(Device::open(1));
  const DeviceInfo &info = device.info();
  CHECK(info.ordinal == 1);
  CHECK(info.identity.deviceName == "Fake GPU");
  CHECK(info.identity.arch == "sm_90");
  CHECK(info.identity.smCount == 132);
  CHECK(info.identity.memoryGib == 140);
  CHECK(info.l2Bytes == 50 << 20);
  CHECK(info.sharedBytesPerBlock == 232448);
  CHECK(info.driverVersion == 13000);
  CHECK(info.record().l2Bytes == info.l2Bytes);
  CHECK(*device.freeBytes() > 0);
  CHECK(Device::open(2).status().message().find("expected 0 to 1") != std::string::npos);
  CHECK(Device::open(2).status().code() == StatusCode::notFound);
}

TEST_CASE("the current context is used, else the primary one is retained and released") {
  startFake();
  int before = fakeCudaRetainedContexts();
  {
    Device primary = require(Device::open(0));
    CHECK(fakeCudaRetainedContexts() == before + 1);
    Device again = require(Device::open(0));
    CHECK(fakeCudaRetainedContexts() == before + 1);
    CHECK(primary.state().get() == again.state().get());
  }
  CHECK(fakeCudaRetainedContexts() == before);
  fakeCudaSetCurrent(1);
  {
    Device current = require(Device::open());
    CHECK(current.info().ordinal == 1);
    CHECK(fakeCudaRetainedContexts() == before);
    Device other = require(Device::open(0));
    CHECK(other.info().ordinal == 0);
    CHECK(fakeCudaRetainedContexts() == before + 1);
    void *mine = fakeCudaCurrent();
    CHECK(DeviceBuffer::allocate(other, 64).isOk());
    CHECK(fakeCudaCurrent() == mine);
  }
  CHECK(fakeCudaRetainedContexts() == before);
}

TEST_CASE("a handle that was opened without a current context holds the primary one, whoever opened it before") {
  startFake();
  const int before = fakeCudaRetainedContexts();
  fakeCudaSetCurrent(0); // as a program does that retained it
  Device first = require(Device::open());
  CHECK(fakeCudaRetainedContexts() == before);
  fakeCudaSetCurrent(-1);
  {
    Device second = require(Device::open(0));
    CHECK(second.state().get() == first.state().get());
    CHECK(fakeCudaRetainedContexts() == before + 1);
    Device third = require(Device::open(0));
    CHECK(fakeCudaRetainedContexts() == before + 1);
  }
  CHECK(fakeCudaRetainedContexts() == before + 1); // what they loaded may be left
  first = require(Device::open(1));
  CHECK(fakeCudaRetainedContexts() == before + 1); // of the other GPU
}

TEST_CASE("buffers: copies, fills, ranges, and no leak") {
  startFake();
  Device device = require(Device::open(0));
  int before = fakeCudaLiveAllocations();
  {
    DeviceBuffer buffer = require(DeviceBuffer::allocate(device, 1024));
    CHECK(fakeCudaLiveAllocations() == before + 1);
    std::vector<uint32_t> words(256);
    require(buffer.fillBytes(7));
    uint32_t one = 42;
    require(buffer.copyFrom(&one, 4, 16));
    require(buffer.copyTo(words.data(), 1024));
    CHECK(words[3] == 0x07070707);
    CHECK(words[255] == 0x07070707);
    CHECK(words[4] == 42);
    CHECK(buffer.copyFrom(&one, 4, 1021).code() == StatusCode::invalidArgument);
    CHECK(buffer.copyTo(words.data(), 2048).code() == StatusCode::invalidArgument);
    CHECK(buffer.copyTo(words.data(), 4, -4).code() == StatusCode::invalidArgument);
    DeviceBuffer moved = std::move(buffer);
    CHECK(moved.bytes() == 1024);
    moved = require(DeviceBuffer::allocate(device, 6));
    CHECK(require(DeviceBuffer::allocate(device, 0)).address() == 0);
  }
  CHECK(fakeCudaLiveAllocations() == before);
  Status full = DeviceBuffer::allocate(device, int64_t(1) << 50).status();
  CHECK(full.code() == StatusCode::unavailable);
  CHECK(full.message().find("CUDA_ERROR_OUT_OF_MEMORY") != std::string::npos);
  CHECK(DeviceBuffer::allocate(device, -1).status().code() == StatusCode::invalidArgument);
}

TEST_CASE("events measure time on streams") {
  startFake();
  Device device = require(Device::open(0));
  DeviceStream stream = require(DeviceStream::create(device));
  DeviceEvent start = require(DeviceEvent::create(device)), end = require(DeviceEvent::create(device));
  require(start.record(stream.handle()));
  const int before = fakeCudaCalls(nullptr);
  require(device.synchronize(stream.handle()));
  require(end.record(stream.handle()));
  const int calls = fakeCudaCalls(nullptr) - before; // a microsecond each, up to the record
  require(end.synchronize());
  CHECK(require(end.elapsedUsSince(start)) > 1);
  CHECK(require(end.elapsedUsSince(start)) <= calls + 2);
  DeviceEvent unrecorded = require(DeviceEvent::create(device));
  CHECK(unrecorded.elapsedUsSince(start).status().code() == StatusCode::internal);
  fakeCudaFail("cuStreamSynchronize", 700, 0);
  Status fault = device.synchronize(stream.handle());
  CHECK(
      fault.message() ==
      "synchronize: cuStreamSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)");
}

TEST_CASE("every failing call of opening a device is named") {
  startFake();
  for (const char *symbol : {"cuDeviceGetCount", "cuCtxGetCurrent", "cuDeviceGet", "cuDevicePrimaryCtxRetain",
                             "cuDeviceGetName", "cuDeviceTotalMem_v2", "cuDeviceGetAttribute"}) {
    int before = fakeCudaRetainedContexts();
    fakeCudaFail(symbol, 999, 0);
    Status failure = Device::open(0).status();
    fakeCudaFail(symbol, 0, 0);
    CHECK(failure.code() == StatusCode::internal);
    std::string shown = std::string(symbol).substr(0, std::string(symbol).find("_v2"));
    CHECK_MESSAGE(failure.message().find(shown + " failed: error 999") != std::string::npos, failure.message());
    CHECK(fakeCudaRetainedContexts() == before);
  }
}
