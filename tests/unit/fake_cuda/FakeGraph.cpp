//===- FakeGraph.cpp - the exported driver functions for graphs -------------===//
// A graph keeps launches and clears in their order, with copies of the parameters, as the driver does; those of
// prepared calls are made by the runtime, those of captures by programs. What must not happen while anything is
// captured (allocate, load, wait, make or destroy a graph in a thread that has not relaxed its mode) fails with the
// driver's code for that. Graphs are launched on streams of any context.
#include "FakeState.h"

using namespace heddle::cuda;
using namespace heddle::fake;

namespace {

// A node waits for the one before, which is what the runtime asks for; anything else is refused.
Code addNode(GraphNodeStruct **node, GraphStruct *graph, GraphNodeStruct *const *before, size_t beforeCount,
             const heddle::fake::GraphNode &added) {
  if (!graph || beforeCount != (graph->nodes.empty() ? 0 : 1) || (beforeCount && *before != &graph->last))
    return kErrorInvalidValue;
  graph->nodes.push_back(added);
  *node = &graph->last;
  return kSuccess;
}

Code checkGraphLaunch(Stream stream) {
  FAKE_ENTER(cuGraphLaunch);
  if (!stream && !currentContext())
    return kInvalidContext;
  if (stream && !state().handles.count(stream))
    return kInvalidHandle;
  return stream && stream->capture ? kCaptureUnsupported : kSuccess;
}

void noteNode(const heddle::fake::GraphNode &node, Stream stream) {
  std::lock_guard<SpinLock> lock(state().mutex);
  if (node.isClear)
    clearWords(node.clear, stream);
  else
    noteLaunch(node.launch, stream);
}

} // namespace

extern "C" {

__attribute__((visibility("default"))) Code cuStreamBeginCapture_v2(Stream stream, int) {
  std::lock_guard<SpinLock> lock(state().mutex);
  if (!stream || !state().handles.count(stream) || stream->capture)
    return kErrorInvalidValue;
  stream->capture = new GraphStruct;
  stream->capture->capture = ++state().lastCapture;
  ++state().captures;
  return kSuccess;
}

__attribute__((visibility("default"))) Code cuStreamEndCapture(Stream stream, Graph *graph) {
  std::lock_guard<SpinLock> lock(state().mutex);
  if (!stream || !state().handles.count(stream) || !stream->capture)
    return kErrorInvalidValue;
  *graph = std::exchange(stream->capture, nullptr);
  --state().captures;
  bool isJoined = true;
  for (StreamStruct *fork : (*graph)->forks) {
    isJoined &= !fork->isUnjoined;
    fork->capture = nullptr, fork->isUnjoined = false;
  }
  if (isJoined)
    return kSuccess;
  delete std::exchange(*graph, nullptr);
  return heddle::fake::kCaptureUnjoined;
}

Code cuStreamIsCapturing(Stream stream, int *status) {
  FAKE_ENTER(cuStreamIsCapturing);
  if (stream && !state().handles.count(stream))
    return kInvalidHandle;
  *status = stream && stream->capture ? 1 : kCaptureStatusNone;
  return kSuccess;
}

Code cuStreamGetCaptureInfo_v3(Stream stream, int *status, uint64_t *number, Graph *graph,
                               const heddle::cuda::GraphNode **, const void **, size_t *) {
  FAKE_ENTER(cuStreamGetCaptureInfo_v3);
  if (!stream || !state().handles.count(stream))
    return kInvalidHandle;
  *status = stream->capture ? 1 : kCaptureStatusNone;
  if (stream->capture)
    *number = stream->capture->capture, *graph = stream->capture;
  return kSuccess;
}

// Flags: nobody waits for the end of what it destroys; the one reference is the caller's.
Code cuUserObjectCreate(UserObject *made, void *object, HostFunction destroy, unsigned references, unsigned flags) {
  FAKE_ENTER(cuUserObjectCreate);
  if (!destroy || references != 1 || flags != kUserObjectNoDestructorSync)
    return kErrorInvalidValue;
  *made = new UserObjectStruct{object, destroy};
  return kSuccess;
}

Code cuGraphRetainUserObject(Graph graph, UserObject object, unsigned references, unsigned flags) {
  FAKE_ENTER(cuGraphRetainUserObject);
  if (!graph || !object || references != 1 || flags != kGraphUserObjectMove)
    return kErrorInvalidValue;
  graph->objects.emplace_back(object);
  return kSuccess;
}

Code cuThreadExchangeStreamCaptureMode(int *mode) {
  FAKE_ENTER(cuThreadExchangeStreamCaptureMode);
  std::swap(*mode, captureMode());
  return kSuccess;
}

Code cuGraphCreate(Graph *graph, unsigned) {
  FAKE_ENTER(cuGraphCreate);
  *graph = new GraphStruct;
  return kSuccess;
}

Code cuGraphDestroy(Graph graph) {
  FAKE_ENTER(cuGraphDestroy);
  delete graph;
  return kSuccess;
}

Code cuGraphAddKernelNode_v2(heddle::cuda::GraphNode *node, Graph graph, const heddle::cuda::GraphNode *before,
                             size_t beforeCount, const KernelNodeParams *asked) {
  FAKE_ENTER_CONTEXT(cuGraphAddKernelNode_v2);
  heddle::fake::GraphNode added = {false, {}, asked->function, {}};
  if (Code code = describeLaunch(*asked, added.launch))
    return code;
  return addNode(node, graph, before, beforeCount, added);
}

Code cuGraphAddMemsetNode(heddle::cuda::GraphNode *node, Graph graph, const heddle::cuda::GraphNode *before,
                          size_t beforeCount, const MemsetNodeParams *asked, Context context) {
  FAKE_ENTER(cuGraphAddMemsetNode);
  const bool isPossible = context && asked->elementBytes == 4 && asked->height == 1 && asked->address % 4 == 0 &&
                          isInside(asked->address, asked->width * asked->elementBytes);
  if (!isPossible)
    return kErrorInvalidValue;
  return addNode(node, graph, before, beforeCount,
                 {true, {asked->address, asked->value, asked->width, nullptr}, nullptr, {}});
}

Code cuGraphInstantiateWithFlags(GraphExec *executable, Graph graph, unsigned long long) {
  FAKE_ENTER(cuGraphInstantiateWithFlags);
  if (disturbsCapture())
    return kCaptureUnsupported;
  if (!graph)
    return kErrorInvalidValue;
  *executable = new GraphExecStruct{graph->nodes, graph->objects};
  ++state().graphExecs;
  return kSuccess;
}

Code cuGraphLaunch(GraphExec executable, Stream stream) {
  if (Code code = checkGraphLaunch(stream))
    return code;
  for (heddle::fake::GraphNode &node : executable->nodes) {
    noteNode(node, stream);
    if (!node.isClear && node.function->module->hostKernel) // without the lock, as cuLaunchKernel
      node.function->module->hostKernel(node.launch.params, node.launch.grid);
  }
  return kSuccess;
}

Code cuGraphExecDestroy(GraphExec executable) {
  FAKE_ENTER(cuGraphExecDestroy);
  if (disturbsCapture())
    return kCaptureUnsupported;
  --state().graphExecs;
  delete executable;
  return kSuccess;
}

} // extern "C"
