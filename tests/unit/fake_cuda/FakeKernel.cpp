//===- FakeKernel.cpp - the exported driver functions: modules, streams, launches ---===//
#include "FakeState.h"
#include "runtime/Distributed/CopyRows.h"
#include "runtime/Distributed/Pause.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <sys/uio.h>
#include <unistd.h>

using namespace heddle;
using namespace heddle::cuda;
using namespace heddle::fake;

namespace {

// A kernel has one parameter of the size that the test announced. Else nobody says how large it is: whatever can be
// read, at most as much as any driver takes, and what lies behind the parameter is noise.
bool readParams(void **params, Launch &launch) {
  if (!params || !params[0])
    return false;
  const size_t announced = state().expectedParamBytes;
  const iovec to{launch.params, announced ? announced : sizeof(launch.params)}, from{params[0], to.iov_len};
  const ssize_t read = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
  launch.paramBytes = read > 0 ? size_t(read) : 0;
  return announced ? launch.paramBytes == announced : launch.paramBytes > 0;
}

// For tests that started this process.
void writeParams(const Launch &launch) {
  const char *path = std::getenv("HEDDLE_FAKE_CUDA_PARAMS");
  FILE *file = path ? std::fopen(path, "wb") : nullptr;
  if (!file)
    return;
  std::fwrite(launch.params, 1, launch.paramBytes, file);
  std::fclose(file);
}

} // namespace

namespace heddle::fake {

// As the driver would check it.
Code describeLaunch(const KernelNodeParams &asked, Launch &launch) {
  const Function function = asked.function;
  if (!state().handles.count(function) || !state().modules.count(function->module) ||
      function->module->context != currentContext())
    return kInvalidHandle;
  const bool isPossible = asked.gridX && asked.gridY && asked.gridZ && asked.blockX &&
                          asked.blockX <= state().blockThreads &&
                          asked.sharedBytes <= unsigned(function->maxDynamicShared);
  if (!isPossible || !readParams(asked.params, launch))
    return kErrorInvalidValue;
  const unsigned grid[3] = {asked.gridX, asked.gridY, asked.gridZ},
                 block[3] = {asked.blockX, asked.blockY, asked.blockZ};
  std::memcpy(launch.grid, grid, sizeof grid);
  std::memcpy(launch.block, block, sizeof block);
  launch.sharedBytes = asked.sharedBytes;
  launch.context = currentContext();
  launch.entry = function->name;
  launch.function = function;
  return kSuccess;
}

void noteLaunch(const Launch &launch, Stream stream) {
  Launch &noted = state().lastLaunch;
  noted = launch;
  noted.stream = stream;
  noted.clearsBefore = state().clearCount;
  writeParams(noted);
  if (state().launchCount < int(std::size(state().launches)))
    state().launches[state().launchCount] = noted;
  ++state().launchCount;
  state().nowUs += state().launchUs;
}

} // namespace heddle::fake

namespace {

Code recordLaunch(const KernelNodeParams &asked, Stream stream) {
  FAKE_ENTER_CONTEXT(cuLaunchKernel);
  if (stream && (!state().handles.count(stream) || stream->context != currentContext()))
    return kInvalidHandle;
  Launch launch = {};
  if (Code code = describeLaunch(asked, launch))
    return code;
  noteLaunch(launch, stream);
  if (stream && stream->capture)
    stream->capture->nodes.push_back({false, {}, asked.function, launch});
  heddle::fake::noteFork(stream);
  return kSuccess;
}

// What the text of AddRows.h does.
void addRows(const AddRowsParams &p) {
  for (uint32_t batch = 0; batch < p.batches; ++batch)
    for (uint32_t row = 0; row < p.rows; ++row)
      for (uint32_t head = 0; head < p.heads; ++head) {
        auto *to = reinterpret_cast<float *>(p.to + batch * p.toBatch + row * p.toRow + head * p.toHead);
        auto *from =
            reinterpret_cast<const float *>(p.from + batch * p.fromBatch + row * p.fromRow + head * p.fromHead);
        float ofTo = 1, ofFrom = 1;
        if (p.lse) {
          const size_t place = (size_t(batch) * p.heads + head) * p.rows + row;
          const float a = reinterpret_cast<const float *>(p.lse)[place],
                      b = reinterpret_cast<const float *>(p.lseFrom)[place];
          const float most = std::max(a, b) == -INFINITY ? 0 : std::max(a, b);
          const float sum = std::exp(a - most) + std::exp(b - most);
          reinterpret_cast<float *>(p.lseSum)[place] = most + std::log(sum);
          ofTo = std::exp(a - most) / (sum == 0 ? 1 : sum), ofFrom = 1 - ofTo;
        }
        for (uint32_t i = 0; i < p.width; ++i)
          to[i] = to[i] * ofTo + from[i] * ofFrom;
      }
}

// What the text of CopyRows.h does, in blocks that have some units for each thread.
void copyRows(const CopyRowsParams &all, const unsigned *grid) {
  for (unsigned place = 0; place < grid[1]; ++place) {
    const CopiedRows &rows = all.rows[place];
    const uint64_t units =
        std::min<uint64_t>(uint64_t(rows.width) * rows.height, uint64_t(grid[0]) * kCopyRowsThreads * kCopyRowsUnits);
    for (uint64_t unit = 0; unit < units; unit += rows.width) {
      const uint64_t row = unit / rows.width, count = std::min<uint64_t>(rows.width, units - unit);
      std::memcpy(reinterpret_cast<char *>(rows.to) + int64_t(row) * rows.toPitch,
                  reinterpret_cast<const char *>(rows.from) + int64_t(row) * rows.fromPitch, count * kCopyRowsUnit);
    }
  }
}

void runLaunch(Function function, void **params, const unsigned *grid) {
  if (std::strcmp(function->name, kCopyRowsName) == 0) {
    CopyRowsParams all;
    std::memcpy(&all, params[0], sizeof all);
    return copyRows(all, grid);
  }
  if (std::strcmp(function->name, kPauseName) == 0)
    return;
  if (std::strcmp(function->name, kAddRowsName) == 0) {
    AddRowsParams all; // one behind the other, as the kernel has them
    std::memcpy(&all, params[0], sizeof all);
    addRows(all);
  } else if (function->module->hostKernel) {
    function->module->hostKernel(params[0], grid);
  } else if (const KernelRun run = state().runKernel) {
    run(function->name, params[0]);
  }
}

} // namespace

extern "C" {

// An image is a cubin if it opens like an ELF file and PTX if it opens with a comment or its version.
Code cuModuleLoadDataEx(Module *module, const void *image, unsigned count, int *options, void **values) {
  FAKE_ENTER_UNCAPTURED(cuModuleLoadDataEx);
  const char *text = static_cast<const char *>(image);
  bool isCubin = std::strncmp(text,
                              "\x7f"
                              "ELF",
                              4) == 0,
       isPtx = std::strncmp(text, "//", 2) == 0 || std::strncmp(text, ".version", 8) == 0;
  if (isCubin || isPtx) {
    *module = new ModuleStruct{currentContext(), openHostKernel(image, "heddle_kernel")};
    state().handles.insert(*module);
    state().modules.insert(*module);
    return kSuccess;
  }
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == kJitErrorLogBuffer)
      std::strcpy(static_cast<char *>(values[i]), state().jitLog);
  return kErrorInvalidImage;
}

Code cuModuleUnload(Module module) {
  FAKE_ENTER_CONTEXT(cuModuleUnload);
  if (currentContext() != module->context || state().modules.erase(module) == 0)
    return kInvalidHandle;
  state().handles.erase(module);
  delete module;
  return kSuccess;
}

// Functions live as long as the process: the real ones belong to their module as well.
Code cuModuleGetFunction(Function *function, Module module, const char *name) {
  FAKE_ENTER_CONTEXT(cuModuleGetFunction);
  if (!state().modules.count(module))
    return kInvalidHandle;
  if (std::strncmp(name, "heddle_", 7) != 0) // heddle_kernel, or the other launches of a call
    return kNotFound;
  *function = new FunctionStruct{module, {}, 48 << 10};
  std::strncpy((*function)->name, name, sizeof((*function)->name) - 1);
  state().handles.insert(*function);
  return kSuccess;
}

Code cuFuncGetAttribute(int *value, int attribute, Function function) {
  FAKE_ENTER_CONTEXT(cuFuncGetAttribute);
  if (!state().handles.count(function))
    return kInvalidHandle;
  *value = attribute == kFunctionSharedBytes          ? 1024
           : attribute == kFunctionMaxThreadsPerBlock ? int(state().blockThreads)
                                                      : -1;
  return *value < 0 ? kErrorInvalidValue : kSuccess;
}

Code cuFuncSetAttribute(Function function, int attribute, int value) {
  FAKE_ENTER_CONTEXT(cuFuncSetAttribute);
  if (attribute != kFunctionMaxDynamicSharedBytes || value < 0 || value > 232448 - 1024)
    return kErrorInvalidValue;
  function->maxDynamicShared = value;
  return kSuccess;
}

Code cuLaunchKernel(Function function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,
                    unsigned blockZ, unsigned sharedBytes, Stream stream, void **params, void **extra) {
  const unsigned grid[3] = {gridX, gridY, gridZ};
  const KernelNodeParams asked = {
      function, gridX,   gridY,  gridZ, blockX, blockY, blockZ, sharedBytes, extra ? nullptr : params,
      extra,    nullptr, nullptr};
  if (Code code = recordLaunch(asked, stream))
    return code;
  const bool isCaptured = stream && stream->capture;
  if (!isCaptured) // without the lock: kernels of several streams run at once
    runLaunch(function, params, grid);
  return kSuccess;
}

Code cuStreamCreateWithPriority(Stream *stream, unsigned, int) {
  FAKE_ENTER_CONTEXT(cuStreamCreateWithPriority);
  *stream = new StreamStruct{currentContext(), nullptr};
  state().handles.insert(*stream);
  return kSuccess;
}

Code cuStreamCreate(Stream *stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }

Code cuStreamWaitEvent(Stream stream, Event event, unsigned flags) {
  FAKE_ENTER_CONTEXT(cuStreamWaitEvent);
  const bool isKnown = (!stream || state().handles.count(stream)) && state().handles.count(event);
  if (!isKnown || flags != 0)
    return kInvalidHandle;
  if (!event->captured)
    return stream && stream->capture ? heddle::fake::kCaptureIsolation : kSuccess;
  if (stream && !stream->capture) {
    stream->capture = event->captured->capture;
    stream->capture->forks.push_back(stream);
  }
  event->captured->isUnjoined = false;
  return kSuccess;
}

Code cuStreamGetCtx(Stream stream, Context *context) {
  FAKE_ENTER(cuStreamGetCtx);
  if (!state().handles.count(stream))
    return kInvalidHandle;
  *context = stream->context;
  return kSuccess;
}

Code cuStreamSynchronize(Stream stream) {
  for (;; sched_yield()) {
    FAKE_ENTER_UNCAPTURED(cuStreamSynchronize);
    if (stream && !state().handles.count(stream))
      return kInvalidHandle;
    if (!workOf(stream)->held.empty())
      continue;
    settlePools();
    return kSuccess;
  }
}

Code cuStreamDestroy_v2(Stream stream) {
  FAKE_ENTER_CONTEXT(cuStreamDestroy_v2);
  if (state().handles.erase(stream) == 0)
    return kInvalidHandle;
  delete stream;
  return kSuccess;
}

Code cuTensorMapEncodeTiled(TensorMap *map, int dtype, uint32_t rank, void *address, const uint64_t *dims,
                            const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int, int swizzle, int,
                            int) {
  FAKE_ENTER_CONTEXT(cuTensorMapEncodeTiled);
  TensorMapCall &call = state().lastMap;
  call = {dtype, swizzle, rank, address, {}, {}, {}, {}};
  for (uint32_t i = 0; i < rank; ++i) {
    call.dims[i] = dims[i], call.box[i] = box[i], call.steps[i] = steps[i];
    bool isValid =
        dims[i] > 0 && dims[i] <= uint64_t(1) << 32 && box[i] > 0 && box[i] <= 256 && steps[i] > 0 && steps[i] <= 8;
    if (i > 0) {
      call.strides[i - 1] = strides[i - 1];
      isValid = isValid && strides[i - 1] % 16 == 0 && strides[i - 1] < uint64_t(1) << 40;
    }
    if (!isValid)
      return kErrorInvalidValue;
  }
  for (uint64_t &word : map->opaque)
    word = 0x7a70616d00000000u + rank;
  return reinterpret_cast<uintptr_t>(address) % 16 == 0 ? kSuccess : kErrorInvalidValue;
}

} // extern "C"
