//===- runtime_threads_test.cpp - many threads through the C interface ------===//
// With kernels that the recording driver runs, so that results can be compared; preset tsan runs the same under
// ThreadSanitizer. Numbers in brackets are the promises of runtime/Include/heddle.h.
#include "support/Places.h"
#include "device_fixture.h"
#include "runtime/Include/heddle.hpp"

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

using namespace heddle::fake;
namespace api = heddle::api;
namespace test = heddle::test;

// Of the recording driver: what a program calls to capture.
extern "C" {
int cuStreamBeginCapture_v2(heddle::cuda::Stream stream, int mode);
int cuStreamEndCapture(heddle::cuda::Stream stream, void **graph);
int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags);
int cuGraphLaunch(void *executable, heddle::cuda::Stream stream);
}

namespace {

constexpr int64_t kLongest = 16, kHeads = 2, kHeadDim = 64, kElements = kLongest * kHeads * kHeadDim;
constexpr int kThreads = 32, kLaunches = 1000, kStreams = 8;

template <class T> T require(api::Result<T> result) {
  REQUIRE_MESSAGE(result, result.status().message());
  return std::move(*result);
}

// A tensor in what the recording driver takes for device memory.
struct alignas(256) Tensor {
  uint16_t elements[kElements];
};

struct Inputs {
  Tensor q, k, v;
  Inputs() {
    std::mt19937 random(3);
    for (Tensor *tensor : {&q, &k, &v})
      for (uint16_t &element : tensor->elements)
        element = uint16_t((random() & 1) << 15 | 0x3f00 | (random() & 0xff));
  }
};

struct Outputs {
  Tensor out;
  alignas(256) float lse[kLongest * kHeads];
  bool operator==(const Outputs &other) const { return std::memcmp(this, &other, sizeof *this) == 0; }
};

api::Arguments argumentsFor(Inputs &inputs, Outputs &outputs, int64_t length) {
  auto tensor = [&](Tensor &memory) {
    return api::contiguous(memory.elements, HEDDLE_BF16, {1, length, kHeads, kHeadDim});
  };
  api::Arguments arguments;
  arguments.q = tensor(inputs.q), arguments.k = tensor(inputs.k), arguments.v = tensor(inputs.v),
  arguments.out = tensor(outputs.out);
  arguments.lse = outputs.lse;
  return arguments.size(0, 5);
}

struct Scene {
  Scene() { test::startFake(); }
  api::Store store = require(api::Store::open((test::startFake(), test::places().hostPackage), HEDDLE_OPEN_IMMUTABLE));
  api::Device device = require(api::Device::open(0));
  Inputs inputs;
  Outputs scratch;
  api::Query query{"sliding_window", argumentsFor(inputs, scratch, kLongest)};
};

// A thread's own kernel handle, results and prepared calls; a call that fails is one more wrong result.
class Caller {
public:
  Caller(Scene &scene, void *stream)
      : scene(scene), stream(stream), kernel(api::Kernel::find(scene.store, scene.device, scene.query)) {
    for (int64_t length = 1; kernel && length <= kLongest; ++length)
      if (api::Result<api::Prepared> call = kernel->prepare(argumentsFor(scene.inputs, outputs, length)))
        prepared.push_back(std::move(*call));
  }
  bool isReady() const { return prepared.size() == kLongest; }

  // Through the kernel or through the prepared call; poisoned before.
  const Outputs &launch(int64_t length, bool isPrepared) {
    std::memset(&outputs, 0x7f, sizeof outputs);
    const api::Status status = isPrepared ? prepared[length - 1].launch(stream)
                                          : kernel->launch(argumentsFor(scene.inputs, outputs, length), stream);
    if (!status)
      std::memset(&outputs, 0, sizeof outputs);
    return outputs;
  }
  // As programs do that ask before every launch.
  void findAgain() { kernel = api::Kernel::find(scene.store, scene.device, scene.query); }

private:
  Scene &scene;
  void *stream;
  api::Result<api::Kernel> kernel;
  std::vector<api::Prepared> prepared;
  Outputs outputs;
};

} // namespace

TEST_CASE("[4] [6] 32 threads, 1000 launches each, on 8 streams: the same bits as one thread") {
  auto scene = std::make_unique<Scene>();
  std::vector<Outputs> expected;
  {
    Caller caller(*scene, nullptr);
    REQUIRE(caller.isReady());
    for (int64_t length = 1; length <= kLongest; ++length)
      expected.push_back(caller.launch(length, length % 2 == 0));
  }
  CHECK(expected[0].out.elements[0] == scene->inputs.v.elements[0]); // one row keeps one key: out is v
  const heddle::Device device = test::require(heddle::Device::open(0));
  std::vector<heddle::DeviceStream> streams;
  for (int i = 0; i < kStreams; ++i)
    streams.push_back(test::require(heddle::DeviceStream::create(device)));
  fakeCudaReset();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      Caller caller(*scene, streams[t % kStreams].handle());
      if (!caller.isReady()) {
        wrong += kLaunches;
        return;
      }
      for (int i = 0; i < kLaunches; ++i) {
        const int64_t length = 1 + (t * 7 + i * 11) % kLongest;
        wrong += !(caller.launch(length, i % 3 != 0) == expected[length - 1]);
        if (i % 100 == 99)
          caller.findAgain();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(wrong == 0);
  int launches = 0;
  fakeCudaLaunches(&launches);
  CHECK(launches == kThreads * kLaunches);
  CHECK(fakeCudaCalls("cuLaunchKernel") + fakeCudaCalls("cuGraphLaunch") == launches);
}

TEST_CASE("[4] launches are captured into a graph, and run when it does") {
  auto scene = std::make_unique<Scene>();
  const heddle::DeviceStream stream =
      test::require(heddle::DeviceStream::create(test::require(heddle::Device::open(0))));
  Caller caller(*scene, stream.handle()), later(*scene, stream.handle());
  REQUIRE(caller.isReady());
  const Outputs expected = caller.launch(9, true);
  Outputs poisoned;
  std::memset(&poisoned, 0x7f, sizeof poisoned);
  for (bool isPrepared : {true, false}) {
    void *graph = nullptr, *executable = nullptr;
    REQUIRE(cuStreamBeginCapture_v2(stream.handle(), 0) == 0);
    const Outputs &captured = later.launch(9, isPrepared); // an allocation or a wait of the driver would fail now
    REQUIRE(cuStreamEndCapture(stream.handle(), &graph) == 0);
    CHECK(captured == poisoned);
    REQUIRE(cuGraphInstantiateWithFlags(&executable, graph, 0) == 0);
    REQUIRE(cuGraphLaunch(executable, stream.handle()) == 0);
    CHECK(captured == expected);
  }
}

TEST_CASE("10,000 different calls through one kernel: loaded once") {
  auto scene = std::make_unique<Scene>();
  api::Kernel kernel = require(api::Kernel::find(scene->store, scene->device, scene->query));
  int failed = 0;
  for (int i = 0; i < 10000; ++i) {
    api::Arguments arguments = argumentsFor(scene->inputs, scene->scratch, 1 + i % 2);
    arguments.k.size[1] = arguments.v.size[1] = 1 + i; // keys of one row, read again and again
    arguments.k.stride[1] = arguments.v.stride[1] = 0;
    failed += !kernel.launch(arguments);
  }
  CHECK(failed == 0);
  CHECK(fakeCudaCalls("cuModuleLoadDataEx") == 1);
  CHECK(fakeCudaCalls("cuLaunchKernel") == 10000);
}

TEST_CASE("[6] threads open, find, launch and close at the same time") {
  auto scene = std::make_unique<Scene>();
  const int modules = fakeCudaLiveModules();
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      Outputs outputs;
      for (int i = 0; i < 50; ++i) {
        api::Result<api::Device> device = api::Device::open(t % 2);
        api::Result<api::Store> own = api::Store::open(test::places().hostPackage, HEDDLE_OPEN_IMMUTABLE);
        if (!device || !own) {
          ++failures;
          continue;
        }
        api::Result<api::Kernel> kernel = api::Kernel::find(i % 2 ? scene->store : *own, *device, scene->query);
        failures += !kernel || !kernel->launch(argumentsFor(scene->inputs, outputs, 1 + i % kLongest));
        failures += api::Device::open(77).status().code() != HEDDLE_NOT_FOUND;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(failures == 0);
  CHECK(fakeCudaLiveModules() == modules);
}
