//===- FakeState.cpp - counters, orders and the control functions -----------===//
#include "FakeState.h"

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace heddle::fake {
namespace {

#define FAKE_SYMBOL(member, symbol, ...) {#symbol, 0, 0, 0},
Symbol symbols[] = {HEDDLE_CUDA_FUNCTIONS(FAKE_SYMBOL) HEDDLE_CUDA_OPTIONAL_FUNCTIONS(FAKE_SYMBOL)};
#undef FAKE_SYMBOL

Symbol *findSymbol(const char *name, size_t length) {
  for (Symbol &symbol : symbols)
    if (std::strlen(symbol.name) == length && std::strncmp(symbol.name, name, length) == 0)
      return &symbol;
  return nullptr;
}

int environmentNumber(const char *name, int otherwise) {
  const char *text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

// A number, or a word of FakeCuda.h.
int readCode(const char *text) {
  for (const auto &[word, code] : {std::pair{"crash", kCrash}, {"hang", kHang}, {"scribble", kScribble}})
    if (std::strncmp(text, word, std::strlen(word)) == 0)
      return code;
  return std::atoi(text);
}

// "symbol=code,symbol=code@skip"
void readOrders(const char *text) {
  while (text && *text) {
    const char *equals = std::strchr(text, '=');
    if (!equals)
      return;
    const char *comma = std::strchr(equals, ','), *skip = std::strchr(equals, '@');
    if (Symbol *symbol = findSymbol(text, size_t(equals - text))) {
      symbol->failCode = readCode(equals + 1);
      symbol->failSkip = skip && (!comma || skip < comma) ? std::atoi(skip + 1) : 0;
    }
    text = comma ? comma + 1 : nullptr;
  }
}

State *makeState() {
  State *made = new State;
  for (int i = 0; i < 8; ++i)
    made->contexts[i].ordinal = i;
  made->deviceCount = environmentNumber("HEDDLE_FAKE_CUDA_DEVICES", 2);
  made->arch = environmentNumber("HEDDLE_FAKE_CUDA_ARCH", 90);
  made->blockThreads = unsigned(environmentNumber("HEDDLE_FAKE_CUDA_THREADS", 512));
  readOrders(std::getenv("HEDDLE_FAKE_CUDA_FAIL"));
  return made;
}

} // namespace

State &state() {
  static State *only = makeState();
  return *only;
}

int &captureMode() {
  thread_local int mode = 0; // global
  return mode;
}

bool disturbsCapture() { return state().captures > 0 && captureMode() != cuda::kCaptureModeRelaxed; }

ContextStack &stack() {
  thread_local ContextStack own = {};
  return own;
}

cuda::ContextStruct *currentContext() { return stack().depth > 0 ? stack().entries[stack().depth - 1] : nullptr; }

// Whoever has to know that this process hangs looks for the file.
[[noreturn]] static void hang() {
  if (const char *path = std::getenv("HEDDLE_FAKE_CUDA_HANGS"))
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  for (;;)
    pause();
}

cuda::Code enter(const char *name) {
  Symbol *symbol = findSymbol(name, std::strlen(name));
  ++symbol->calls;
  ++state().nowUs;
  if (symbol->failCode != 0 && symbol->failSkip-- <= 0) {
    if (symbol->failCode == kCrash)
      std::raise(SIGSEGV);
    if (symbol->failCode == kHang)
      hang();
    if (symbol->failCode != kScribble)
      return symbol->failCode;
    for (const auto &[address, bytes] : state().allocations)
      *reinterpret_cast<unsigned char *>(address + bytes / 2) ^= 1;
  }
  bool isFree = std::strcmp(name, "cuInit") == 0 || std::strncmp(name, "cuGetError", 10) == 0;
  return state().isInitialized || isFree ? cuda::kSuccess : kNotInitialized;
}

std::shared_ptr<StreamWork> &workOf(cuda::StreamStruct *stream) {
  if (stream)
    return stream->work;
  return (currentContext() ? currentContext() : &state().contexts[0])->work;
}

bool isInside(uint64_t address, size_t bytes) {
  auto next = state().allocations.upper_bound(address);
  if (next == state().allocations.begin())
    return false;
  --next;
  return address - next->first + bytes <= next->second;
}

extern "C" {

void fakeCudaReset() {
  std::lock_guard<SpinLock> lock(state().mutex);
  for (Symbol &symbol : symbols)
    symbol.calls = symbol.failCode = symbol.failSkip = 0;
  State &now = state();
  now.arch = 90;
  now.driverVersion = 13000;
  now.expectedParamBytes = 0;
  now.jitLog[0] = 0;
  now.lastLaunch = {};
  now.launchCount = 0;
  now.clearCount = 0;
  now.lastMap = {};
  now.readsPageable = 0;
  now.launchUs = 0;
  now.poolBytes = size_t(1) << 40;
  now.owners.clear();
}

void fakeCudaFail(const char *name, int code, int skip) {
  std::lock_guard<SpinLock> lock(state().mutex);
  Symbol *symbol = findSymbol(name, std::strlen(name));
  if (!symbol)
    std::abort(); // a test names a function that does not exist
  symbol->failCode = code;
  symbol->failSkip = skip;
}

int fakeCudaCalls(const char *name) {
  std::lock_guard<SpinLock> lock(state().mutex);
  int calls = 0;
  for (const Symbol &symbol : symbols)
    if (!name || std::strcmp(symbol.name, name) == 0)
      calls += symbol.calls;
  return calls;
}

void fakeCudaExpectParams(size_t bytes) { state().expectedParamBytes = bytes; }
void fakeCudaSetArch(int arch) { state().arch = arch; }
void fakeCudaSetDriverVersion(int version) { state().driverVersion = version; }
void fakeCudaSetJitLog(const char *text) { std::strncpy(state().jitLog, text, sizeof(state().jitLog) - 1); }

void fakeCudaSetCurrent(int ordinal) {
  stack().depth = 0;
  if (ordinal < 0)
    return;
  stack().entries[0] = &state().contexts[ordinal];
  stack().depth = 1;
}

void fakeCudaSetOwner(const void *address, int ordinal) {
  state().owners[reinterpret_cast<uintptr_t>(address)] = ordinal;
}
void fakeCudaSetKernels(KernelRun run) { state().runKernel = run; }
void fakeCudaSetPageable(int isRead) { state().readsPageable = isRead; }

void fakeCudaSetLaunchUs(int us) { state().launchUs = us; }
void fakeCudaSetPoolBytes(size_t bytes) { state().poolBytes = bytes; }
int fakeCudaLivePools() { return int(state().pools.size()); }

void fakeCudaSetDevices(int count) { state().deviceCount = count; }

struct Held {
  std::shared_ptr<StreamWork> work;
  int64_t number;
};

void *fakeCudaHold(void *stream) {
  std::lock_guard<SpinLock> lock(state().mutex);
  const std::shared_ptr<StreamWork> work = workOf(static_cast<cuda::Stream>(stream));
  work->held.insert(++work->last);
  return new Held{work, work->last};
}

void fakeCudaRelease(void *held) {
  std::lock_guard<SpinLock> lock(state().mutex);
  const std::unique_ptr<Held> released(static_cast<Held *>(held));
  released->work->held.erase(released->number);
}

void *fakeCudaCurrent() { return currentContext(); }
const Launch *fakeCudaLastLaunch() { return &state().lastLaunch; }

const Launch *fakeCudaLaunches(int *count) {
  *count = state().launchCount;
  return state().launches;
}
const TensorMapCall *fakeCudaLastTensorMap() { return &state().lastMap; }
int fakeCudaLiveModules() { return int(state().modules.size()); }
int fakeCudaLiveGraphs() { return state().graphExecs; }
int fakeCudaLivePinned() { return int(state().pinned.size()); }
int fakeCudaLiveAllocations() { return int(state().allocations.size()); }

const Clear *fakeCudaClears(int *count) {
  *count = state().clearCount;
  return state().clears;
}

int fakeCudaRetainedContexts() {
  int retained = 0;
  for (const cuda::ContextStruct &context : state().contexts)
    retained += context.retained;
  return retained;
}

} // extern "C"

} // namespace heddle::fake
