//===- FakeCuda.h - the control side of the recording driver ----------------===//
// Owns what tests may ask of and order from libheddle_fake_cuda.so, a stand-in for libcuda.so.1: it counts
// calls, keeps launches, emulates device memory in host memory and fails on command. It checks what a
// real driver would: a current context, live handles, addresses inside allocations, the parameter size. Its events tell a
// time of its own, in which every call takes a microsecond, so that what is measured does not depend on the machine.
// Environment, for whole programs: HEDDLE_FAKE_CUDA_FAIL="cuInit=100,cuMemAlloc_v2=2@5" (after 5 good calls; in the
// place of a code, crash takes the process down, hang never returns, scribble flips a bit amid every allocation), HEDDLE_FAKE_CUDA_HANGS (a file that is made by who hangs),
// HEDDLE_FAKE_CUDA_DEVICES (default 2), HEDDLE_FAKE_CUDA_NAME (default Fake GPU), HEDDLE_FAKE_CUDA_ARCH (default 90), HEDDLE_FAKE_CUDA_THREADS (of a block,
// default 512), HEDDLE_FAKE_CUDA_PARAMS (a file that gets the parameters of each launch in the place of those of the
// last one).
#ifndef HEDDLE_TESTS_UNIT_FAKE_CUDA_FAKECUDA_H
#define HEDDLE_TESTS_UNIT_FAKE_CUDA_FAKECUDA_H

#include <cstddef>
#include <cstdint>

namespace heddle::fake {

struct Launch {
  unsigned grid[3], block[3], sharedBytes;
  void *stream;
  void *context;
  const char *entry; // name of the function
  const void *function;
  int clearsBefore; // of those recorded
  size_t paramBytes;
  alignas(64) unsigned char params[4096];
};

struct Clear {
  uint64_t address;
  unsigned value;
  size_t words;
  void *stream;
};

struct TensorMapCall {
  int dtype, swizzle;
  uint32_t rank;
  void *address;
  uint64_t dims[5], strides[4];
  uint32_t box[5], steps[5];
};

extern "C" {
// Forgets counters, orders and records; handles and memory stay.
void fakeCudaReset();
// The next calls of `symbol` return `code`, after `skip` good ones. Code 0 ends it.
void fakeCudaFail(const char *symbol, int code, int skip);
// Calls of one symbol since the reset, or of all for null.
int fakeCudaCalls(const char *symbol);
// Parameter bytes that launches must have; 0: any.
void fakeCudaExpectParams(size_t bytes);
// The GPU that later calls describe: 90 is compute capability 9.0.
void fakeCudaSetArch(int arch);
void fakeCudaSetDriverVersion(int version);
// Text that the next failing module load writes into its log.
void fakeCudaSetJitLog(const char *text);
// Makes this thread's current context null, or the primary one of a GPU (retained for good).
void fakeCudaSetCurrent(int ordinal);
void *fakeCudaCurrent();
// Addresses at `address` are of another GPU (-1: of nobody that the driver knows), out of reach of all others. All
// other addresses are taken for memory of the GPU that asks. Forgotten by a reset.
void fakeCudaSetOwner(const void *address, int ordinal);
// GPUs that later calls see, at most 8.
void fakeCudaSetDevices(int count);
// From now on the stream (null: the default one of the current context, or of GPU 0) has something to do that takes until
// what is returned is released; what is asked of events recorded behind it is answered so.
void *fakeCudaHold(void *stream);
void fakeCudaRelease(void *held);
// Runs launches of images that are no library of this machine, with their entry and parameters; null: they are recorded.
// What adds up rows that came from another rank (AddRows.h) happens in any case.
using KernelRun = void (*)(const char *entry, const void *params);
void fakeCudaSetKernels(KernelRun run);
// How long later launches take, by the clock of events.
void fakeCudaSetLaunchUs(int us);
// The most bytes that a pool may hold from now on.
void fakeCudaSetPoolBytes(size_t bytes);
int fakeCudaLivePools();
// Whether kernels read, and clears write, memory that the driver does not know.
void fakeCudaSetPageable(int isRead);

const Launch *fakeCudaLastLaunch();
// The first 16 launches since the reset; `count` is of all.
const Launch *fakeCudaLaunches(int *count);
const Clear *fakeCudaClears(int *count);
const TensorMapCall *fakeCudaLastTensorMap();
int fakeCudaLiveModules();
int fakeCudaLiveGraphs(); // executable ones
int fakeCudaLiveAllocations();
int fakeCudaLivePinned(); // pieces of the host's memory
int fakeCudaRetainedContexts();
}

} // namespace heddle::fake

#endif
