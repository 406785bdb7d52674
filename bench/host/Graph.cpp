//===- Graph.cpp - launches captured into a CUDA graph ----------------------===//
// Owns the few driver functions for graphs, which the runtime itself does not need.
#include "Scene.h"

#include "runtime/Device/DeviceState.h"

#include <cstdlib>
#include <dlfcn.h>

namespace hostcost {
namespace {

using heddle::cuda::Code;
using heddle::cuda::Stream;

struct GraphFunctions {
  Code (*beginCapture)(Stream stream, int mode);
  Code (*endCapture)(Stream stream, void **graph);
  Code (*instantiate)(void **executable, void *graph, unsigned long long flags);
  Code (*launch)(void *executable, Stream stream);

  static Result<GraphFunctions> open() {
    const char *named = std::getenv("HEDDLE_CUDA_DRIVER_LIBRARY");
    void *library = dlopen(named && *named ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    GraphFunctions functions;
    const std::pair<const char *, void **> symbols[] = {
        {"cuStreamBeginCapture_v2", reinterpret_cast<void **>(&functions.beginCapture)},
        {"cuStreamEndCapture", reinterpret_cast<void **>(&functions.endCapture)},
        {"cuGraphInstantiateWithFlags", reinterpret_cast<void **>(&functions.instantiate)},
        {"cuGraphLaunch", reinterpret_cast<void **>(&functions.launch)}};
    for (const auto &[symbol, function] : symbols)
      if (!library || !(*function = dlsym(library, symbol)))
        return Status::unavailable("graph: the driver has no " + std::string(symbol));
    return functions;
  }
};

using Results = std::vector<std::vector<uint16_t>>;

int64_t rowsOf(int64_t call) { return 65 + call; }

Result<Results> readAll(const Scene &scene, const Tensors &tensors, Stream stream) {
  Results results;
  for (int64_t i = 0; i < scene.options.graphLaunches; ++i) {
    HEDDLE_ASSIGN(std::vector<uint16_t> result, tensors.read(rowsOf(i), i, stream));
    results.push_back(std::move(result));
  }
  return results;
}

Status launchAll(const std::vector<Call> &calls, Stream stream) {
  for (const Call &call : calls)
    HEDDLE_TRY(said(call.prepared.launch(stream)));
  return {};
}

// The graph that the launches make, ready to run.
Result<void *> capture(const Scene &scene, const GraphFunctions &functions, const std::vector<Call> &calls,
                       Stream stream) {
  constexpr int kGlobalMode = 0; // nothing in the process may do what a capture forbids
  const Driver &driver = *scene.device.state()->driver;
  void *graph = nullptr, *executable = nullptr;
  HEDDLE_TRY(driver.check(functions.beginCapture(stream, kGlobalMode), "graph", "cuStreamBeginCapture"));
  const Status launched = launchAll(calls, stream);
  const Status ended = driver.check(functions.endCapture(stream, &graph), "graph", "cuStreamEndCapture");
  HEDDLE_TRY(launched);
  HEDDLE_TRY(ended);
  HEDDLE_TRY(driver.check(functions.instantiate(&executable, graph, 0), "graph", "cuGraphInstantiateWithFlags"));
  return executable; // until the end of the process
}

} // namespace

// Calls of different lengths, launched one by one, and again as one graph.
Result<Json> tryGraph(Scene &scene) {
  HEDDLE_ASSIGN(const GraphFunctions functions, GraphFunctions::open());
  const Driver &driver = *scene.device.state()->driver;
  const int64_t count = scene.options.graphLaunches;
  HEDDLE_ASSIGN(Tensors tensors, Tensors::allocate(scene, rowsOf(count), true, count));
  HEDDLE_ASSIGN(const DeviceStream stream, DeviceStream::create(scene.device));
  std::vector<Call> calls;
  for (int64_t i = 0; i < count; ++i) {
    HEDDLE_ASSIGN(Call call, Call::prepare(scene, tensors.arguments(rowsOf(i), i)));
    calls.push_back(std::move(call));
  }
  HEDDLE_TRY(launchAll(calls, stream.handle()));
  HEDDLE_ASSIGN(const Results expected, readAll(scene, tensors, stream.handle()));
  HEDDLE_TRY(tensors.poison());
  HEDDLE_ASSIGN(void *executable, capture(scene, functions, calls, stream.handle()));
  HEDDLE_ASSIGN(const Results untouched, readAll(scene, tensors, stream.handle()));
  if (untouched == expected)
    return Status::internal("graph: launches ran while they were captured");
  for (int replay = 0; replay < 2; ++replay) {
    HEDDLE_TRY(tensors.poison());
    const Clock::time_point begin = Clock::now();
    HEDDLE_TRY(driver.check(functions.launch(executable, stream.handle()), "graph", "cuGraphLaunch"));
    HEDDLE_TRY(scene.device.synchronize(stream.handle()));
    const double us = microsecondsSince(begin);
    HEDDLE_ASSIGN(const Results results, readAll(scene, tensors, stream.handle()));
    if (results != expected)
      return Status::internal("graph: results differ from those of single launches");
    if (replay == 1)
      return Json().add("launches", count).add("same_bits", true).add("us", us);
  }
  return Status::internal("graph: no replay");
}

} // namespace hostcost
