//===- FakeState.h - the inside of the recording driver ---------------------===//
// Owns the state that the exported functions share. Recording allocates nothing, so that tests can count the
// allocations of a launch.
#ifndef HEDDLE_TESTS_UNIT_FAKE_CUDA_FAKESTATE_H
#define HEDDLE_TESTS_UNIT_FAKE_CUDA_FAKESTATE_H

#include "FakeCuda.h"
#include "HostKernel.h"
#include "SpinLock.h"
#include "runtime/Device/CudaDriver.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <sched.h>
#include <set>
#include <string>
#include <utility>
#include <vector>

// The prototypes of everything that is exported: a definition with another signature does not compile.
extern "C" {
using namespace heddle::cuda;
#define FAKE_PROTOTYPE(member, symbol, ...) __attribute__((visibility("default"))) Code symbol(__VA_ARGS__);
HEDDLE_CUDA_FUNCTIONS(FAKE_PROTOTYPE)
HEDDLE_CUDA_OPTIONAL_FUNCTIONS(FAKE_PROTOTYPE)
#undef FAKE_PROTOTYPE
}

namespace heddle::fake {
// A launch or a clear that was captured or added.
struct GraphNode {
  bool isClear;
  Clear clear;
  cuda::Function function;
  Launch launch; // without a stream
};
} // namespace heddle::fake

// The driver's handle types are opaque to the runtime; here they are these.
namespace heddle::fake {
// What a stream has to do, by numbers; everything is done at once but what tests hold.
struct StreamWork {
  int64_t last = 0;
  std::set<int64_t> held;
  bool isDone(int64_t number) const { return held.empty() || *held.begin() > number; }
};
} // namespace heddle::fake

namespace heddle::cuda {
struct GraphStruct;
struct ContextStruct {
  int ordinal = 0;
  int retained = 0;
  std::shared_ptr<heddle::fake::StreamWork> work =
      std::make_shared<heddle::fake::StreamWork>(); // of its default stream
};
struct ModuleStruct {
  ContextStruct *context;
  heddle::fake::HostKernel hostKernel; // null: launches are only recorded
};
struct FunctionStruct {
  ModuleStruct *module;
  char name[64];
  int maxDynamicShared;
};
struct StreamStruct {
  ContextStruct *context;
  GraphStruct *capture; // null: launches happen
  std::shared_ptr<heddle::fake::StreamWork> work = std::make_shared<heddle::fake::StreamWork>();
  bool isUnjoined = false; // captured as what waits for a captured stream, which does not wait for its last work
};
// What begin and end of a capture give, or what the nodes were added to.
struct GraphNodeStruct {};
// Of a program; nobody owns it but the graphs that hold it.
struct UserObjectStruct {
  void *object;
  heddle::cuda::HostFunction destroy;
  ~UserObjectStruct() { destroy(object); }
};
using HeldObjects = std::vector<std::shared_ptr<UserObjectStruct>>;
struct GraphStruct {
  std::vector<heddle::fake::GraphNode> nodes;
  GraphNodeStruct last;                   // what the last node is called
  std::vector<StreamStruct *> forks = {}; // captured as they wait for a stream that is
  HeldObjects objects = {};
  uint64_t capture = 0; // its number
};
struct GraphExecStruct {
  std::vector<heddle::fake::GraphNode> nodes;
  HeldObjects objects = {};
};
struct EventStruct {
  ContextStruct *context;
  bool isRecorded;
  int64_t recordedUs;
  std::shared_ptr<heddle::fake::StreamWork> work = nullptr; // it is behind
  int64_t number = 0;
  StreamStruct *captured = nullptr; // the stream, if it was captured when it was recorded
  bool isReached() const { return !work || work->isDone(number); }
};
} // namespace heddle::cuda

namespace heddle::fake {

constexpr cuda::Code kInvalidContext = cuda::kErrorInvalidContext;
constexpr cuda::Code kInvalidHandle = cuda::kErrorInvalidHandle;
constexpr cuda::Code kNotFound = 500;
constexpr cuda::Code kInvalidDevice = 101;
constexpr cuda::Code kCaptureUnsupported = 900;
constexpr cuda::Code kCaptureUnjoined = 904, kCaptureIsolation = 905, kCapturedEvent = 907;
constexpr cuda::Code kNotInitialized = 3;
constexpr cuda::Code kCrash = -1, kHang = -2, kScribble = -3; // orders, no codes

// One counter and one order per exported symbol.
struct Symbol {
  const char *name;
  int calls;
  int failCode;
  int failSkip;
};

struct State {
  SpinLock mutex;
  bool isInitialized = false;
  int deviceCount = 2, arch = 90, driverVersion = 13000;
  unsigned blockThreads = 512; // that a kernel may have
  size_t expectedParamBytes = 0;
  int readsPageable = 0;
  std::map<uint64_t, int> owners; // of addresses out of reach
  char jitLog[256] = {};
  cuda::ContextStruct contexts[8];
  std::map<uint64_t, size_t> allocations;
  std::map<void *, size_t> pinned; // memory of the host
  std::set<const void *> handles;  // modules, functions, streams, events
  std::set<const void *> modules;
  Launch lastLaunch = {};
  Launch launches[16] = {};
  int launchCount = 0;
  Clear clears[64] = {};
  int clearCount = 0;
  TensorMapCall lastMap = {};
  size_t poolBytes = size_t(1) << 40; // the most that a pool may hold
  std::set<cuda::MemPool> pools;
  int launchUs = 0;  // that a launch takes
  int64_t nowUs = 0; // by the clock of events: every call takes a microsecond
  KernelRun runKernel = nullptr;
  int captures = 0; // streams that are captured
  uint64_t lastCapture = 0;
  int graphExecs = 0;
};

State &state();
// Counts the call; non-zero: return that.
cuda::Code enter(const char *symbol);
// The contexts pushed by this thread; top is current.
struct ContextStack {
  cuda::ContextStruct *entries[16];
  int depth;
};
ContextStack &stack();
cuda::ContextStruct *currentContext();
// Work is given to it: whoever waits for it must wait once more.
inline void noteFork(cuda::Stream stream) {
  if (stream && stream->capture)
    stream->isUnjoined = true;
}
// Of this thread, as cuThreadExchangeStreamCaptureMode has it.
int &captureMode();
// A stream is captured, and this thread has not relaxed its mode.
bool disturbsCapture();
std::shared_ptr<StreamWork> &workOf(cuda::StreamStruct *stream);
// Pools give back what they hold beyond their thresholds, as they do when a stream is waited for.
void settlePools();
// True if the bytes lie in one allocation.
bool isInside(uint64_t address, size_t bytes);

// What launches and clears are, happening at once or as nodes of a graph. The state is locked, but for the runs of host
// kernels, which may take their time and run side by side.
cuda::Code describeLaunch(const cuda::KernelNodeParams &asked, Launch &launch);
void noteLaunch(const Launch &launch, cuda::Stream stream);
void clearWords(const Clear &clear, cuda::Stream stream);

} // namespace heddle::fake

// First line of an exported function: count, maybe fail.
#define FAKE_ENTER(symbol)                                                                                             \
  std::lock_guard<heddle::fake::SpinLock> fakeLock(heddle::fake::state().mutex);                                       \
  if (heddle::cuda::Code fakeCode = heddle::fake::enter(#symbol))                                                      \
  return fakeCode
// The same for functions that need a current context.
#define FAKE_ENTER_CONTEXT(symbol)                                                                                     \
  FAKE_ENTER(symbol);                                                                                                  \
  if (!heddle::fake::currentContext())                                                                                 \
  return heddle::fake::kInvalidContext
// The same for functions that may not be called while a stream is captured, but by threads with a relaxed mode.
#define FAKE_ENTER_UNCAPTURED(symbol)                                                                                  \
  FAKE_ENTER_CONTEXT(symbol);                                                                                          \
  if (heddle::fake::disturbsCapture())                                                                                 \
  return heddle::fake::kCaptureUnsupported

#endif
