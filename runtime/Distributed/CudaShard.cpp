#include "runtime/Distributed/CudaShard.h"
#include "runtime/Device/Capture.h"
#include "runtime/Device/DeviceState.h"
#include "runtime/Distributed/AddRows.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr const char *kWhat = "call over a group";

cuda::DevicePointer addressOf(const void *place) { return cuda::DevicePointer(reinterpret_cast<uintptr_t>(place)); }

} // namespace

Result<std::unique_ptr<CudaShard>> CudaShard::create(const Device &device) {
  const Driver &driver = *device.state()->driver;
  if (!driver.memcpy2D || !driver.streamWaitEvent)
    return Status::unsupported(std::string(kWhat) + ": the driver lacks cuMemcpy2DAsync or cuStreamWaitEvent");
  HEDDLE_ASSIGN(DeviceStream link, DeviceStream::create(device, /*isUrgent=*/true));
  HEDDLE_ASSIGN(DeviceStream aside, DeviceStream::create(device, /*isUrgent=*/true));
  HEDDLE_ASSIGN(DeviceEvent event, DeviceEvent::create(device));
  return std::unique_ptr<CudaShard>(new CudaShard(device, std::move(link), std::move(aside), std::move(event)));
}

bool CudaShard::isCaptured() const { return heddle::isCaptured(*device.state()->driver, compute); }

// A graph has nothing of a queue that it was not given anything of, and may not wait for what is none of its work.
Status CudaShard::follow(Queue later, Queue earlier) {
  const DeviceState &state = *device.state();
  if (isCaptured() && !heddle::isCaptured(*state.driver, streamOf(earlier)))
    return {};
  HEDDLE_TRY(event.record(streamOf(earlier)));
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(kWhat));
  return state.driver->check(state.driver->streamWaitEvent(streamOf(later), event.handle(), 0), kWhat,
                             "cuStreamWaitEvent");
}

Status CudaShard::clear(void *address, uint64_t bytes, Queue queue) {
  if (!bytes)
    return {};
  const DeviceState &state = *device.state();
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(kWhat));
  return state.driver->check(state.driver->memsetBytes(addressOf(address), 0, bytes, streamOf(queue)), kWhat,
                             "cuMemsetD8Async");
}

Status CudaShard::copyRuns(const char *from, size_t fromPitch, char *to, size_t toPitch, size_t width, size_t height,
                           Queue queue) const {
  if (!width || !height)
    return {};
  constexpr size_t kLongestRow = size_t(1) << 30; // the driver's rectangles have rows of less than 2 GiB
  if (height == 1 && width > kLongestRow) {
    const size_t whole = width / kLongestRow * kLongestRow;
    HEDDLE_TRY(copyRuns(from, kLongestRow, to, kLongestRow, kLongestRow, whole / kLongestRow, queue));
    return copyRuns(from + whole, 0, to + whole, 0, width - whole, 1, queue);
  }
  const DeviceState &state = *device.state();
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(kWhat));
  cuda::Copy2D copy = {};
  copy.fromKind = copy.toKind = cuda::kMemoryOfDevice;
  copy.from = addressOf(from), copy.to = addressOf(to);
  copy.fromPitch = height > 1 ? fromPitch : width, copy.toPitch = height > 1 ? toPitch : width;
  copy.width = width, copy.height = height;
  return state.driver->check(state.driver->memcpy2D(&copy, streamOf(queue)), kWhat, "cuMemcpy2DAsync");
}

/// One copy of runs for each batch, or for each of its heads.
Status CudaShard::copy(const RowCopy &copy, Queue queue) {
  const RowPlace &to = copy.to, &from = copy.from;
  const int64_t bytes = to.headBytes;
  const bool hasRowsOfHeads = copy.heads == 1 || (to.headStride == bytes && from.headStride == bytes);
  const bool hasHeadsOfRows = to.rowStride == bytes && from.rowStride == bytes;
  for (int64_t batch = 0; batch < copy.batches; ++batch) {
    char *const into = to.base + batch * to.batchStride;
    const char *const out = from.base + batch * from.batchStride;
    if (hasRowsOfHeads) {
      const int64_t run = copy.heads * bytes;
      const bool isOne = to.rowStride == run && from.rowStride == run;
      HEDDLE_TRY(copyRuns(out, from.rowStride, into, to.rowStride, isOne ? copy.rows * run : run, isOne ? 1 : copy.rows,
                          queue));
    } else if (hasHeadsOfRows) {
      HEDDLE_TRY(copyRuns(out, from.headStride, into, to.headStride, copy.rows * bytes, copy.heads, queue));
    } else {
      for (int64_t head = 0; head < copy.heads; ++head)
        HEDDLE_TRY(copyRuns(out + head * from.headStride, from.rowStride, into + head * to.headStride, to.rowStride,
                            bytes, copy.rows, queue));
    }
  }
  return {};
}

Result<cuda::Function> CudaShard::addRows() {
  if (adds)
    return adds;
  const DeviceState &state = *device.state();
  const std::string text = addRowsText();
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(kWhat));
  cuda::Module module = nullptr; // as long as the context
  HEDDLE_TRY(state.driver->check(state.driver->moduleLoadDataEx(&module, text.c_str(), 0, nullptr, nullptr), kWhat,
                                 "cuModuleLoadDataEx"));
  HEDDLE_TRY(
      state.driver->check(state.driver->moduleGetFunction(&adds, module, kAddRowsName), kWhat, "cuModuleGetFunction"));
  return adds;
}

Status CudaShard::add(const RowSum &all, Queue queue) {
  const RowCopy &sum = all.rows;
  if (!sum.rows || !sum.batches || !sum.heads)
    return {};
  HEDDLE_ASSIGN(const cuda::Function function, addRows());
  const RowPlace &to = sum.to, &from = sum.from;
  AddRowsParams params = {addressOf(to.base),  addressOf(from.base),   uint32_t(to.headBytes / int64_t(sizeof(float))),
                          uint32_t(sum.heads), uint32_t(sum.rows),     uint32_t(sum.batches),
                          to.batchStride,      to.rowStride,           to.headStride,
                          from.batchStride,    from.rowStride,         from.headStride,
                          addressOf(all.lse),  addressOf(all.lseFrom), addressOf(all.lseSum)};
  void *pointers[] = {&params.to,      &params.from,     &params.width, &params.heads,   &params.rows,
                      &params.batches, &params.toBatch,  &params.toRow, &params.toHead,  &params.fromBatch,
                      &params.fromRow, &params.fromHead, &params.lse,   &params.lseFrom, &params.lseSum};
  const DeviceState &state = *device.state();
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(kWhat));
  const unsigned elements = params.width * params.heads;
  return state.driver->check(state.driver->launchKernel(function, (elements + kAddRowsThreads - 1) / kAddRowsThreads,
                                                        std::min(params.rows, kAddRowsMostBlocks), params.batches,
                                                        kAddRowsThreads, 1, 1, 0, streamOf(queue), pointers, nullptr),
                             kWhat, "cuLaunchKernel");
}

Result<const Kernel *> CudaShard::kernelOf(const KindText &kind) const {
  std::string known;
  for (const Kernel &kernel : kernels) {
    const Result<CallShape> shape = kernel.record().shape();
    if (shape && shape->kind == kind.kind && shape->elements.out == kind.elements(shape->elements.q).out &&
        shape->elements.precision == kind.precision)
      return &kernel;
    known += (known.empty() ? "" : ", ") + kernel.record().kind;
  }
  return Status::invalidArgument(std::string(kWhat) + ": kernels: expected one of kind " + kind.str() + " beside " +
                                 (known.empty() ? "none" : known));
}

Result<uint64_t> CudaShard::workspaceBytes(const KindText &kind, const heddle_attention_args &args) {
  HEDDLE_ASSIGN(const Kernel *kernel, kernelOf(kind));
  HEDDLE_ASSIGN(const int64_t bytes, kernel->workspaceBytes(args));
  return uint64_t(bytes);
}

Status CudaShard::launch(const KindText &kind, const heddle_attention_args &args, Queue queue) {
  HEDDLE_ASSIGN(const Kernel *kernel, kernelOf(kind));
  return kernel->launch(streamOf(queue), args);
}

} // namespace heddle
