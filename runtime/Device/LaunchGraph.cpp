#include "runtime/Device/LaunchGraph.h"

namespace heddle {
namespace {

// From CUDA 12.6 on the driver launches chains of nodes at a constant cost; before, a graph of one kernel gained little
// or nothing.
constexpr int kFirstQuickDriver = 12060;

bool hasQuickGraphs(const Driver &driver) {
  return driver.version >= kFirstQuickDriver && driver.graphCreate && driver.graphDestroy &&
         driver.graphAddKernelNode && driver.graphAddMemsetNode && driver.graphInstantiate && driver.graphLaunch &&
         driver.graphExecDestroy && driver.streamIsCapturing && driver.streamGetCtx &&
         driver.threadExchangeStreamCaptureMode;
}

// One of the places of a context for its own lifetime.
class GraphPlace {
public:
  explicit GraphPlace(DeviceState &state) : state(state), isFree(state.graphCount.fetch_add(1) < kMaxGraphs) {}
  ~GraphPlace() {
    if (!isKept)
      --state.graphCount;
  }
  GraphPlace(const GraphPlace &) = delete;
  GraphPlace &operator=(const GraphPlace &) = delete;
  bool isTaken() const { return !isFree; }
  void keep() { isKept = true; }

private:
  DeviceState &state;
  const bool isFree;
  bool isKept = false;
};

// A chain: every node waits for the one before.
class Chain {
public:
  explicit Chain(const DeviceState &state) : driver(*state.driver), context(state.context) {
    isWhole = ok(driver.graphCreate(&graph, 0));
  }
  ~Chain() {
    if (graph)
      driver.graphDestroy(graph);
  }
  Chain(const Chain &) = delete;
  Chain &operator=(const Chain &) = delete;

  void add(const EvaluatedCall::Clear &clear) {
    constexpr unsigned kWordBytes = 4;
    const cuda::MemsetNodeParams params{clear.address, 0, clear.value, kWordBytes, clear.words, 1};
    cuda::GraphNode node = nullptr;
    isWhole = isWhole && ok(driver.graphAddMemsetNode(&node, graph, before(), beforeCount(), &params, context));
    last = node;
  }

  void add(cuda::Function function, const EvaluatedLaunch &launch, unsigned char *block) {
    void *params[] = {block};
    const LaunchGeometry &geometry = launch.geometry;
    const cuda::KernelNodeParams asked{function,
                                       unsigned(geometry.grid[0]),
                                       unsigned(geometry.grid[1]),
                                       unsigned(geometry.grid[2]),
                                       unsigned(geometry.block),
                                       1,
                                       1,
                                       unsigned(geometry.sharedBytes),
                                       params,
                                       nullptr,
                                       nullptr,
                                       context};
    cuda::GraphNode node = nullptr;
    isWhole = isWhole && ok(driver.graphAddKernelNode(&node, graph, before(), beforeCount(), &asked));
    last = node;
  }

  // Null on failure.
  cuda::GraphExec instantiate() const {
    cuda::GraphExec executable = nullptr;
    return isWhole && last && ok(driver.graphInstantiate(&executable, graph, 0)) ? executable : nullptr;
  }

private:
  static bool ok(cuda::Code code) { return code == cuda::kSuccess; }
  const cuda::GraphNode *before() const { return last ? &last : nullptr; }
  size_t beforeCount() const { return last ? 1 : 0; }

  const Driver &driver;
  const cuda::Context context;
  cuda::Graph graph = nullptr;
  cuda::GraphNode last = nullptr;
  bool isWhole = false;
};

cuda::GraphExec instantiate(const LoadedKernel &kernel, const EvaluatedCall &call) {
  Chain chain(*kernel.device.state());
  for (size_t i = 0; i < kernel.codes.size(); ++i) {
    const EvaluatedLaunch &launch = call.launches[i];
    if (launch.geometry.isEmpty())
      continue;
    for (int clear = i == 0 ? 0 : call.launches[i - 1].clearEnd; clear < launch.clearEnd; ++clear)
      chain.add(call.clears[clear]);
    chain.add(kernel.codes[i].function, launch, call.params + launch.paramBegin);
  }
  return chain.instantiate();
}

// The driver takes graphs for streams of any context, and refuses to capture their launches.
bool takesGraphs(const DeviceState &state, cuda::Stream stream) {
  int capture = cuda::kCaptureStatusNone;
  if (state.driver->streamIsCapturing(stream, &capture) != cuda::kSuccess || capture != cuda::kCaptureStatusNone)
    return false;
  cuda::Context owner = nullptr;
  return !stream || (state.driver->streamGetCtx(stream, &owner) == cuda::kSuccess && owner == state.context);
}

} // namespace

std::unique_ptr<LaunchGraph> LaunchGraph::make(const LoadedKernel &kernel, const EvaluatedCall &call) {
  DeviceState &state = *kernel.device.state();
  GraphPlace place(state);
  ContextScope scope(state);
  if (place.isTaken() || !hasQuickGraphs(*state.driver) || !scope.status("prepare").isOk())
    return nullptr;
  const RelaxedCapture relaxed(*state.driver);
  std::unique_ptr<LaunchGraph> result(new LaunchGraph(state));
  result->executable = instantiate(kernel, call);
  if (!result->executable)
    return nullptr;
  place.keep();
  return result;
}

LaunchGraph::~LaunchGraph() {
  if (!executable)
    return;
  --state.graphCount;
  if (state.isAbandoned)
    return;
  const ContextScope scope(state);
  const RelaxedCapture relaxed(*state.driver);
  state.driver->graphExecDestroy(executable);
}

bool LaunchGraph::launch(cuda::Stream stream) const {
  ContextScope scope(state);
  if (!scope.isCurrent() || isLaunching.test_and_set(std::memory_order_acquire))
    return false;
  const bool isLaunched = takesGraphs(state, stream) && state.driver->graphLaunch(executable, stream) == cuda::kSuccess;
  isLaunching.clear(std::memory_order_release);
  return isLaunched;
}

} // namespace heddle
