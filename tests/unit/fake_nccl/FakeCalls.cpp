//===- FakeCalls.cpp - the exported functions of NCCL -----------------------===//
// With HEDDLE_FAKE_OLD_NCCL it is NCCL 2.13, which makes no communicators that do not block.
#include "SharedRanks.h"

#include "../fake_cuda/FakeCuda.h"
#include "runtime/Device/CudaDriver.h"

#include <cstdio>
#include <cstring>

// The prototypes of everything that is exported: a definition with another signature does not compile.
extern "C" {
using namespace heddle::nccl;
namespace cuda = heddle::cuda;
#define FAKE_PROTOTYPE(member, symbol, ...) __attribute__((visibility("default"))) Code symbol(__VA_ARGS__);
HEDDLE_NCCL_FUNCTIONS(FAKE_PROTOTYPE)
HEDDLE_NCCL_OPTIONAL_FUNCTIONS(FAKE_PROTOTYPE)
#undef FAKE_PROTOTYPE
#define FAKE_PROTOTYPE(member, symbol, ...) __attribute__((visibility("default"))) const char *symbol(__VA_ARGS__);
HEDDLE_NCCL_TEXTS(FAKE_PROTOTYPE)
#undef FAKE_PROTOTYPE
cuda::Code cuCtxGetDevice(cuda::DeviceOrdinal *);
cuda::Code cuStreamGetCaptureInfo_v3(cuda::Stream, int *, uint64_t *, cuda::Graph *, const cuda::GraphNode **,
                                     const void **, size_t *);
cuda::Code cuUserObjectCreate(cuda::UserObject *, void *, cuda::HostFunction, unsigned, unsigned);
cuda::Code cuGraphRetainUserObject(cuda::Graph, cuda::UserObject, unsigned, unsigned);
}

using namespace heddle::fakenccl;

namespace {

// What this thread has begun to group.
struct OpenGroup {
  int depth = 0;
  std::map<Communicator, std::shared_ptr<Operation>> operations;
};
thread_local OpenGroup openGroup;

// What is under way is done; of a blocking communicator before this returns.
Code conclude(Communicator communicator, Lock &lock) {
  if (state().isLate)
    return kSuccess;
  if (!communicator->isBlocking)
    return isWaiting(communicator) ? kInProgress : kSuccess;
  waitUntil(lock, [&] { return !isLive(communicator) || !isWaiting(communicator); });
  return isLive(communicator) ? communicator->error : kInternalError;
}

void hold(Operation &operation, cuda::Stream stream) {
  if (state().isLate)
    operation.held.push_back(heddle::fake::fakeCudaHold(stream));
}

using Count = std::shared_ptr<std::atomic<int>>;

void releaseGraph(void *held) {
  const std::unique_ptr<Count> count(static_cast<Count *>(held));
  --**count;
}

// What is captured is the graph's, and holds its communicator until it is destroyed.
void holdByGraph(Communicator communicator, cuda::Stream stream) {
  int capture = cuda::kCaptureStatusNone;
  uint64_t number = 0;
  cuda::Graph graph = nullptr;
  if (!stream ||
      cuStreamGetCaptureInfo_v3(stream, &capture, &number, &graph, nullptr, nullptr, nullptr) != cuda::kSuccess ||
      capture == cuda::kCaptureStatusNone)
    return;
  cuda::UserObject object = nullptr;
  auto held = std::make_unique<Count>(communicator->graphs);
  if (cuUserObjectCreate(&object, held.get(), &releaseGraph, 1, cuda::kUserObjectNoDestructorSync) != cuda::kSuccess)
    return;
  (void)held.release();
  ++*communicator->graphs;
  (void)cuGraphRetainUserObject(graph, object, 1, cuda::kGraphUserObjectMove);
}

// As NCCL waits for both, for ever.
bool mayEnd(Communicator communicator) {
  return *communicator->graphs == 0 && (state().stopped < 0 || state().stopped == communicator->rank);
}

bool isFinalizing(Communicator communicator) { return communicator->isFinalized && *communicator->graphs > 0; }

Code addMessage(Communicator communicator, const Message &message, DataType type, cuda::Stream stream) {
  const bool isKnown = isLive(communicator) && openGroup.depth > 0 && type == kUint8;
  if (!isKnown || message.peer < 0 || message.peer >= communicator->ranks || message.bytes == 0)
    return kInvalidArgument;
  const bool isNew = communicator->family->connected.insert({message.from != nullptr, message.peer}).second;
  if (isNew && communicator->isSplit)
    return kInvalidUsage; // it would wait for the other one
  state().atOnce += communicator->isSplit;
  std::shared_ptr<Operation> &operation = openGroup.operations[communicator];
  if (!operation)
    operation = std::make_shared<Operation>();
  (message.from ? operation->sends : operation->receives).push_back(message);
  holdByGraph(communicator, stream);
  hold(*operation, stream);
  return kSuccess;
}

// First line of an exported function: count, maybe fail.
#define FAKE_ENTER(symbol)                                                                                             \
  Lock lock(state().mutex);                                                                                            \
  if (Code fakeCode = enter(#symbol))                                                                                  \
  return fakeCode

#define FAKE_ENTER_LIVE(symbol)                                                                                        \
  FAKE_ENTER(symbol);                                                                                                  \
  if (!isLive(communicator))                                                                                           \
  return kInvalidArgument

} // namespace

extern "C" {

Code ncclGetVersion(int *version) {
  FAKE_ENTER(ncclGetVersion);
#ifdef HEDDLE_FAKE_OLD_NCCL
  *version = 21304;
#else
  *version = 22703;
#endif
  return kSuccess;
}

const char *ncclGetErrorString(Code code) {
  switch (code) {
  case kSystemError:
    return "unhandled system error";
  case kInvalidArgument:
    return "invalid argument";
  case kRemoteError:
    return "remote process exited or there was a network error";
  default:
    return "internal error";
  }
}

const char *ncclGetLastError(Communicator) { return "as the test\nordered"; }

Code ncclGetUniqueId(UniqueId *id) {
  FAKE_ENTER(ncclGetUniqueId);
  std::memset(id, 0, sizeof *id);
  const std::string path = SharedRanks::newPath();
  if (path.size() >= sizeof id->internal)
    return kSystemError;
  if (path.empty())
    std::snprintf(id->internal, sizeof id->internal, "group %d", state().ids++);
  else
    path.copy(id->internal, path.size());
  return kSuccess;
}

#ifndef HEDDLE_FAKE_OLD_NCCL
Code ncclCommInitRankConfig(Communicator *made, int ranks, UniqueId id, int rank, Config *config) {
  FAKE_ENTER(ncclCommInitRankConfig);
  cuda::DeviceOrdinal device = 0;
  const bool isKnown =
      config->size == sizeof *config && config->magic == kConfigMagic && config->blocking == 0 && config->maxCTAs > 0;
  if (!isKnown || cuCtxGetDevice(&device) != cuda::kSuccess)
    return kInvalidArgument;
  *made = makeCommunicator(std::string(id.internal, sizeof id.internal), rank, ranks, device, false);
  if (!*made)
    return kSystemError;
  (*made)->sharesConnections = config->splitShare == 1;
  return kInProgress;
}

// It blocks, and takes only messages between ranks that have met before this way, which NCCL enqueues without waiting for anybody.
Code ncclCommSplit(Communicator communicator, int colour, int, Communicator *made, Config *config) {
  FAKE_ENTER_LIVE(ncclCommSplit);
  if (!communicator->sharesConnections || isWaiting(communicator) || colour != 0 || config->blocking != 1)
    return kInvalidArgument;
  *made = splitCommunicator(communicator);
  return *made ? kInProgress : kSystemError;
}

Code ncclCommFinalize(Communicator communicator) {
  FAKE_ENTER_LIVE(ncclCommFinalize);
  communicator->isFinalized = true;
  return isWaiting(communicator) || isFinalizing(communicator) ? kInProgress : kSuccess;
}
#endif

Code ncclCommCount(Communicator communicator, int *count) {
  FAKE_ENTER_LIVE(ncclCommCount);
  *count = communicator->ranks;
  return kSuccess;
}

Code ncclCommUserRank(Communicator communicator, int *rank) {
  FAKE_ENTER_LIVE(ncclCommUserRank);
  *rank = communicator->rank;
  return kSuccess;
}

Code ncclCommCuDevice(Communicator communicator, int *device) {
  FAKE_ENTER_LIVE(ncclCommCuDevice);
  *device = communicator->device;
  return kSuccess;
}

Code ncclCommGetAsyncError(Communicator communicator, Code *error) {
  FAKE_ENTER_LIVE(ncclCommGetAsyncError);
  const bool isInProgress = !communicator->isBlocking && isWaiting(communicator);
  if (isInProgress)
    waitUntil(lock,
              [&] { return !isLive(communicator) || haveCome(*communicator->group) || !isWaiting(communicator); });
  if (!isLive(communicator))
    return kInvalidArgument;
  const auto ordered = state().errors.find(communicator->rank);
  *error = communicator->error;
  if (ordered != state().errors.end())
    *error = ordered->second;
  const bool isToldOfWait = !state().isLate || !isComplete(communicator);
  const bool isUnderWay = isInProgress && isWaiting(communicator) && isToldOfWait;
  if (*error == kSuccess && (isUnderWay || isFinalizing(communicator)))
    *error = kInProgress;
  return kSuccess;
}

Code ncclCommAbort(Communicator communicator) {
  FAKE_ENTER_LIVE(ncclCommAbort);
  waitUntil(lock, [&] { return mayEnd(communicator); });
  end(communicator);
  return kSuccess;
}

Code ncclCommDestroy(Communicator communicator) {
  FAKE_ENTER_LIVE(ncclCommDestroy);
  waitUntil(lock, [&] { return mayEnd(communicator); });
  end(communicator);
  return kSuccess;
}

Code ncclGroupStart() {
  FAKE_ENTER(ncclGroupStart);
  ++openGroup.depth;
  return kSuccess;
}

Code ncclGroupEnd() {
  Lock lock(state().mutex);
  std::map<Communicator, std::shared_ptr<Operation>> operations;
  if (--openGroup.depth == 0)
    operations.swap(openGroup.operations);
  if (Code code = enter("ncclGroupEnd"))
    return code;
  Code result = kSuccess;
  for (auto &[communicator, operation] : operations) {
    post(communicator, operation);
    const Code code = conclude(communicator, lock);
    result = code != kSuccess ? code : result;
  }
  return result;
}

Code ncclSend(const void *from, size_t count, DataType type, int peer, Communicator communicator, cuda::Stream stream) {
  FAKE_ENTER(ncclSend);
  return addMessage(communicator, {peer, from, nullptr, count}, type, stream);
}

Code ncclRecv(void *to, size_t count, DataType type, int peer, Communicator communicator, cuda::Stream stream) {
  FAKE_ENTER(ncclRecv);
  return addMessage(communicator, {peer, nullptr, to, count}, type, stream);
}

Code ncclAllGather(const void *own, void *all, size_t count, DataType type, Communicator communicator,
                   cuda::Stream stream) {
  FAKE_ENTER_LIVE(ncclAllGather);
  std::shared_ptr<Operation> &operation = openGroup.operations[communicator];
  if (type != kUint8 || openGroup.depth == 0 || operation)
    return kInvalidUsage;
  operation = std::make_shared<Operation>();
  operation->isGather = true;
  operation->own = own;
  operation->all = all;
  operation->bytes = count;
  hold(*operation, stream);
  return kSuccess;
}

} // extern "C"
