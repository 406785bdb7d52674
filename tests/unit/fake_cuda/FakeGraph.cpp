//===- FakeGraph.cpp - the exported driver functions for graphs -------------===//
// The runtime calls none of them; programs that capture its launches do. A graph keeps launches and clears in their order, with
// copies of the parameters, as the driver does. What must not happen while anything is captured (allocate, load, wait) fails with the
// driver's code for that.
#include "FakeState.h"

using namespace heddle::cuda;
using namespace heddle::fake;

extern "C" {

__attribute__((visibility("default"))) Code cuStreamBeginCapture_v2(Stream stream, int) {
  std::lock_guard<SpinLock> lock(state().mutex);
  if (!stream || !state().handles.count(stream) || stream->capture)
    return kErrorInvalidValue;
  stream->capture = new Graph;
  ++state().captures;
  return kSuccess;
}

__attribute__((visibility("default"))) Code cuStreamEndCapture(Stream stream, void **graph) {
  std::lock_guard<SpinLock> lock(state().mutex);
  if (!stream || !state().handles.count(stream) || !stream->capture)
    return kErrorInvalidValue;
  *graph = std::exchange(stream->capture, nullptr);
  --state().captures;
  return kSuccess;
}

// Graphs and what is made of them live as long as the process.
__attribute__((visibility("default"))) Code cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long) {
  *executable = graph;
  return graph ? kSuccess : kErrorInvalidValue;
}

__attribute__((visibility("default"))) Code cuGraphLaunch(void *executable, Stream) {
  for (const GraphNode &node : static_cast<Graph *>(executable)->nodes) {
    if (node.hostKernel)
      node.hostKernel(node.params, node.grid);
    for (size_t i = 0; i < node.clear.words; ++i)
      reinterpret_cast<unsigned *>(static_cast<uintptr_t>(node.clear.address))[i] = node.clear.value;
  }
  return kSuccess;
}

} // extern "C"
