// Pinned memory of the host and what goes through it, over the recording driver: where it lies, what is said where it cannot be
// pinned, what arrives, and that a piece is used again only behind its copy.
#include "compiler/Stream/HostStaging.h"
#include "device_fixture.h"

#include <algorithm>
#include <vector>

using namespace heddle;
using namespace heddle::test;

namespace {

constexpr uint64_t kPiece = HostStaging::kPieceBytes;
constexpr int kRegisterFails = 1;

struct Machine {
  Machine() : device((startFake(), require(Device::open(0)))), stream(require(DeviceStream::create(device))) {}
  DeviceBuffer memory(uint64_t bytes) const { return require(DeviceBuffer::allocate(device, int64_t(bytes))); }
  Device device;
  DeviceStream stream;
};

std::vector<char> counted(uint64_t bytes) {
  std::vector<char> data(bytes);
  for (uint64_t i = 0; i < bytes; ++i)
    data[i] = char(i * 2654435761u >> 24);
  return data;
}

} // namespace

TEST_CASE("memory for copies is pinned, in whole pages, on the node of the GPU, and let go") {
  const Machine machine;
  {
    PinnedMemory memory = require(PinnedMemory::allocate(machine.device, 5000));
    CHECK(memory.isPinned());
    CHECK(memory.bytes() == 8192);
    CHECK(fake::fakeCudaLivePinned() == 1);
    if (memory.node() < 0) // a system that lets nobody place memory says so
      CHECK(memory.note().find("not placed on node 0: ") == 0);
    else
      CHECK((memory.node() == 0 && memory.note().empty()));
    memory.data()[8191] = 1;
    const PinnedMemory moved = std::move(memory);
    CHECK(moved.data()[8191] == 1);
    CHECK(fake::fakeCudaLivePinned() == 1);
  }
  CHECK(fake::fakeCudaLivePinned() == 0);
}

TEST_CASE("memory that cannot be pinned serves as ordinary memory, and says why") {
  const Machine machine;
  fake::fakeCudaFail("cuMemHostRegister_v2", kRegisterFails, 0);
  const PinnedMemory memory = require(PinnedMemory::allocate(machine.device, 4096));
  fake::fakeCudaFail("cuMemHostRegister_v2", 0, 0);
  CHECK(!memory.isPinned());
  CHECK(memory.note().find("not pinned: ") != std::string::npos);
  CHECK(memory.note().find("cuMemHostRegister") != std::string::npos);
  memory.data()[0] = 1;
}

TEST_CASE("rows arrive, and a piece is used again only behind its copy") {
  const Machine machine;
  const std::vector<char> data = counted(3000);
  const DeviceBuffer buffer = machine.memory(3000);
  {
    HostStaging staging(machine.device);
    CHECK(staging.memory() == nullptr);
    for (uint64_t part = 0; part < 3; ++part) {
      require(staging.give(
          1000,
          [&](char *piece) {
            std::copy_n(data.data() + part * 1000, 1000, piece);
            return Status();
          },
          static_cast<char *>(buffer.data()) + part * 1000, machine.stream.handle()));
    }
    CHECK(fake::fakeCudaCalls("cuEventSynchronize") == 1); // the third waited for the first
    CHECK(staging.memory()->isPinned());
    CHECK(staging.bytes() == 2 * kPiece);
  }
  CHECK(fake::fakeCudaCalls("cuEventSynchronize") == 3); // both are waited for before they go
  CHECK(fake::fakeCudaLivePinned() == 0);
  CHECK(std::equal(data.begin(), data.end(), static_cast<const char *>(buffer.data())));
}

TEST_CASE("results of more than a piece come back whole") {
  const Machine machine;
  const uint64_t bytes = 2 * kPiece + 12345;
  const std::vector<char> data = counted(bytes);
  const DeviceBuffer buffer = machine.memory(bytes);
  std::copy(data.begin(), data.end(), static_cast<char *>(buffer.data()));
  HostStaging staging(machine.device);
  std::vector<char> there(bytes);
  require(staging.take(static_cast<const char *>(buffer.data()), bytes, there.data(), machine.stream.handle()));
  CHECK(there == data);
  require(staging.take(static_cast<const char *>(buffer.data()), 0, nullptr, machine.stream.handle()));
}

TEST_CASE("what cannot be read or copied is the status of the call") {
  const Machine machine;
  const DeviceBuffer buffer = machine.memory(1000);
  HostStaging staging(machine.device);
  char *place = static_cast<char *>(buffer.data());
  const Status unread =
      staging.give(1000, [](char *) { return Status::io("the file is gone"); }, place, machine.stream.handle());
  CHECK(unread.message() == "the file is gone");
  const auto nothing = [](char *) { return Status(); };
  CHECK(staging.give(1001, nothing, place, machine.stream.handle()).message().find("cuMemcpyHtoDAsync") !=
        std::string::npos);
  require(staging.give(1000, nothing, place, machine.stream.handle()));
}
