#include "runtime/Distributed/CudaShard.h"
#include "runtime/Device/Capture.h"
#include "runtime/Device/DeviceState.h"
#include "runtime/Distributed/AddRows.h"
#include "runtime/Distributed/CopyRows.h"
#include "runtime/Distributed/Pause.h"

#include <algorithm>
#include <cstdint>

namespace heddle {
namespace {

constexpr const char *kWhat = "call over a group";

cuda::DevicePointer addressOf(const void *place) { return cuda::DevicePointer(reinterpret_cast<uintptr_t>(place)); }

bool isOfUnits(uint64_t bytes) { return bytes % kCopyRowsUnit == 0; }

} // namespace

Result<std::unique_ptr<CudaShard>> CudaShard::create(const Device &device) {
  const Driver &driver = *device.state()->driver;
  if (!driver.memcpy2D || !driver.streamWaitEvent)
    return Status::unsupported(std::string(kWhat) + ": the driver lacks cuMemcpy2DAsync or cuStreamWaitEvent");
  HEDDLE_ASSIGN(DeviceStream link, DeviceStream::create(device, /*isUrgent=*/true));
  HEDDLE_ASSIGN(DeviceStream aside, DeviceStream::create(device, /*isUrgent=*/true));
  HEDDLE_ASSIGN(DeviceEvent event, DeviceEvent::create(device));
  std::unique_ptr<CudaShard> shard(new CudaShard(device, std::move(link), std::move(aside), std::move(event)));
  shard->loadKernels();
  return shard;
}

// Before any call: one may be captured, and nothing can be loaded then. A driver that compiles no text copies one place at a
// time, and adds nothing.
void CudaShard::loadKernels() {
  if (Result<cuda::Function> found = loaded(copyRowsText(), kCopyRowsName))
    copies = *found;
  if (Result<cuda::Function> found = loaded(pauseText(), kPauseName))
    pauses = *found;
  if (Result<cuda::Function> found = loaded(addRowsText(), kAddRowsName))
    adds = *found;
  else
    whyNoAdds = found.status();
}

bool CudaShard::isCaptured() const { return heddle::isCaptured(*device.state()->driver, compute); }

// Whoever called on the stream meanwhile has given it something; one call knows nothing of what others followed.
void CudaShard::serve(std::vector<Kernel> ofParts, cuda::Stream stream) {
  kernels = std::move(ofParts), compute = stream;
  for (uint64_t &count : given)
    ++count;
  followed = {};
}

// A graph has nothing of a queue that it was not given anything of, and may not wait for what is none of its work.
Status CudaShard::follow(Queue later, Queue earlier) {
  const DeviceState &state = *device.state();
  if (isCaptured() && !heddle::isCaptured(*state.driver, streamOf(earlier)))
    return {};
  uint64_t &known = followed[size_t(later)][size_t(earlier)];
  if (known == given[size_t(earlier)])
    return {};
  known = given[size_t(earlier)];
  HEDDLE_TRY(event.record(streamOf(earlier)));
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(kWhat));
  return state.driver->check(state.driver->streamWaitEvent(take(later), event.handle(), 0), kWhat, "cuStreamWaitEvent");
}

// In a graph what waits for nothing begins in any order, and streams have no urgency. Launches aside clear a workspace first, as
// those that are computed do: of two that wait for nothing the one that was enqueued later was first on H200s.
Status CudaShard::letBegin(Queue begun) {
  if (!pauses || (begun == Queue::link && !isCaptured()))
    return {};
  uint32_t ns = kPauseNs;
  void *pointers[] = {&ns};
  const DeviceState &state = *device.state();
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(kWhat));
  return state.driver->check(
      state.driver->launchKernel(pauses, 1, 1, 1, 1, 1, 1, 0, take(Queue::compute), pointers, nullptr), kWhat,
      "cuLaunchKernel");
}

Status CudaShard::clear(void *address, uint64_t bytes, Queue queue) {
  if (!bytes)
    return {};
  const DeviceState &state = *device.state();
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(kWhat));
  return state.driver->check(state.driver->memsetBytes(addressOf(address), 0, bytes, take(queue)), kWhat,
                             "cuMemsetD8Async");
}

Status CudaShard::copyRuns(const Runs &runs, cuda::Stream stream) const {
  constexpr size_t kLongestRow = size_t(1) << 30; // the driver's rectangles have rows of less than 2 GiB
  if (runs.height == 1 && runs.width > kLongestRow) {
    const size_t whole = runs.width / kLongestRow * kLongestRow;
    HEDDLE_TRY(copyRuns({runs.from, kLongestRow, runs.to, kLongestRow, kLongestRow, whole / kLongestRow}, stream));
    return whole == runs.width ? Status()
                               : copyRuns({runs.from + whole, 0, runs.to + whole, 0, runs.width - whole, 1}, stream);
  }
  const DeviceState &state = *device.state();
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(kWhat));
  cuda::Copy2D copy = {};
  copy.fromKind = copy.toKind = cuda::kMemoryOfDevice;
  copy.from = addressOf(runs.from), copy.to = addressOf(runs.to);
  copy.fromPitch = runs.height > 1 ? runs.fromPitch : runs.width;
  copy.toPitch = runs.height > 1 ? runs.toPitch : runs.width;
  copy.width = runs.width, copy.height = runs.height;
  return state.driver->check(state.driver->memcpy2D(&copy, stream), kWhat, "cuMemcpy2DAsync");
}

/// One for each batch, or for each of its heads.
void CudaShard::addRuns(const RowCopy &copy, std::vector<Runs> &all) {
  const RowPlace &to = copy.to, &from = copy.from;
  const int64_t bytes = to.headBytes;
  const bool hasRowsOfHeads = copy.heads == 1 || (to.headStride == bytes && from.headStride == bytes);
  const bool hasHeadsOfRows = to.rowStride == bytes && from.rowStride == bytes;
  auto add = [&](char *into, int64_t toPitch, const char *out, int64_t fromPitch, int64_t width, int64_t height) {
    const bool isOne = toPitch == width && fromPitch == width;
    if (width > 0 && height > 0)
      all.push_back({out, size_t(fromPitch), into, size_t(toPitch), size_t(isOne ? width * height : width),
                     size_t(isOne ? 1 : height)});
  };
  for (int64_t batch = 0; batch < copy.batches; ++batch) {
    char *const into = to.base + batch * to.batchStride;
    const char *const out = from.base + batch * from.batchStride;
    if (hasRowsOfHeads)
      add(into, to.rowStride, out, from.rowStride, copy.heads * bytes, copy.rows);
    else if (hasHeadsOfRows)
      add(into, to.headStride, out, from.headStride, copy.rows * bytes, copy.heads);
    else
      for (int64_t head = 0; head < copy.heads; ++head)
        add(into + head * to.headStride, to.rowStride, out + head * from.headStride, from.rowStride, bytes, copy.rows);
  }
}

Status CudaShard::copy(const RowCopy &copy, Queue queue) { return copyAll({copy}, queue); }

/// By one launch for as many as it takes; those that are not of whole units, and one alone, by the driver.
Status CudaShard::copyAll(const std::vector<RowCopy> &rows, Queue queue) {
  std::vector<Runs> all;
  for (const RowCopy &each : rows)
    addRuns(each, all);
  if (all.empty())
    return {};
  const cuda::Stream stream = take(queue);
  const auto ofKernel = std::partition(all.begin(), all.end(), [&](const Runs &runs) {
    const bool isWhole = isOfUnits(addressOf(runs.from)) && isOfUnits(addressOf(runs.to)) && isOfUnits(runs.width) &&
                         (runs.height == 1 || (isOfUnits(runs.fromPitch) && isOfUnits(runs.toPitch)));
    return !copies || !isWhole || runs.width / kCopyRowsUnit * runs.height > UINT32_MAX / 4;
  });
  for (auto runs = all.begin(); runs != ofKernel; ++runs)
    HEDDLE_TRY(copyRuns(*runs, stream));
  for (size_t first = size_t(ofKernel - all.begin()); first < all.size(); first += kCopyRowsMost) {
    const size_t count = std::min<size_t>(kCopyRowsMost, all.size() - first);
    HEDDLE_TRY(count == 1 ? copyRuns(all[first], stream) : copyAtOnce(&all[first], count, stream));
  }
  return {};
}

Status CudaShard::copyAtOnce(const Runs *first, size_t count, cuda::Stream stream) {
  CopyRowsParams params = {};
  uint32_t most = 0;
  for (size_t i = 0; i < count; ++i) {
    const Runs &runs = first[i];
    params.rows[i] = {addressOf(runs.to),
                      addressOf(runs.from),
                      int64_t(runs.toPitch),
                      int64_t(runs.fromPitch),
                      uint32_t(runs.width / kCopyRowsUnit),
                      uint32_t(runs.height)};
    most = std::max(most, params.rows[i].width * params.rows[i].height);
  }
  constexpr unsigned kUnitsOfBlock = kCopyRowsThreads * kCopyRowsUnits;
  void *pointers[] = {&params};
  const DeviceState &state = *device.state();
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(kWhat));
  return state.driver->check(state.driver->launchKernel(copies, (most + kUnitsOfBlock - 1) / kUnitsOfBlock,
                                                        unsigned(count), 1, kCopyRowsThreads, 1, 1, 0, stream, pointers,
                                                        nullptr),
                             kWhat, "cuLaunchKernel");
}

Result<cuda::Function> CudaShard::loaded(const std::string &text, const char *name) const {
  const DeviceState &state = *device.state();
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(kWhat));
  cuda::Module module = nullptr;
  cuda::Function function = nullptr; // as long as the context
  HEDDLE_TRY(state.driver->check(state.driver->moduleLoadDataEx(&module, text.c_str(), 0, nullptr, nullptr), kWhat,
                                 "cuModuleLoadDataEx"));
  HEDDLE_TRY(
      state.driver->check(state.driver->moduleGetFunction(&function, module, name), kWhat, "cuModuleGetFunction"));
  return function;
}

Status CudaShard::add(const RowSum &all, Queue queue) {
  const RowCopy &sum = all.rows;
  if (!sum.rows || !sum.batches || !sum.heads)
    return {};
  if (!adds)
    return whyNoAdds;
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
  return state.driver->check(state.driver->launchKernel(adds, (elements + kAddRowsThreads - 1) / kAddRowsThreads,
                                                        std::min(params.rows, kAddRowsMostBlocks), params.batches,
                                                        kAddRowsThreads, 1, 1, 0, take(queue), pointers, nullptr),
                             kWhat, "cuLaunchKernel");
}

Result<const Kernel *> CudaShard::kernelOf(const KindText &kind) const {
  std::string known;
  for (const Kernel &kernel : kernels) {
    Result<CallShape> shape = kernel.record().shape();
    if (shape)
      shape->kind.isDeterministic = kind.kind.isDeterministic; // the caller chooses
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
  return kernel->launch(take(queue), args);
}

} // namespace heddle
