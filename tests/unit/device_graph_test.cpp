//===- device_graph_test.cpp - prepared calls as graphs of the driver -------===//
// Numbers in brackets are the promises of runtime/Include/heddle.h.
#include "support/Places.h"
#include "device_fixture.h"
#include "runtime/Device/Driver.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

using namespace heddle;
using namespace heddle::test;
using namespace heddle::fake;

// Of the recording driver: what a program calls to capture.
extern "C" {
int cuStreamBeginCapture_v2(cuda::Stream stream, int mode);
int cuStreamEndCapture(cuda::Stream stream, void **graph);
}

namespace {

constexpr int kMostGraphs = 64; // as heddle.h says

struct Scene {
  Device device;
  DeviceStream stream;
  Kernel kernel;
  ForwardCall call;

  static Scene open() {
    startFake();
    Device device = require(Device::open(0));
    DeviceStream stream = require(DeviceStream::create(device));
    Kernel kernel = require(Kernel::load(device, forwardRecord()));
    return {device, std::move(stream), kernel, {}};
  }
};

int launched() {
  int count = 0;
  fakeCudaLaunches(&count);
  return count;
}

} // namespace

TEST_CASE("a prepared call is one launch of a graph, and does what the kernel's launch does") {
  Scene scene = Scene::open();
  fakeCudaExpectParams(sizeof(ForwardParams));
  require(scene.kernel.launch(scene.stream.handle(), scene.call.args));
  const Launch direct = *fakeCudaLastLaunch();
  {
    const PreparedLaunch prepared = require(scene.kernel.prepare(scene.call.args));
    CHECK(fakeCudaLiveGraphs() == 1);
    fakeCudaReset();
    require(prepared.launch(scene.stream.handle()));
    CHECK(fakeCudaCalls("cuGraphLaunch") == 1);
    CHECK(fakeCudaCalls("cuLaunchKernel") == 0);
    const Launch &graph = *fakeCudaLastLaunch();
    CHECK(std::memcmp(graph.grid, direct.grid, sizeof graph.grid) == 0);
    CHECK(std::memcmp(graph.block, direct.block, sizeof graph.block) == 0);
    CHECK(graph.sharedBytes == direct.sharedBytes);
    CHECK(graph.stream == direct.stream);
    CHECK(graph.function == direct.function);
    REQUIRE(graph.paramBytes == direct.paramBytes);
    CHECK(std::memcmp(graph.params, direct.params, graph.paramBytes) == 0);
  }
  CHECK(fakeCudaLiveGraphs() == 0);
}

TEST_CASE("clears come before the kernel in the graph") {
  Scene scene = Scene::open();
  LaunchPlan plan = emptyPlan();
  KernelLaunch &launch = plan.launches.front();
  const PointerSource region = plan.appendRegion("room", LaunchExpr(LaunchSymbol::batch) * 256);
  launch.clears.push_back({region, 256, 64, 9});
  KernelRecord record = forwardRecord("clears");
  record.plan = plan.str();
  const Kernel kernel = require(Kernel::load(scene.device, record));
  DeviceBuffer workspace = require(DeviceBuffer::allocate(scene.device, 512));
  scene.call.args.workspace = workspace.data();
  scene.call.args.workspace_bytes = 512;
  const PreparedLaunch prepared = require(kernel.prepare(scene.call.args));
  fakeCudaReset();
  require(prepared.launch(scene.stream.handle()));
  CHECK(fakeCudaCalls("cuGraphLaunch") == 1);
  CHECK(fakeCudaCalls("cuMemsetD32Async") == 0);
  int count = 0;
  const Clear *clears = fakeCudaClears(&count);
  REQUIRE(count == 1);
  CHECK(clears[0].address == workspace.address() + 256);
  CHECK(clears[0].words == 64);
  CHECK(clears[0].value == 9);
  CHECK(fakeCudaLastLaunch()->clearsBefore == 1);
}

namespace {

/// A kernel with a region that it clears, and one that is zero before and after it; behind what others have, its
/// parameters have the address of this one.
struct KernelWithZeros {
  explicit KernelWithZeros(const Device &device);
  uint64_t addressGiven() const {
    uint64_t address = 0;
    std::memcpy(&address, fakeCudaLastLaunch()->params + place, sizeof address);
    return address;
  }

  int64_t place = 0;
  std::optional<Kernel> kernel;
};

KernelWithZeros::KernelWithZeros(const Device &device) {
  LaunchPlan plan = emptyPlan();
  KernelLaunch &launch = plan.launches.front();
  const PointerSource room = plan.appendRegion("room", 256), zeros = plan.appendRegion("zero.counters", 512);
  launch.clears.push_back({room, 0, 64, 9});
  launch.clears.push_back({zeros, 0, 128, 0});
  place = launch.appendPointer(zeros);
  fakeCudaExpectParams(size_t(launch.paramBytes));
  KernelRecord record = forwardRecord("zeros");
  record.plan = plan.str();
  kernel = require(Kernel::load(device, record));
}

} // namespace

TEST_CASE("what launches leave zero lies in memory of the prepared call, which no launch clears") {
  Scene scene = Scene::open();
  const KernelWithZeros with(scene.device);
  DeviceBuffer workspace = require(DeviceBuffer::allocate(scene.device, 768));
  require(workspace.fillBytes(0xff));
  scene.call.args.workspace = workspace.data();
  scene.call.args.workspace_bytes = 768;
  const int before = fakeCudaLiveAllocations();
  {
    const PreparedLaunch prepared = require(with.kernel->prepare(scene.call.args));
    CHECK(fakeCudaLiveAllocations() == before + 1);
    fakeCudaReset();
    require(prepared.launch(scene.stream.handle()));
    int count = 0;
    const Clear *clears = fakeCudaClears(&count);
    REQUIRE(count == 1);
    CHECK(clears[0].address == workspace.address());
    const auto *own = reinterpret_cast<const uint32_t *>(uintptr_t(with.addressGiven()));
    CHECK((with.addressGiven() < workspace.address() || with.addressGiven() >= workspace.address() + 768));
    CHECK(std::all_of(own, own + 128, [](uint32_t word) { return word == 0; }));
  }
  CHECK(fakeCudaLiveAllocations() == before);
  fakeCudaReset();
  require(with.kernel->launch(scene.stream.handle(), scene.call.args)); // without a call to keep them in
  int count = 0;
  fakeCudaClears(&count);
  CHECK(count == 2);
  CHECK(with.addressGiven() == workspace.address() + 256);
}

TEST_CASE("without memory for them they lie in the workspace and are cleared") {
  Scene scene = Scene::open();
  const KernelWithZeros with(scene.device);
  DeviceBuffer workspace = require(DeviceBuffer::allocate(scene.device, 768));
  scene.call.args.workspace = workspace.data();
  scene.call.args.workspace_bytes = 768;
  constexpr int kOutOfMemory = 2;
  fakeCudaFail("cuMemAlloc_v2", kOutOfMemory, 0);
  const PreparedLaunch prepared = require(with.kernel->prepare(scene.call.args));
  fakeCudaReset();
  require(prepared.launch(scene.stream.handle()));
  int count = 0;
  fakeCudaClears(&count);
  CHECK(count == 2);
  CHECK(with.addressGiven() == workspace.address() + 256);
}

TEST_CASE("a call may be prepared without a graph") {
  Scene scene = Scene::open();
  scene.call.args.flags = HEDDLE_WITHOUT_GRAPH;
  const PreparedLaunch prepared = require(scene.kernel.prepare(scene.call.args));
  CHECK(fakeCudaLiveGraphs() == 0);
  require(prepared.launch(scene.stream.handle()));
  CHECK(fakeCudaCalls("cuLaunchKernel") == 1);
  require(scene.kernel.launch(nullptr, scene.call.args)); // which never is one
  CHECK(launched() == 2);
}

TEST_CASE(
    "[4] while a stream is captured its prepared calls are launched as kernels, and others are prepared and closed") {
  Scene scene = Scene::open();
  const PreparedLaunch prepared = require(scene.kernel.prepare(scene.call.args));
  const DeviceStream other = require(DeviceStream::create(scene.device));
  fakeCudaReset();
  REQUIRE(cuStreamBeginCapture_v2(scene.stream.handle(), 0) == 0);
  require(prepared.launch(scene.stream.handle()));
  CHECK(fakeCudaCalls("cuLaunchKernel") == 1);
  CHECK(fakeCudaCalls("cuGraphLaunch") == 0);
  {
    const PreparedLaunch later = require(scene.kernel.prepare(scene.call.args));
    CHECK(fakeCudaLiveGraphs() == 2);
    require(later.launch(other.handle()));
    CHECK(fakeCudaCalls("cuGraphLaunch") == 1);
  }
  CHECK(fakeCudaLiveGraphs() == 1);
  void *graph = nullptr;
  CHECK(cuStreamEndCapture(scene.stream.handle(), &graph) == 0);
  int mode = 1;
  fakeCudaSetCurrent(0);
  CHECK(require(Driver::open())->threadExchangeStreamCaptureMode(&mode) == cuda::kSuccess);
  CHECK(mode == 0); // as before the call was prepared
  require(Driver::open())->threadExchangeStreamCaptureMode(&mode);
}

TEST_CASE("kernels are loaded and closed while other threads or this one capture a stream") {
  Scene scene = Scene::open();
  REQUIRE(cuStreamBeginCapture_v2(scene.stream.handle(), 0) == 0);
  KernelRecord another = forwardRecord();
  another.contentKey += "2";
  const int before = fakeCudaLiveModules();
  std::optional<Kernel> loaded = require(Kernel::load(scene.device, another));
  CHECK(fakeCudaLiveModules() == before + 1);
  loaded.reset();
  CHECK(fakeCudaLiveModules() == before);
  void *graph = nullptr;
  CHECK(cuStreamEndCapture(scene.stream.handle(), &graph) == 0);
}

TEST_CASE("[5] a stream of another GPU is refused, which the driver would not do for a graph") {
  Scene scene = Scene::open();
  const PreparedLaunch prepared = require(scene.kernel.prepare(scene.call.args));
  const DeviceStream foreign = require(DeviceStream::create(require(Device::open(1))));
  fakeCudaReset();
  const Status refused = prepared.launch(foreign.handle());
  CHECK(refused.code() == StatusCode::invalidArgument);
  CHECK(refused.message().find("stream: expected one of the context that the kernel is loaded into, on GPU 0") !=
        std::string::npos);
  CHECK(launched() == 0);
}

TEST_CASE("so many graphs of a context, the other prepared calls go without") {
  Scene scene = Scene::open();
  std::vector<PreparedLaunch> graphs;
  for (int i = 0; i < kMostGraphs; ++i)
    graphs.push_back(require(scene.kernel.prepare(scene.call.args)));
  CHECK(fakeCudaLiveGraphs() == kMostGraphs);
  std::optional<PreparedLaunch> plain = require(scene.kernel.prepare(scene.call.args));
  CHECK(fakeCudaLiveGraphs() == kMostGraphs);
  fakeCudaReset();
  require(plain->launch(nullptr));
  CHECK(fakeCudaCalls("cuLaunchKernel") == 1);
  require(graphs.back().launch(nullptr));
  CHECK(fakeCudaCalls("cuGraphLaunch") == 1);
  plain.reset(); // gives no place back, for it had none
  graphs.pop_back();
  graphs.push_back(require(scene.kernel.prepare(scene.call.args)));
  graphs.push_back(require(scene.kernel.prepare(scene.call.args)));
  CHECK(fakeCudaLiveGraphs() == kMostGraphs);
  graphs.clear();
  CHECK(fakeCudaLiveGraphs() == 0);
  graphs.push_back(require(scene.kernel.prepare(scene.call.args)));
  CHECK(fakeCudaLiveGraphs() == 1);
}

TEST_CASE("where the driver makes no graph, kernels are launched, and no place is taken") {
  for (const char *symbol : {"cuGraphCreate", "cuGraphAddKernelNode_v2", "cuGraphInstantiateWithFlags"}) {
    CAPTURE(symbol);
    Scene scene = Scene::open();
    fakeCudaFail(symbol, cuda::kErrorOutOfMemory, 0);
    for (int i = 0; i < 2 * kMostGraphs; ++i) {
      const PreparedLaunch prepared = require(scene.kernel.prepare(scene.call.args));
      require(prepared.launch(scene.stream.handle()));
    }
    CHECK(fakeCudaCalls("cuLaunchKernel") == 2 * kMostGraphs);
    CHECK(fakeCudaLiveGraphs() == 0);
    fakeCudaFail(symbol, 0, 0);
    const PreparedLaunch prepared = require(scene.kernel.prepare(scene.call.args));
    CHECK(fakeCudaLiveGraphs() == 1);
  }
}

TEST_CASE("drivers whose graphs are no quicker than kernels are asked for none") {
  const std::string library = test::places().fakeCuda;
  const size_t slash = library.rfind('/');
  for (const auto &driver : {std::pair{12050, "/./"}, {12060, "/././"}}) { // they are opened once per path
    CAPTURE(driver.first);
    const auto &[version, otherPath] = driver;
    Scene scene = Scene::open();
    fakeCudaSetDriverVersion(version);
    setenv("HEDDLE_CUDA_DRIVER_LIBRARY", (library.substr(0, slash) + otherPath + library.substr(slash + 1)).c_str(), 1);
    const Kernel kernel = require(Kernel::load(require(Device::open(0)), forwardRecord()));
    const PreparedLaunch prepared = require(kernel.prepare(scene.call.args));
    CHECK(fakeCudaLiveGraphs() == (version == 12060));
    require(prepared.launch(nullptr));
  }
}

TEST_CASE("a graph that is not launched leaves the error to the kernel's launch") {
  Scene scene = Scene::open();
  const PreparedLaunch prepared = require(scene.kernel.prepare(scene.call.args));
  fakeCudaFail("cuGraphLaunch", 700, 0);
  require(prepared.launch(scene.stream.handle()));
  CHECK(launched() == 1);
  fakeCudaFail("cuLaunchKernel", 700, 0);
  CHECK(prepared.launch(scene.stream.handle()).message().find("cuLaunchKernel failed: CUDA_ERROR_ILLEGAL_ADDRESS") !=
        std::string::npos);
}

TEST_CASE("[6] threads launch one prepared call at once: every launch happens once") {
  constexpr int kThreads = 8, kLaunches = 2000;
  Scene scene = Scene::open();
  const PreparedLaunch prepared = require(scene.kernel.prepare(scene.call.args));
  fakeCudaReset();
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kLaunches; ++i)
        failures += !prepared.launch(scene.stream.handle()).isOk();
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(failures == 0);
  CHECK(launched() == kThreads * kLaunches);
  CHECK(fakeCudaCalls("cuLaunchKernel") + fakeCudaCalls("cuGraphLaunch") == kThreads * kLaunches);
  CHECK(fakeCudaCalls("cuGraphLaunch") > 0);
}
