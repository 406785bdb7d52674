// What a rank's GPU is told: rows of several places are copied by one launch, those that it does not take by the driver, to the
// same bytes; and a queue waits for another one where that was given something, and only there.
#include "device_fixture.h"
#include "runtime/Distributed/CopyRows.h"
#include "runtime/Distributed/CudaShard.h"
#include "runtime/Distributed/Pause.h"

#include <cstring>
#include <numeric>

using namespace heddle;
using namespace heddle::test;

extern "C" {
int cuStreamBeginCapture_v2(cuda::Stream stream, int mode);
int cuStreamEndCapture(cuda::Stream stream, cuda::Graph *graph);
}

namespace {

constexpr int64_t kBytes = 1 << 16;

struct Shard {
  Device device;
  std::unique_ptr<CudaShard> shard;
  DeviceStream stream;
  DeviceBuffer from, to;
  std::string bytes = std::string(size_t(kBytes), '\0');

  static Shard make() {
    startFake();
    Device device = require(Device::open(0));
    fake::fakeCudaSetCurrent(0);
    Shard made{device, require(CudaShard::create(device)), require(DeviceStream::create(device)),
               require(DeviceBuffer::allocate(device, kBytes)), require(DeviceBuffer::allocate(device, kBytes))};
    std::iota(made.bytes.begin(), made.bytes.end(), char(1));
    for (size_t i = 0; i < made.bytes.size(); i += 251)
      made.bytes[i] = char(i / 251);
    require(made.from.copyFrom(made.bytes.data(), kBytes));
    made.shard->serve({}, made.stream.handle());
    return made;
  }
  // Of 3 rows of 2 heads of so many bytes; rows and heads lie apart in `from`, and without gaps in `to`.
  RowCopy copyOf(int64_t headBytes, int64_t place) const {
    RowPlace out{static_cast<char *>(from.data()) + place, 0, 5 * headBytes, headBytes, headBytes};
    return {RowPlace::ofRows(static_cast<char *>(to.data()) + place, 3, 2, headBytes), out, 1, 3, 2};
  }
  void check(int64_t headBytes, int64_t place) const {
    const auto *got = static_cast<const char *>(to.data()) + place;
    for (int64_t row = 0; row < 3; ++row)
      CHECK(std::memcmp(got + row * 2 * headBytes, &bytes[size_t(place + row * 5 * headBytes)],
                        size_t(2 * headBytes)) == 0);
  }
};

int launches() { return fake::fakeCudaCalls("cuLaunchKernel"); }
int copies() { return fake::fakeCudaCalls("cuMemcpy2DAsync_v2"); }

} // namespace

TEST_CASE("rows of several places are copied by one launch") {
  Shard on = Shard::make();
  std::vector<RowCopy> all;
  for (int64_t place = 0; place < 3; ++place)
    all.push_back(on.copyOf(256, place * 4096));
  require(on.shard->copyAll(all, Queue::compute));
  CHECK(launches() == 1);
  CHECK(copies() == 0);
  const fake::Launch *launch = fake::fakeCudaLastLaunch();
  CHECK(launch->grid[0] == 1); // 3 rows of 512 bytes are 96 units
  CHECK(launch->grid[1] == 3);
  CHECK(launch->stream == on.stream.handle());
  for (int64_t place = 0; place < 3; ++place)
    on.check(256, place * 4096);
}

TEST_CASE("more places than a launch takes are copied by two") {
  Shard on = Shard::make();
  std::vector<RowCopy> all;
  for (int64_t place = 0; place < int64_t(kCopyRowsMost) + 2; ++place)
    all.push_back(on.copyOf(64, place * 1024));
  require(on.shard->copyAll(all, Queue::link));
  CHECK(launches() == 2);
  for (int64_t place = 0; place < int64_t(kCopyRowsMost) + 2; ++place)
    on.check(64, place * 1024);
}

TEST_CASE("rows that are not of whole units, one place alone and none are the driver's") {
  Shard on = Shard::make();
  require(on.shard->copyAll({on.copyOf(24, 0), on.copyOf(256, 4096 + 8), on.copyOf(256, 8192)}, Queue::compute));
  CHECK(launches() == 0);
  CHECK(copies() == 3);
  on.check(24, 0);
  on.check(256, 4096 + 8);
  on.check(256, 8192);
  RowCopy none = on.copyOf(256, 0);
  none.rows = 0;
  require(on.shard->copyAll({none, none}, Queue::compute));
  CHECK(launches() == 0);
  CHECK(copies() == 3);
}

TEST_CASE("a launch has a thread for some units of the longest place") {
  Shard on = Shard::make();
  const RowCopy tall{{static_cast<char *>(on.to.data()), 0, 0, 128, 128},
                     {static_cast<char *>(on.from.data()), 0, 0, 128, 128},
                     1,
                     4097,
                     2};
  require(on.shard->copyAll({on.copyOf(256, 4096), tall}, Queue::compute));
  CHECK(fake::fakeCudaLastLaunch()->grid[0] == 4096 * 16 / kCopyRowsThreads / kCopyRowsUnits + 1);
}

TEST_CASE(
    "in a graph what is computed begins behind a pause, in which a message does; elsewhere queues keep the order") {
  Shard on = Shard::make();
  require(on.shard->letBegin(Queue::link));
  CHECK(launches() == 0);
  require(on.shard->letBegin(Queue::aside)); // launches there clear a workspace first, as those behind them do
  CHECK(launches() == 1);
  REQUIRE(cuStreamBeginCapture_v2(on.stream.handle(), 0) == 0);
  const Status paused = on.shard->letBegin(Queue::link);
  cuda::Graph graph = nullptr;
  CHECK(cuStreamEndCapture(on.stream.handle(), &graph) == 0);
  CHECK_MESSAGE(paused.isOk(), paused.message());
  REQUIRE(launches() == 2);
  CHECK(fake::fakeCudaLastLaunch()->entry == std::string(kPauseName));
  CHECK(fake::fakeCudaLastLaunch()->stream == on.stream.handle());
}

TEST_CASE("the first call of all may be captured, in which nothing can be loaded") {
  Shard on = Shard::make();
  REQUIRE(cuStreamBeginCapture_v2(on.stream.handle(), 0) == 0);
  const Status copied = on.shard->copyAll({on.copyOf(256, 0), on.copyOf(256, 4096)}, Queue::compute);
  cuda::Graph graph = nullptr;
  CHECK(cuStreamEndCapture(on.stream.handle(), &graph) == 0);
  CHECK_MESSAGE(copied.isOk(), copied.message());
}

TEST_CASE("a queue waits once for what another one was given") {
  Shard on = Shard::make();
  auto waits = [] { return fake::fakeCudaCalls("cuStreamWaitEvent"); };
  require(on.shard->follow(Queue::link, Queue::compute)); // for the caller's stream
  CHECK(waits() == 1);
  require(on.shard->follow(Queue::link, Queue::compute));
  CHECK(waits() == 1);
  require(on.shard->copy(on.copyOf(256, 0), Queue::compute));
  require(on.shard->follow(Queue::link, Queue::compute));
  CHECK(waits() == 2);
  (void)on.shard->stream(Queue::link); // somebody enqueues there
  require(on.shard->follow(Queue::aside, Queue::link));
  require(on.shard->follow(Queue::compute, Queue::aside)); // behind what it waits for
  CHECK(waits() == 4);
  on.shard->serve({}, on.stream.handle());
  require(on.shard->follow(Queue::link, Queue::compute));
  CHECK(waits() == 5);
}
