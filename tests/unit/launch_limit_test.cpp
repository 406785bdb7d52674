// A launch that never ends, as the recording driver plays it: it is noticed, costs one trial, ends the session with a
// message, and leaves nothing that would wait for the kernel. A later session goes on without that point.
#include "support/Places.h"
#include "codegen/Nvrtc/NvrtcLibrary.h"
#include "compiler/Measure/DeviceProblem.h"
#include "compiler/Session/TuneSession.h"
#include "device_fixture.h"
#include "tuner/Search/StoreSink.h"

#include <filesystem>
#include <unistd.h>

using namespace heddle;
using namespace heddle::test;

namespace {

constexpr int kNotReady = 600;

struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("heddle-launch-limit-" + std::to_string(getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

Store openStore(const Folder &folder) {
  StoreOptions options;
  options.mode = StoreMode::readWrite;
  return require(Store::open((folder.path / "kernels.db").string(), options));
}

TuneRequest smallRequest() {
  TuneRequest request;
  request.shape.seqlenQ = request.shape.seqlenK = 128;
  request.verifiedRows = 1;
  request.launchLimitSeconds = 0.05;
  request.strategy = "exhaustive:limit=1";
  request.options.budgetSeconds = 60;
  request.options.workers = 0;
  return request;
}

size_t countOf(const TuneOutcome &outcome, tuner::Outcome wanted) { return outcome.search.outcomes[size_t(wanted)]; }

} // namespace

TEST_CASE("an event is waited for no longer than asked") {
  startFake();
  Device device = require(Device::open(0));
  DeviceEvent event = require(DeviceEvent::create(device));
  require(event.record());
  CHECK(require(event.waitFor(0)));
  fake::fakeCudaFail("cuEventQuery", kNotReady, 0);
  CHECK(!require(event.waitFor(0.01)));
  CHECK(fake::fakeCudaCalls("cuEventQuery") >= 2);
  fake::fakeCudaFail("cuEventQuery", 719, 0);
  CHECK(event.waitFor(1).status().message().find("cuEventQuery") != std::string::npos);
}

TEST_CASE("a device that was given up is asked for nothing more") {
  startFake();
  {
    Device device = require(Device::open(0));
    LaunchTimer timer = require(LaunchTimer::create(device, 0.01));
    DeviceBuffer buffer = require(DeviceBuffer::allocate(device, 1024));
    Kernel kernel = require(Kernel::load(device, forwardRecord()));
    fake::fakeCudaFail("cuEventQuery", kNotReady, 0);
    Status status = timer.time([] { return Status(); }).status();
    CHECK(status.code() == StatusCode::unavailable);
    CHECK(status.message() == "the launch did not end within 0.01 s");
    CHECK(device.isAbandoned());
    fake::fakeCudaReset();
    CHECK(device.synchronize().code() == StatusCode::unavailable);
    CHECK(buffer.fillBytes(0).message().find("given the GPU up") != std::string::npos);
    ForwardCall call;
    CHECK(kernel.launch(nullptr, call.args).code() == StatusCode::unavailable);
  }
  CHECK(fake::fakeCudaCalls(nullptr) == 0); // nothing was freed, unloaded or released
}

TEST_CASE("a launch that never ends costs one trial and the session, which a later one continues") {
  if (!NvrtcLibrary::shared()) {
    MESSAGE("skipped: " << NvrtcLibrary::shared().status().message());
    return;
  }
  startFake();
  fake::fakeCudaSetArch(80); // whose kernels have as many threads as the recording driver launches
  Folder folder;
  auto file = require(PatternFile::load(test::places().patterns + "/full.mlir"));
  {
    Store store = openStore(folder);
    Device device = require(Device::open(0));
    fake::fakeCudaFail("cuEventQuery", kNotReady, 0);
    Status status = tune(*file, smallRequest(), device, store).status();
    CHECK(status.code() == StatusCode::unavailable);
    CHECK(status.message().find("the launch did not end within 0.05 s") != std::string::npos);
    CHECK(status.message().find("the same command goes on without this configuration") != std::string::npos);
    fake::fakeCudaReset();
  }
  CHECK(fake::fakeCudaCalls(nullptr) == 0);
  fake::fakeCudaSetArch(80);
  Store store = openStore(folder);
  Device device = require(Device::open(0));
  TuneOutcome outcome = require(tune(*file, smallRequest(), device, store));
  CHECK(outcome.search.known == 1);
  CHECK(countOf(outcome, tuner::Outcome::timedOut) == 1);
  CHECK(outcome.search.measuredNow == 1);
  CHECK(countOf(outcome, tuner::Outcome::wrong) == 1); // the recording driver computes nothing
  CHECK(!outcome.record);
}
